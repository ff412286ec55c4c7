"""Drawn tasks: a seed says which, nothing of one kind touches the other, and what is kept is what is measured."""

import json
from collections import Counter

import numpy as np
import pytest
from test_calibration import frames

from lcd.envs import drawn
from lcd.envs.benchmarks import get_benchmark, reward_range
from lcd.envs.calibration import Truth, Turned
from lcd.envs.drawn_tasks import DRAWN, kept_rows
from lcd.envs.hardness.mdp import HardnessKnobs
from lcd.statistics.rank_correlation import spearman

ROWS = {row["task"]: row for row in kept_rows()}


def test_there_are_as_many_tasks_as_were_promised_and_each_has_its_numbers():
    assert get_benchmark("calibration-drawn") is DRAWN
    assert list(DRAWN.tasks) == list(ROWS) == drawn.names() == list(DRAWN.about)
    assert len(DRAWN.tasks) == 24
    levels = np.array([(truth.perception, truth.reward) for truth in DRAWN.truth.values()])
    assert np.isfinite(levels).all()
    assert np.ptp(levels, axis=0).min() > 3


def test_the_seed_draws_the_kept_knobs_and_another_draws_others():
    for row in ROWS.values():
        assert json.loads(json.dumps(drawn.drawn_sight(int(row["sight_draw"])))) == json.loads(row["sight"])
        assert drawn.drawn_reward(int(row["reward_draw"])) == json.loads(row["reward"])
    assert [drawn.drawn_reward(n, 1) for n in range(8)] != [drawn.drawn_reward(n, 2) for n in range(8)]


def test_every_dial_is_turned_to_every_value_by_some_draw():
    sights, rewards = ([draw(n, 1) for n in range(600)] for draw in (drawn.drawn_sight, drawn.drawn_reward))
    for dials, found in ((drawn.LOOKS | dict(drawn.OF_TRANSFORMS.values()), sights), (drawn.REWARDS, rewards)):
        for name, values in dials.items():
            assert {str(knobs[name]) for knobs in found if name in knobs} >= set(map(str, values))
    turned = Counter(name for knobs in sights for name in knobs)
    assert turned["texture"] / 600 == pytest.approx(drawn.TURNED, abs=0.07)
    assert not set(turned) & {name for knobs in rewards for name in knobs}


def test_sights_change_no_dynamics_and_rewards_no_looks(monkeypatch):
    task, other = DRAWN.tasks[:2]
    plain = drawn.benchmark_of({task: Turned({}, DRAWN.turned[task].reward, Truth(0, 0))})
    ours, theirs = DRAWN.toy(task, 3), plain.toy(task, 3)
    for name in ("transitions", "terminal", "rewards", "gate"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert reward_range(DRAWN, task, 3) == plain.reward_range(task, 3)
    assert DRAWN.toy_seed(task, 3) != DRAWN.toy_seed(other, 3)
    sight = DRAWN.turned[task].sight
    for reward in ({"reward_every_n_steps": 3}, {"delay": 2}, {"sequence_length": 2}):
        first, second = (drawn.benchmark_of({task: Turned(sight, each, Truth(0, 0))}) for each in ({}, reward))
        np.testing.assert_array_equal(frames(first, task, "pixels"), frames(second, task, "pixels"))


def test_no_kept_task_is_one_that_is_refused():
    for task, row in ROWS.items():
        gap = float(row["optimal"]) - float(row["random"])
        assert (float(row["blind"]) - float(row["random"])) / gap <= drawn.MOST_BLIND
        assert float(row["samples"]) <= drawn.MOST_SAMPLES
        HardnessKnobs.from_dict(DRAWN.knobs(task))


@pytest.mark.parametrize(
    ("reward", "why"),
    [
        ({}, ""),
        ({"reward_density": 0.5}, "blind agents gain too much"),
        ({"reward_every_n_steps": 10, "reward_noise": 1.0}, "actions are not told apart"),
        ({"sequence_length": 3, "delay": 4, "make_denser": True}, "knobs that refuse each other"),
    ],
)
def test_rewards_are_refused_by_exact_numbers_alone(reward, why):
    task = DRAWN.tasks[0]
    made = drawn.benchmark_of({task: Turned({}, {"reward_every_n_steps": 1} | reward, Truth(0, 0))})
    assert drawn.judged_reward(made, task)[0] == why


def test_sights_that_no_probe_reads_are_refused():
    task = DRAWN.tasks[0]

    def refused(**sight):
        return drawn.judged_sight(drawn.benchmark_of({task: Turned(sight, {}, Truth(0, 0))}), task)[0]

    assert refused() == ""
    assert refused(texture=1.0, contrast=0.15, distractors=4, image_transforms="shift") == "pixels are never read"
    assert refused(image_radius=0.4, image_transforms="shift,scale") == "knobs that refuse each other"


def test_sights_and_rewards_are_paired_so_that_neither_tells_of_the_other():
    rng = np.random.default_rng(0)
    sights = rng.normal(size=24)
    order = drawn.paired(sights, sights)
    assert sorted(order) == list(range(24))
    assert abs(spearman(sights[order], sights)) <= drawn.MOST_ALIKE
    assert drawn.paired(sights, sights) == order != drawn.paired(sights, sights, seed=1)
    levels = np.array([(truth.perception, truth.reward) for truth in DRAWN.truth.values()])
    assert abs(spearman(*levels.T)) < 0.15  # sights are judged alone, and measured with their rewards


def test_the_kept_numbers_are_those_that_the_command_measures():
    cheap = min(ROWS, key=lambda task: sum(float(ROWS[task][f"frames_{view}"]) for view in drawn.VIEWS))
    found = drawn.measured(DRAWN, cheap)
    assert {name: float(ROWS[cheap][name]) for name in found} == pytest.approx(found, abs=2e-3)


def test_the_command_writes_the_table_that_is_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(drawn, "SEEDS", (0,))
    monkeypatch.setattr(drawn, "READ", (0,))
    monkeypatch.setattr(drawn, "LOOKS", {"contrast": (0.7,)})
    monkeypatch.setattr(drawn, "TRANSFORMS", ())
    for name in ("a.csv", "b.csv"):
        drawn.main(["--tasks", "2", "--seed", "5", "--out", str(tmp_path / name)])
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert (tmp_path / "a.csv").read_text().splitlines()[0].split(",") == list(next(iter(ROWS.values())))
    assert "sights: 2 drawn; refused: none" in capsys.readouterr().out
