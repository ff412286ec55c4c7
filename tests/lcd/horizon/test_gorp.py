"""GORP's success, m and H against exact probabilities by brute force; bounds hold; counted rollouts are rollouts."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from slow_horizon import Slow

from lcd.envs.tabular.mdp import TabularMDP
from lcd.horizon import rollouts as rollouts_module
from lcd.horizon.analysis import Settings, analyse
from lcd.horizon.bounds import upper_bound
from lcd.horizon.exact import solve
from lcd.horizon.gorp import Gorp, timesteps
from lcd.horizon.layers import Layers
from lcd.horizon.search import Search, evidence
from lcd.horizon.ties import Ties

MOST_M = 6


def tiny(seed: int, least: int = 2) -> tuple[np.ndarray, np.ndarray, int]:
    """A random MDP with a horizon from `least` to two more."""
    rng = np.random.default_rng(1000 + seed)
    states, horizon = rng.integers(2, 6), rng.integers(least, least + 3)
    transitions = rng.integers(0 if least > 2 else -1, states, size=(states, 2))
    rewards = rng.integers(-1, 3, size=(states, 2)) / 2.0
    if seed % 2:
        rewards *= rng.random((states, 2)) < 0.5
    return transitions, rewards, int(horizon)


def made(arrays, seed: int = 0, discount: float = 0.99) -> Gorp:
    mdp = TabularMDP(*arrays)
    layers, ties = Layers(mdp, threads=1), Ties.of(mdp)
    return Gorp(layers, solve(layers, ties, discount), ties, np.random.default_rng(seed))


@pytest.mark.parametrize(("k", "m"), [(1, 1), (1, 3), (2, 1), (2, 2), (3, 1)])
def test_success_is_as_frequent_as_it_should_be(k, m):
    """With 600 runs each, all of these within five standard errors."""
    between = 0
    for seed in range(20):
        arrays = tiny(seed, k + 2)
        chance = Slow(*arrays, 0.99).success(k, m)
        won = made(arrays, seed).successes(k, m, 600) / 600
        assert abs(won - chance) <= 5 * math.sqrt(chance * (1 - chance) / 600) + 1e-6, (seed, won, chance)
        between += 0.02 < chance < 0.98
    assert between >= 3


@pytest.mark.parametrize("hundred", range(2))
def test_m_and_the_effective_horizon_are_those_of_brute_force(hundred):
    """Where exact probabilities are not too near to ½ to tell, on 200 random MDPs; and always within the bounds."""
    told = 0
    for seed in range(100 * hundred, 100 * hundred + 100):
        arrays = tiny(seed)
        horizon, slow = arrays[2], Slow(*arrays, 0.99)
        search = Search(made(arrays, seed), timesteps=timesteps(horizon, 2, horizon, MOST_M), runs=300)
        found = search.horizon()
        chances = {(k, m): slow.success(k, m) for k in range(1, horizon + 1) for m in range(1, most_m(found, k) + 1)}
        exact = [k + math.log2(m) for (k, m), chance in chances.items() if chance >= 0.5]
        if not exact:
            assert found.h is None or found.high is None, seed
            continue
        if all(abs(chance - 0.5) > 0.12 for chance in chances.values()):
            told += 1
            assert found.h == pytest.approx(min(exact)), seed
        assert found.low <= min(exact) + 1e-9, seed
        assert found.high is None or found.high >= min(exact) - 1e-9, seed
    assert told > 60


def most_m(found, k: int) -> int:
    """How far brute force has to go for a k: as far as the search went."""
    return next((min(each.most, each.m or MOST_M, MOST_M) for each in found.tried if each.k == k), 0)


def test_bounds_hold():
    """H ≤ the bound from the tables ≤ T, and GORP with the k and m of the bound succeeds."""
    below = 0
    for seed in range(60):
        arrays = tiny(seed)
        gorp = made(arrays, seed)
        bound = upper_bound(gorp.layers, gorp.ties, gorp.exact)
        if bound is None:
            continue
        assert bound.h <= arrays[2]
        assert gorp.successes(bound.k, int(bound.m), 40) >= 20, seed
        found = Search(gorp, timesteps=1e5, runs=100).horizon()
        assert found.low <= bound.h + 1e-9
        below += bound.h < arrays[2]
    assert below


def test_an_easy_bound_is_less_than_the_horizon():
    """One reward at once, for one of two actions: k = 1 and a handful of rollouts are surely enough."""
    transitions = np.array([[1, 1], [1, 1]])
    mdp = TabularMDP(transitions, np.array([[1.0, 0.0], [0.0, 0.0]]), 12)
    found = analyse(mdp)
    assert found.bound.h < 2
    assert (found.horizon.h, found.horizon.low, found.horizon.high) == (1.0, 1.0, 1.0)
    assert found.gorp_timesteps == 12 * 12 * 2
    assert found.random_timesteps == pytest.approx(12 * math.log(2) / 0.5)


def test_counted_rollouts_have_the_means_of_rollouts(monkeypatch):
    rng = np.random.default_rng(5)
    transitions = rng.integers(-1, 6, size=(6, 3))
    rewards = rng.normal(size=(6, 3))
    gorp = made((transitions, rewards, 8)).rollouts
    leaves = np.repeat(np.arange(6), 400)
    one_by_one = gorp.mean_returns(leaves, 5, 20)
    monkeypatch.setattr(rollouts_module, "_FEWEST_COUNTED", 0)
    counted = gorp.mean_returns(leaves, 5, 20)
    for state in range(6):
        one, other = one_by_one[leaves == state], counted[leaves == state]
        error = math.sqrt((one.var() + other.var()) / 400)
        assert abs(one.mean() - other.mean()) < 4 * error + 1e-9
        assert one.std() == pytest.approx(other.std(), rel=0.25, abs=1e-9)


def test_many_rollouts_of_one_leaf_are_split_up(monkeypatch):
    rng = np.random.default_rng(5)
    gorp = made((rng.integers(0, 6, size=(6, 3)), rng.random((6, 3)), 8)).rollouts
    whole = gorp.mean_returns(np.array([0, 1]), 5, 300)
    monkeypatch.setattr(rollouts_module, "EPISODES_AT_ONCE", 64)
    parts = gorp.mean_returns(np.array([0, 1]), 5, 300)
    assert np.allclose(whole, parts, atol=0.25)


@pytest.mark.parametrize("counted", [1, 10**9])
def test_returns_are_discounted_in_double_precision(monkeypatch, counted):
    # There is one action, so that every rollout has the same return.
    monkeypatch.setattr("lcd.horizon.rollouts._FEWEST_COUNTED", counted)
    found = made((np.array([[1], [2], [3], [4], [-1]]), np.array([[0.0], [0.0], [3.0], [1.0], [2.0]]), 5)).rollouts
    (mean,) = found.mean_returns(np.array([0]), left=5, m=7)
    assert mean == pytest.approx(3 * 0.99**2 + 0.99**3 + 2 * 0.99**4, rel=1e-14)


def test_simulated_steps_are_counted():
    """No ends: T = 4, k = 1, so that 2 · m episodes of 4, 3, 2 and 1 steps are simulated, the last without rollouts."""
    gorp = made((np.zeros((1, 2), int), np.ones((1, 2)), 4))
    assert gorp.successes(1, 3, 1) == 1
    assert gorp.simulated == 2 * 3 * (4 + 3 + 2 + 1)
    assert timesteps(4, 2, 1, 3) == 4 * 4 * 2 * 3


def test_a_test_that_looks_after_every_run_keeps_its_error():
    """Of a fair coin at most a share α of all sequences ever reaches the limit (and 400 of them stray by 3 in 100)."""
    rng = np.random.default_rng(0)
    limit, wrong = math.log(1 / 0.05), 0
    for _ in range(400):
        won = np.cumsum(rng.random(300) < 0.5)
        wrong += any(evidence(int(w), n) >= limit for n, w in enumerate(won, 1))
    assert wrong / 400 <= 0.05 + 0.03


def test_a_budget_that_is_too_small_leaves_h_open_and_bounds_it_from_below():
    transitions = np.full((8, 3), 7)
    transitions[np.arange(7), 0] = np.arange(1, 8)
    rewards = np.zeros((8, 3))
    rewards[6, 0] = 1.0
    rewards[0, 1] = 0.4
    found = analyse(TabularMDP(transitions, rewards, 7), Settings(timesteps=2000)).horizon
    assert (found.h, found.m, found.high) == (None, None, None)
    assert 2 < found.low <= 7
    assert analyse(TabularMDP(transitions, rewards, 7), Settings(timesteps=1e6)).horizon.h <= 7


def test_the_same_seed_gives_the_same_horizon():
    mdp = TabularMDP(*tiny(7))
    one, other = (analyse(mdp, Settings(seed=3)).horizon for _ in range(2))
    assert one == other
