"""Runs for several numbers of steps: which is told of, and which goes on from which."""

from types import SimpleNamespace

import pytest

from lcd.pipelines.study import longer

CONFIG = {"kind": "train", "benchmark": "toy", "task": "toy/a", "knobs": {}, "view": "pixels", "reward_p": 1.0}
CONFIG |= {"frontend": {"name": "identity"}, "shaping": "none", "seeds": [0], "evaluation": {"every": 1000}}
PPO = {"name": "ppo", "copies": 10, "rollout": 50}


def run(steps, **changes):
    return SimpleNamespace(config={**CONFIG, "agent": PPO, "steps": steps, **changes})


def test_the_longest_of_each_is_what_counts():
    short, long, middle = run(1000), run(3000), run(2000)
    alone, other = run(1000, seeds=[1]), run(2000, knobs={"size": 3})
    staged = [run(steps, curriculum=[]) for steps in (1000, 2000)]
    runs = [short, long, alone, middle, other, *staged]
    assert longer.lengths(runs) == [[short, middle, long]]
    assert longer.longest(runs) == [long, alone, other, *staged]
    assert longer.is_longer(long.config, short.config)
    assert not longer.is_longer(short.config, long.config)
    assert not longer.is_longer(other.config, short.config)
    assert not longer.is_longer(staged[1].config, staged[0].config)


def test_all_that_is_told_is_of_one_length():
    a, b = ([run(steps, seeds=[seed]) for steps in (1000, 2000, 3000)] for seed in (0, 1))
    every = [a, b]
    assert longer.finished_of(every, [*a, *b]) == [a[2], b[2]]
    assert longer.finished_of(every, [a[0], a[1], *b[:2]]) == [a[1], b[1]]
    assert longer.finished_of(every, [*a, b[0]]) == [a[0], b[0]]
    # What has nothing to show is no reason to tell of less of the others.
    assert longer.finished_of(every, a) == [a[2], b[2]]


@pytest.mark.parametrize(
    ("agent", "steps", "why"),
    [
        (PPO, 2000, ""),
        (PPO, 1900, ""),
        (PPO, 2100, "end with an evaluation at step 2,500, where the longer ones have none"),
        ({**PPO, "name": "ppg", "phase": 4}, 2000, ""),
        ({**PPO, "name": "ppg", "phase": 3}, 2000, "end within a phase of ppg"),
        ({"name": "dqn", "copies": 8}, 2000, "dqn plans by how many steps there are"),
    ],
)
def test_why_a_run_begins_anew(agent, steps, why):
    said = longer.why_anew(run(5000, agent=agent).config, steps)
    assert (why in said) if why else said == ""
    told = longer.sentence([(run(5000, agent=agent).config, each) for each in (steps, 0, steps)])
    begin = "2 runs begin at step 0, because " if why else "2 runs go on from where those of fewer steps ended"
    assert begin in told
    assert why in told
    assert longer.sentence([(run(5000, agent=agent).config, 0)]) == ""
