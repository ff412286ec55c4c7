"""J*, the random return, p_opt and k against brute force on 200 random MDPs; ties, ends and sticky actions by hand."""

import itertools
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from slow_horizon import Slow

from lcd.envs.errors import InputError
from lcd.envs.tabular.mdp import TabularMDP
from lcd.horizon.analysis import Settings, analyse
from lcd.horizon.exact import solve
from lcd.horizon.layers import Layers
from lcd.horizon.solvable import least_k
from lcd.horizon.ties import Ties


def tiny(seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """A random MDP of one of several kinds: sparse or dense rewards, of one sign or both, with ends or without."""
    rng = np.random.default_rng(seed)
    states, actions, horizon = rng.integers(2, 7), rng.integers(2, 4), rng.integers(1, 6)
    transitions = rng.integers(-1 if seed % 3 else 0, states, size=(states, actions))
    low = -2 if seed % 2 else 0
    rewards = rng.integers(low, 3, size=(states, actions)) / 2
    if seed % 5 < 3:
        rewards *= rng.random((states, actions)) < 0.3
    if seed % 7 == 0:
        rewards = rewards * 0.3
    return transitions, rewards, int(horizon)


def back_to_the_left(length: int, horizon: int) -> TabularMDP:
    """The way to the right pays at its end; at every place .01 can be had at once, which leads back to the left end."""
    places = np.arange(length)
    transitions = np.stack([np.maximum(places - 1, 0), np.minimum(places + 1, length - 1), 0 * places], axis=1)
    rewards = np.zeros((length, 3))
    rewards[:, 2], rewards[-2, 1] = 0.01, 1.0
    return TabularMDP(transitions, rewards, horizon)


def looked_at(transitions, rewards, horizon: int, discount: float = 0.99):
    mdp = TabularMDP(transitions, rewards, horizon)
    layers, ties = Layers(mdp, threads=1), Ties.of(mdp)
    exact = solve(layers, ties, discount)
    return exact, least_k(layers, ties, exact)


@pytest.mark.parametrize("hundred", range(2))
def test_random_mdps_are_as_brute_force_says(hundred):
    found = set()
    for seed in range(100 * hundred, 100 * hundred + 100):
        arrays = tiny(seed)
        slow = Slow(*arrays, 0.99)
        exact, solvable = looked_at(*arrays)
        assert exact.optimal_return == pytest.approx(slow.best_return(), abs=1e-6), seed
        assert exact.random_return == pytest.approx(slow.random_return(), abs=1e-6), seed
        assert exact.p_opt == pytest.approx(slow.p_opt()), seed
        assert solvable.k == slow.least_k(), seed
        agrees = min(slow.policies_returns(slow.horizon)) > slow.best_return() - 1e-6
        assert exact.discount_agrees == agrees, seed
        found.add((solvable.k, exact.discount_agrees))
    # Otherwise they would not have told much.
    assert len({k for k, agrees in found if agrees}) >= 3


@pytest.mark.parametrize("discount", [0.5, 1.0])
def test_other_discounts_too(discount):
    for seed in range(200, 230):
        arrays = tiny(seed)
        assert looked_at(*arrays, discount)[1].k == Slow(*arrays, discount).least_k(), seed


def corridor(length: int, reward: float = 1.0, tempting: float = 0.0) -> TabularMDP:
    """One way to a reward; every other action leads to where nothing is paid, the first one with a gift."""
    transitions = np.full((length + 1, 2), length)
    rewards = np.zeros((length + 1, 2))
    transitions[np.arange(length), 0] = np.arange(1, length + 1)
    rewards[length - 1, 0] = reward
    rewards[0, 1] = tempting
    return TabularMDP(transitions, rewards, length)


def test_what_tempts_has_to_be_looked_beyond():
    """After the first of 4 steps random play meets the reward with probability 2^-3, which is less than .2."""
    assert analyse(corridor(4, 1.0, 0.1), Settings(timesteps=0, discount=1.0)).solvable.k == 1
    assert analyse(corridor(4, 1.0, 0.2), Settings(timesteps=0, discount=1.0)).solvable.k == 2
    assert analyse(corridor(4, 1.0, 0.3), Settings(timesteps=0, discount=1.0)).solvable.k == 3
    assert analyse(corridor(4, 1.0, 0.6), Settings(timesteps=0, discount=1.0)).solvable.k == 4


def test_tied_actions_have_to_be_optimal_all():
    """Two actions are worth the same to random play, but one of them alone can be followed by the best."""
    transitions = [[1, 2], [3, 3], [3, 3], [-1, -1]]
    rewards = np.array([[0, 0], [1, 0], [0.5, 0.5], [0, 0]])
    mdp = TabularMDP(np.array(transitions), rewards, 3)
    assert analyse(mdp, Settings(timesteps=0)).solvable.k == 2
    # What is tied within a tolerance counts as tied.
    rewards[1, 0] += 2.0**-12
    assert analyse(TabularMDP(np.array(transitions), rewards, 3), Settings(timesteps=0)).solvable.k == 1
    assert analyse(TabularMDP(np.array(transitions), rewards, 3), Settings(timesteps=0, tolerance=0.01)).solvable.k == 2


def test_tiny_values_of_sparse_rewards_are_no_ties():
    """After 40 steps of 2 actions random play is worth 1e-12, and still tells right from wrong."""
    found = analyse(corridor(40), Settings(timesteps=0))
    assert found.solvable.k == 1
    assert found.p_opt == pytest.approx(0.5**40)


def test_values_that_a_float_does_not_hold_are_refused():
    """Random play finds a reward behind 1,100 steps of two with probability 2^-1100, which would count as never."""
    with pytest.raises(InputError, match=r"horizon=1100 with 2 actions makes values of random play below"):
        looked_at(*(getattr(corridor(1100), key) for key in ("transitions", "rewards", "horizon")), 1.0)
    with pytest.raises(InputError, match=r"discount=1e-100 and horizon=4 make values below"):
        analyse(corridor(4), Settings(timesteps=0, discount=1e-100))


@pytest.mark.filterwarnings("error")
def test_a_bound_of_tiny_gaps_is_none_that_is_too_small():
    """The square of 2^-600 is 0 as a float; with so many steps A^k is none at all."""
    assert analyse(corridor(600), Settings(timesteps=0, discount=1.0, most_k=1)).bound.h == 600


def test_equal_sums_of_rounded_rewards_are_equal():
    """0.1 + 0.2 and 0.3 + 0 differ as float32."""
    mdp = TabularMDP(np.array([[1, 2], [3, 3], [3, 3], [3, 3]]), [[0.1, 0.3], [0.2, 0.2], [0, 0], [0, 0]], 2)
    found = analyse(mdp, Settings(timesteps=0, discount=1.0))
    assert found.p_opt == 1.0
    assert found.solvable.k == 1


def test_only_states_that_greedy_policies_reach_count():
    """In state 2 random play misleads, but nobody who is greedy comes there."""
    transitions = np.array([[1, 2], [1, 1], [3, 4], [5, 5], [5, 6], [5, 5], [5, 5]])
    rewards = np.zeros((7, 2))
    rewards[0, 0], rewards[2, 0], rewards[4, 1] = 9.0, 1.0, 1.5
    mdp = TabularMDP(transitions, rewards, 4)
    assert analyse(mdp, Settings(timesteps=0)).solvable.k == 1
    assert analyse(mdp.changed(start=2), Settings(timesteps=0)).solvable.k == 2


def test_a_discount_that_prefers_the_early_reward_is_told():
    """Waiting is worth a little more, and with a discount a little less."""
    transitions = np.array([[1, 2], [-1, -1], [3, 3], [-1, -1]])
    rewards = np.array([[1, 0], [0, 0], [0, 0], [1.005, 1.005]])
    found = analyse(TabularMDP(transitions, rewards, 3), Settings(timesteps=0))
    assert (found.discount_agrees, found.solvable.k, found.bound) == (False, None, None)
    assert analyse(TabularMDP(transitions, rewards, 3), Settings(timesteps=0, discount=1.0)).discount_agrees


def test_one_state_one_action_and_one_step():
    found = analyse(TabularMDP(np.array([[-1]]), np.array([[2.0]]), 1))
    assert (found.optimal_return, found.random_return, found.p_opt, found.solvable.k) == (2.0, 2.0, 1.0, 1)
    assert (found.horizon.h, found.horizon.k, found.horizon.m) == (1.0, 1, 1)


def fixed_return(mdp: TabularMDP, actions: tuple[int, ...]) -> float:
    """The undiscounted return of a sequence of executed actions."""
    total, state = 0.0, mdp.start
    for action in actions:
        if state < 0:
            break
        total += float(mdp.rewards[state, action])
        state = int(mdp.transitions[state, action])
    return total


class SlowSticky:
    """A tiny MDP with sticky actions, by recursion over step, state and last action."""

    def __init__(self, mdp: TabularMDP, discount: float) -> None:
        self.mdp, self.discount = mdp, discount
        self.worth = cache(self._worth)

    def executed(self, t: int, state: int, action: int, depth: float) -> float:
        """What executing an action is worth, with `depth` best choices after it and random ones from then on."""
        return float(self.mdp.rewards[state, action]) + self.discount * self.worth(
            t + 1, int(self.mdp.transitions[state, action]), action, depth
        )

    def _worth(self, t: int, state: int, last: int | None, depth: float) -> float:
        if t == self.mdp.horizon or state == -1:
            return 0.0
        each = [self.executed(t, state, action, max(depth - 1, 0)) for action in range(self.mdp.num_actions)]
        own = max(each) if depth else float(np.mean(each))
        return own if last is None else (1 - self.mdp.sticky) * own + self.mdp.sticky * each[last]

    def worst_greedy_return(self, k: int) -> float:
        """The least undiscounted return of a policy that is greedy for Q^k."""

        @cache
        def walk(t: int, state: int, last: int | None) -> float:
            if t == self.mdp.horizon or state == -1:
                return 0.0
            # What is repeated by chance adds the same to the worth of all choices.
            each = [self.executed(t, state, action, k - 1) for action in range(self.mdp.num_actions)]
            onward = [
                float(self.mdp.rewards[state, a]) + walk(t + 1, int(self.mdp.transitions[state, a]), a)
                for a in range(self.mdp.num_actions)
            ]
            least = min(onward[a] for a, q in enumerate(each) if q >= max(each) - 1e-6 * abs(max(each)) - 1e-13)
            return least if last is None else (1 - self.mdp.sticky) * least + self.mdp.sticky * onward[last]

        return walk(0, self.mdp.start, None)

    def gap(self, k: int) -> float:
        """The least that a best choice for Q^k is ahead of the others, in all histories."""
        least, waiting = np.inf, {(0, self.mdp.start, None)}
        while waiting:
            t, state, last = waiting.pop()
            each = np.array([self.executed(t, state, action, k - 1) for action in range(self.mdp.num_actions)])
            chosen = each if last is None else (1 - self.mdp.sticky) * each + self.mdp.sticky * each[last]
            worse = chosen[chosen < chosen.max() - 1e-9]
            least = min(least, chosen.max() - worse.max()) if worse.size else least
            for action, after in enumerate(self.mdp.transitions[state]):
                if after >= 0 and t + 1 < self.mdp.horizon:
                    waiting.add((t + 1, int(after), action))
        return least


@pytest.mark.parametrize("seed", range(20))
def test_sticky_actions_are_as_all_histories_say(seed):
    transitions, rewards, horizon = tiny(seed)
    mdp = TabularMDP(transitions, rewards, horizon, sticky=0.25)
    found, slow = analyse(mdp), SlowSticky(mdp, 1.0)
    best = slow.worth(0, 0, None, np.inf)
    assert found.optimal_return == pytest.approx(best)
    assert found.random_return == pytest.approx(slow.worth(0, 0, None, 0))
    assert found.p_opt is found.horizon is None
    planning = SlowSticky(mdp, 0.99)
    enough = (k for k in range(1, horizon + 1) if planning.worst_greedy_return(k) > best - 1e-5)
    solving = list(enough)
    assert found.solvable.k == next(iter(solving), None)
    returns = [fixed_return(mdp, actions) for actions in itertools.product(range(mdp.num_actions), repeat=horizon)]
    span = max(returns) - min(returns)
    gaps = {k: min(1, planning.gap(k) / span) if span else 1 for k in solving}
    expected = min((k - 2 * np.log(gap) / np.log(mdp.num_actions) for k, gap in gaps.items()), default=None)
    assert (found.stochastic.h if found.stochastic else None) == (None if expected is None else pytest.approx(expected))


def test_layers_taken_as_all_states_change_nothing():
    """With more than half of the states in a layer it is taken as all; blocks and threads do not matter either."""
    rng = np.random.default_rng(0)
    transitions = rng.integers(-1, 3000, size=(3000, 4))
    rewards = (rng.random((3000, 4)) < 0.05).astype(float)
    mdp = TabularMDP(transitions, rewards, 12)
    dense, sparse = Layers(mdp, threads=2), Layers(mdp, threads=1)
    assert any(layer is None for layer in dense.states)
    reached = {0}
    for t in range(12):
        sparse.states[t] = np.array(sorted(reached))
        reached = {int(s) for s in transitions[sorted(reached)].ravel() if s >= 0}
    for one, other in itertools.pairwise(
        (solve(layers, Ties.of(mdp), 0.99), least_k(layers, Ties.of(mdp), solve(layers, Ties.of(mdp), 0.99)))
        for layers in (dense, sparse)
    ):
        assert one[0].optimal_return == other[0].optimal_return
        assert one[0].random_return == pytest.approx(other[0].random_return)
        assert one[0].p_opt == pytest.approx(other[0].p_opt)
        assert one[1] == other[1]


def plainly_least_k(mdp: TabularMDP, discount: float) -> int:
    """K of an MDP without ends whose Q-values are never tied: all layers, iterated all together."""
    right = [best.argmax(axis=1) for best in q_of(mdp, 1.0, np.max)]
    q = q_of(mdp, discount, np.mean)
    for k in itertools.count(1):
        state, good = mdp.start, True
        for t in range(mdp.horizon):
            action = q[t][state].argmax()
            good &= bool(action == right[t][state])
            state = mdp.transitions[state, action]
        if good:
            return k
        following = [*q[1:], np.zeros_like(q[0])]
        q = [mdp.rewards + discount * each.max(axis=1)[mdp.transitions] for each in following]


def q_of(mdp: TabularMDP, discount: float, mean) -> list[np.ndarray]:
    values, found = np.zeros(mdp.num_states), []
    for _ in range(mdp.horizon):
        found.append(mdp.rewards + discount * values[mdp.transitions])
        values = mean(found[-1], axis=1)
    return found[::-1]


def test_k_is_found_in_a_long_corridor_and_each_k_is_told():
    mdp, told = back_to_the_left(12, 300), []
    layers, ties = Layers(mdp, threads=1), Ties.of(mdp)
    found = least_k(layers, ties, solve(layers, ties, 0.99), tell=told.append)
    assert found.k == plainly_least_k(mdp, 0.99) > 5
    assert told == list(range(1, found.k + 1))


def test_a_long_horizon_does_not_look_for_k_for_ever(monkeypatch):
    mdp = back_to_the_left(12, 300)
    layers, ties = Layers(mdp, threads=1), Ties.of(mdp)
    exact = solve(layers, ties, 0.99)
    monkeypatch.setattr("lcd.horizon.solvable.MOST_WORK", 1e5)
    short = least_k(layers, ties, exact)
    assert short.k is None
    assert 1 < short.tried < least_k(layers, ties, exact, most=50).k


def test_whole_numbers_are_exact_up_to_what_float32_holds():
    """A million against one less: only one of the two returns is the best; 16,777,217 no float32 has."""
    mdp = TabularMDP(np.array([[-1, 1], [-1, -1]]), np.array([[999_999, 0], [1_000_000, 1_000_000]]), 20)
    found = analyse(mdp, Settings(discount=1.0))
    assert (found.p_opt, found.solvable.k) == (0.5, 1)
    assert Ties.of(mdp).relative < Ties.of(TabularMDP(mdp.transitions, mdp.rewards * 17, 20)).relative
    assert Ties.of(mdp).relative < Ties.of(TabularMDP(mdp.transitions, mdp.rewards + 0.5, 20)).relative


def halves():
    """Two halves of the states that lead to each other."""
    half = np.arange(6, 12)
    after = np.concatenate([np.stack([half, np.roll(half, 1)], 1), np.stack([half - 6, np.roll(half, 2) - 6], 1)])
    return TabularMDP(after, np.zeros((12, 2)), 1000)


def test_layers_that_take_turns_are_held_once():
    layers = Layers(halves(), threads=1)
    assert len({id(layer) for layer in layers.states}) < 12
    assert all(np.array_equal(layers.states[t], layers.states[t + 2]) for t in range(20, 998))
    assert not np.array_equal(layers.states[500], layers.states[501])


def test_a_long_horizon_is_refused_before_its_layers_are_made(monkeypatch):
    monkeypatch.setattr("lcd.horizon.layers._FEW_ENTRIES", 10)
    monkeypatch.setattr("lcd.process.limits.machine_memory", lambda: 2000)
    with pytest.raises(InputError, match="horizon=1000 would take at least"):
        Layers(halves(), threads=1)


def test_where_no_episode_fits_the_timesteps_h_is_at_least_one():
    found = analyse(back_to_the_left(5, 4000), Settings(most_k=6)).horizon
    assert (found.h, found.low) == (None, 1.0)
