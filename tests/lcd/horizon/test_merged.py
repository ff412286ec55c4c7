"""Decisions that leave out what cannot matter are those of playing everything: exact probabilities, and GORP."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from slow_horizon import Slow
from test_gorp import made, tiny

from lcd.envs.tabular.mdp import TabularMDP
from lcd.horizon import tails as tails_module
from lcd.horizon.analysis import Settings, analyse
from lcd.horizon.tails import Tails


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setattr("lcd.horizon.gorp.FEWEST_MERGED", 0)


def same(won: int, runs: int, chance: float) -> bool:
    """Within five standard errors."""
    return abs(won / runs - chance) <= 5 * math.sqrt(chance * (1 - chance) / runs) + 2e-3


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(("k", "m"), [(1, 3), (2, 2), (3, 1)])
def test_success_is_as_frequent_as_it_should_be(always, monkeypatch, k, m, listed):
    if not listed:
        monkeypatch.setattr(tails_module, "_MOST_RETURNS", 0)
    between = 0
    for seed in range(6):
        arrays = tiny(seed, k + 2)
        chance = Slow(*arrays, 0.99).success(k, m)
        won = made(arrays, seed).successes(k, m, 300)
        assert same(won, 300, chance), (seed, won, chance)
        between += 0.02 < chance < 0.98
    assert between


def game(seed: int, states: int = 60, actions: int = 6, horizon: int = 9) -> tuple[np.ndarray, np.ndarray, int]:
    """Wins, losses and draws at the ends of random ways; two actions at a time lead to the same."""
    rng = np.random.default_rng(seed)
    transitions = rng.integers(-4, states, size=(states, actions // 2)).repeat(2, axis=1)
    paid = rng.choice([1.0, -1.0, 0.0], p=[0.05, 0.7, 0.25], size=transitions.shape)
    return np.maximum(transitions, -1), np.where(transitions < 0, paid, 0.0), horizon


@pytest.mark.parametrize(("k", "m"), [(2, 40), (3, 9)])
def test_games_come_out_as_when_all_is_played(monkeypatch, k, m):
    """In these two GORP succeeds sometimes."""
    told, runs = 0, 200
    for seed in (6, 7):
        gorp = made(game(seed), seed)
        one, steps = gorp.successes(k, m, runs), gorp.simulated
        with monkeypatch.context() as patch:
            patch.setattr("lcd.horizon.gorp.FEWEST_MERGED", 0)
            other = gorp.successes(k, m, runs)
        both = (one + other) / (2 * runs)
        assert abs(one - other) / runs <= 4.5 * math.sqrt(2 * both * (1 - both) / runs) + 1e-9, (seed, one, other)
        assert gorp.simulated - steps < steps
        told += 0.05 < both < 0.95
    assert told


@pytest.mark.parametrize("seed", range(4))
def test_chances_of_means_are_at_most_what_is_told(seed):
    """Against the exact distribution of a mean; and the returns that are listed are those of random play."""
    arrays = tiny(seed, 4)
    slow, gorp = Slow(*arrays, 0.99), made(arrays)
    tails = Tails(gorp.layers, 0.99)
    for t in range(1, arrays[2]):
        states = gorp.layers.states[t] if gorp.layers.states[t] is not None else np.arange(len(arrays[0]))
        for place, state in enumerate(states):
            unit, exact = 0.99**t, slow.returns_cached(t + 1, int(state))
            for value, chance in exact.items():
                near = np.abs(tails.returns[t] / unit - value) < 1e-7
                assert tails.chances[t][place, near].sum() == pytest.approx(chance)
            for m in (1, 3):
                for value in (means := slow.mean_of(t + 1, int(state), m)):
                    chance = sum(p for other, p in means.items() if other >= value - 1e-9)
                    short = tails.best[t][place] - (value - 1e-6) * unit
                    bound = tails.log_chance(t, np.array([place]), np.array([short]), m)[0]
                    assert chance <= math.exp(bound) + 1e-9


def test_sums_of_listed_returns_are_those_of_rollouts():
    gorp = made(game(3))
    tails, t = Tails(gorp.layers, 0.99), 2
    places = np.repeat(np.arange(gorp.layers.size(t)), 300)
    states = places if gorp.layers.states[t] is None else gorp.layers.states[t][places]
    for m in (3, 50):
        drawn = tails.drawn(t, places, m, np.random.default_rng(1)) / 0.99**t
        played = gorp.rollouts.mean_returns(states, 7, m) * m
        for one in np.unique(places)[:8]:
            ours, theirs = drawn[places == one], played[places == one]
            error = math.sqrt((ours.var() + theirs.var()) / 300)
            assert abs(ours.mean() - theirs.mean()) <= 5 * error + 1e-9


def test_many_actions_that_lead_to_the_same_are_looked_far_ahead():
    """14 actions, and the way on is one of them: beyond 14^6 sequences nothing of it is played one by one."""
    length, actions = 12, 14
    transitions = np.full((length, actions), 0)
    transitions[np.arange(length), np.arange(length) % actions] = np.arange(1, length + 1)
    transitions[-1, (length - 1) % actions] = -1
    rewards = np.zeros((length, actions))
    rewards[-1, (length - 1) % actions] = 1.0
    rewards[:-1, 13] = 0.01
    found = analyse(TabularMDP(transitions, rewards, length), Settings(timesteps=1e4, up_to=6.5, most_steps=1e9))
    assert found.horizon.h is None
    assert found.horizon.low > 6.4


def test_no_more_steps_are_simulated_than_were_asked_for():
    """What is looked at further ends in the middle of a decision."""
    mdp = TabularMDP(*game(6))
    first = analyse(mdp, Settings(timesteps=1e4)).horizon
    assert first.h is None
    short, long = (analyse(mdp, Settings(timesteps=1e4, up_to=6, most_steps=most)).horizon for most in (5e6, 1e8))
    assert first.simulated < short.simulated < 6e6 < long.simulated
    assert first.low <= short.low <= long.low
