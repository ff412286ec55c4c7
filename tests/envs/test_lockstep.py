"""Views that are one task are found to be one, and views that are not are told apart."""

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

from lcd.envs.benchmarks import check_view, get_benchmark
from lcd.envs.errors import InputError
from lcd.envs.lockstep import compare_views


class Walk(VectorEnv):
    """Pays for steps to the right, with luck; its view may draw from the same generator, or make episodes shorter."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, num_envs, view, seed, flaw):
        self.num_envs, self.view, self.flaw = num_envs, view, flaw
        self.rng = np.random.default_rng(None if flaw == "no seed" else seed)
        self.length = 5 if (flaw, view) == ("shorter", "semantic") else 9
        self.single_observation_space = spaces.Box(0, 1, (4,), np.float32)
        self.single_action_space = spaces.Discrete(3 if (flaw, view) == ("actions", "semantic") else 2)
        self.observation_space = spaces.Box(0, 1, (num_envs, 4), np.float32)
        self.action_space = spaces.MultiDiscrete([int(self.single_action_space.n)] * num_envs)

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return self.seen(), {}

    def step(self, actions):
        self.time += 1
        rewards = np.asarray(actions) * self.rng.integers(0, 5, self.num_envs)
        over = np.full(self.num_envs, self.time % self.length == 0)
        return self.seen(), rewards.astype(float), over, np.zeros_like(over), {}

    def seen(self):
        if self.flaw == "shared generator" and self.view == "pixels":
            self.rng.random()
        return np.full((self.num_envs, 4), self.view == "pixels", np.float32)


class Walks:
    name, tasks, views = "walks", ("walk",), ("pixels", "figure_ground", "semantic")
    r_min, r_max = {"walk": 0.0}, {"walk": 18.0}

    def make_vec(self, task, *, view, split, num_envs, seed, flaw=None):
        return Walk(num_envs, view, seed, flaw)


def test_views_that_only_look_different_are_one_task():
    assert compare_views(Walks(), "walk") == compare_views(Walks(), "walk", flaw="none")
    assert compare_views(Walks(), "walk").replays
    assert not compare_views(Walks(), "walk").differences


@pytest.mark.parametrize(
    ("flaw", "what", "views"),
    [
        ("shared generator", "rewards", ["figure_ground", "semantic"]),
        ("shorter", "terminations", ["semantic"]),
        ("actions", "actions to choose from", ["semantic"]),
    ],
)
def test_a_view_that_changes_the_task_is_named_with_what_it_changes(flaw, what, views):
    found = compare_views(Walks(), "walk", flaw=flaw)
    assert found.replays
    assert [
        f"'{view}'" in said and f"other {what}" in said for view, said in zip(views, found.differences, strict=True)
    ]
    assert all(f"other {what} than under 'pixels'" in said for said in found.differences)


def test_without_a_seed_nothing_is_said():
    found = compare_views(Walks(), "walk", flaw="no seed")
    assert not found.replays
    assert not found.differences


@pytest.mark.parametrize(
    ("benchmark", "task"),
    [
        ("toy", "toy/hard-sight-hard-reward"),
        ("calibration", "calibration/perception-3-reward-2"),
        ("calibration-heldout", "calibration-heldout/perception-3-reward-3"),
        ("ctgraph", "ctgraph/depth-1-wait-0.5"),
        ("hardness", "hardness/discrete:delay=2"),
        ("hardness", "hardness/continuous"),
    ],
)
def test_our_own_views_are_one_task(benchmark, task):
    found = compare_views(benchmark, task, steps=32)
    assert (found.replays, found.differences) == (True, ())


@pytest.mark.parametrize("task", ["hardness/atari/Breakout", "hardness/procgen/coinrun", "hardness/gym/CartPole-v1"])
def test_an_environment_with_one_view_has_no_other(task):
    benchmark = get_benchmark("hardness")
    (own,) = benchmark.views_of(task)
    check_view(benchmark, task, own)
    with pytest.raises(InputError, match=rf"view=semantic: the task '{task}' has no such view; .*{own}"):
        check_view(benchmark, task, "semantic")
    with pytest.raises(InputError, match="view=semantic"):
        benchmark.make_vec(task, view="semantic", split="train", num_envs=1, seed=0)
