"""bsuite on the real engine: its tasks as Gymnasium's, and what the rules say of their returns."""

import importlib.util
import os

import numpy as np
import pytest

from lcd.envs.behaviour_suite import BSUITE, SUITE, BehaviourSuite
from lcd.envs.benchmarks import get_benchmark, make_copies, reward_range
from lcd.envs.errors import InputError
from lcd.envs.protocols import NeedsPackages, Pairs, check_installed, offers
from lcd.envs.random_means import random_returns
from tests.envs.contract import BenchmarkContract

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("bsuite") is None and not os.environ.get("CI"), reason="bsuite is not installed"
)


class OfChance(BehaviourSuite):
    """Those in which something is left to chance: of the others all seeds are alike."""

    tasks = tuple(set(SUITE) - {"bsuite/bandit", "bsuite/deep_sea", "bsuite/discounting_chain"})


class TestBehaviourSuite(BenchmarkContract):
    benchmark = OfChance()


SMALL = [
    ("bsuite/bandit", {}),
    ("bsuite/catch", {}),
    ("bsuite/catch", {"rows": 4, "columns": 3}),
    ("bsuite/deep_sea", {"size": 4}),
    ("bsuite/deep_sea_stochastic", {"size": 4}),
    ("bsuite/discounting_chain", {"mapping_seed": 1}),
    ("bsuite/memory_len", {"memory_length": 3}),
    ("bsuite/memory_size", {"num_bits": 3}),
    ("bsuite/umbrella_length", {"chain_length": 4}),
    ("bsuite/umbrella_distract", {"n_distractor": 3}),
]


class Knobbed(BehaviourSuite):
    """A benchmark whose tasks have some knobs set."""

    def __init__(self, **knobs):
        self.knobs = knobs


@pytest.mark.parametrize(("task", "knobs"), SMALL, ids=str)
def test_a_random_agent_gets_what_the_rules_say(task, knobs):
    found = random_returns(Knobbed(**knobs), task, 1500).ravel()
    low, high = reward_range(BSUITE, task, 0, knobs)
    assert abs(found.mean() - low) <= 4 * found.std() / np.sqrt(found.size) + 1e-9
    assert low < high


@pytest.mark.parametrize(("size", "deterministic"), [(4, True), (5, True), (3, False), (4, False)])
def test_the_best_of_the_deep_sea_by_backward_induction(size, deterministic):
    """The best mean return by its rules, cell by cell."""
    cost, fails = 0.01 / size, 0.0 if deterministic else 1 / size
    best = np.zeros(size)
    for _ in range(size):
        paid = np.array([1.0 if column == size - 1 else 0.0 for column in range(size)])
        left = np.array([best[max(column - 1, 0)] for column in range(size)])
        right = np.array([best[min(column + 1, size - 1)] for column in range(size)])
        best = np.maximum(left, paid - cost + (1 - fails) * right + fails * best)
    task = "bsuite/deep_sea" if deterministic else "bsuite/deep_sea_stochastic"
    assert reward_range(BSUITE, task, 0, {"size": size})[1] == pytest.approx(best[0], abs=1e-12)


def test_rewards_and_ends_are_the_suites():
    env = make_copies(BSUITE, "bsuite/discounting_chain", view="state", split="train", num_envs=2, seed=0)
    assert env.single_observation_space.shape == (2,)
    env.reset()
    for step in range(1, 101):
        _, rewards, terminated, truncated, _ = env.step(np.array([2, 4]))
        assert rewards.tolist() == [1.0 * (step == 10), 1.1 * (step == 100)]
        assert not truncated.any()
        assert terminated.all() == (step == 100)


def test_what_it_offers_and_what_it_refuses(monkeypatch):
    assert get_benchmark("bsuite") is BSUITE
    assert offers(BSUITE, NeedsPackages)
    assert not offers(BSUITE, Pairs)
    with pytest.raises(InputError, match="bsuite/deep_sea has no knob 'sise'; did you mean 'size'"):
        make_copies(BSUITE, "bsuite/deep_sea", view="state", split="train", num_envs=1, seed=0, sise=3)
    monkeypatch.setattr("lcd.envs.viewed_benchmark.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"bsuite and dm_env, which are not installed: pip install .*\[bsuite\]"):
        check_installed(BSUITE, BSUITE.tasks)
