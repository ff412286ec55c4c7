"""The calibration grids: what each dial changes, and that looking pays on every task."""

import numpy as np
import pytest

from lcd.envs.benchmarks import get_benchmark, reward_range
from lcd.envs.calibration import CALIBRATION, HELD_OUT
from lcd.envs.hardness.mdp import HardnessKnobs, build_mdp
from lcd.envs.hardness.solve import expected_return
from lcd.envs.native import IMAGE_VIEWS
from lcd.envs.population import make_population

GRIDS = (CALIBRATION, HELD_OUT)


def frames(benchmark, task, view, steps=5):
    env = make_population(benchmark, task, seeds=[0, 1], copies=3, view=view, split="train")
    seen = [env.reset()[0]]
    for _ in range(steps):
        seen.append(env.step(np.zeros(6, dtype=np.int64))[0])
    return np.stack(seen)


@pytest.mark.parametrize("benchmark", GRIDS, ids=lambda each: each.name)
def test_the_grid_is_full_and_knows_its_truth(benchmark):
    assert get_benchmark(benchmark.name) is benchmark
    cells = {(truth.perception, truth.reward) for truth in benchmark.truth.values()}
    assert cells == {(p, r) for p in range(4) for r in range(4)}
    assert list(benchmark.truth) == list(benchmark.tasks)


def test_the_held_out_grid_turns_other_knobs():
    def turned(benchmark):
        return {knob for task in benchmark.turned.values() for knob in (*task.sight, *task.reward)}

    assert not turned(CALIBRATION) & turned(HELD_OUT)


def test_perceptual_levels_change_pixels_only(monkeypatch):
    # Levels of one row draw different toys; given the same, only what pixels show may differ.
    monkeypatch.setattr(type(CALIBRATION), "toy_seed", lambda self, task, seed: seed)
    easy, *others = (f"calibration/perception-{level}-reward-1" for level in range(4))
    for task in others:
        for view in IMAGE_VIEWS:
            same = np.array_equal(frames(CALIBRATION, easy, view), frames(CALIBRATION, task, view))
            assert same == (view != "pixels")


@pytest.mark.parametrize("benchmark", GRIDS, ids=lambda each: each.name)
def test_rl_levels_change_nothing_that_is_seen(benchmark, monkeypatch):
    monkeypatch.setattr(type(benchmark), "toy_seed", lambda self, task, seed: seed)
    easy, *others = (f"{benchmark.name}/perception-2-reward-{level}" for level in range(4))
    for view in IMAGE_VIEWS:
        first = frames(benchmark, easy, view)
        assert all(np.array_equal(first, frames(benchmark, task, view)) for task in others)


@pytest.mark.parametrize("benchmark", GRIDS, ids=lambda each: each.name)
def test_a_blind_agent_is_far_from_the_best(benchmark):
    for task in benchmark.tasks[:4]:  # what is seen does not matter to the blind
        reached = []
        for seed in range(8):
            mdp = build_mdp(HardnessKnobs.from_dict(benchmark.knobs(task)), benchmark.toy_seed(task, seed))
            low, high = reward_range(benchmark, task, seed)
            assert low == expected_return(mdp, "random")
            reached.append((expected_return(mdp, "blind") - low) / (high - low))
        assert np.mean(reached) < 0.55


def test_every_task_draws_its_own_toys():
    seeds = {benchmark.toy_seed(task, seed) for benchmark in GRIDS for task in benchmark.tasks for seed in range(8)}
    assert len(seeds) == 2 * 16 * 8
    assert CALIBRATION.toy_seed(CALIBRATION.tasks[3], 5) == CALIBRATION.toy_seed(CALIBRATION.tasks[3], 5)


def test_the_blind_return_is_the_best_of_simulated_constant_actions():
    knobs = CALIBRATION.knobs(CALIBRATION.tasks[1])
    mdp = build_mdp(HardnessKnobs.from_dict(knobs), 3)
    means = []
    for action in range(6):
        env = make_population(
            "hardness", "hardness/discrete", seeds=[3], copies=4000, view="state", split="eval", **knobs
        )
        env.reset()
        means.append(sum(env.step(np.full(4000, action))[1].mean() for _ in range(knobs["horizon"])))
    assert expected_return(mdp, "blind") == pytest.approx(max(means), abs=0.15)
