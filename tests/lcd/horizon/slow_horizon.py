"""The effective horizon of tiny MDPs by brute force: all sequences of actions, all policies, exact probabilities.

Written from the paper alone; nothing of the code under test is used.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from functools import cache

import numpy as np

SAME = 1e-9


class Slow:
    """A tiny deterministic MDP as lists, looked at in the slowest way."""

    def __init__(self, transitions, rewards, horizon: int, discount: float) -> None:
        self.after = [[int(s) for s in row] for row in transitions]
        self.paid = [[float(np.float32(r)) for r in row] for row in rewards]
        self.horizon, self.discount = horizon, discount
        self.actions = range(len(self.after[0]))
        self.q_cached = cache(self._q)
        self.returns_cached = cache(self._returns)

    def play(self, state: int, sequence, discount: float = 1.0) -> tuple[float, int]:
        """The discounted return of a sequence of actions, and where it leads (-1: the episode is over)."""
        total, factor = 0.0, 1.0
        for action in sequence:
            if state == -1:
                break
            total += factor * self.paid[state][action]
            state, factor = self.after[state][action], factor * discount
        return total, state

    def sequences(self, length: int):
        return itertools.product(self.actions, repeat=length)

    def best_return(self) -> float:
        return max(self.play(0, each)[0] for each in self.sequences(self.horizon))

    def random_return(self) -> float:
        returns = [self.play(0, each)[0] for each in self.sequences(self.horizon)]
        return sum(returns) / len(returns)

    def p_opt(self) -> float:
        best = self.best_return()
        returns = [self.play(0, each)[0] for each in self.sequences(self.horizon)]
        return sum(each > best - SAME for each in returns) / len(returns)

    def _q(self, k: int, t: int, state: int, action: int) -> float:
        """Q^k at step t = 1 … T: play the action, then k - 1 best ones, then at random."""
        after = self.after[state][action]
        if t == self.horizon or after == -1:
            return self.paid[state][action]
        later = [self.q_cached(max(k - 1, 1), t + 1, after, each) for each in self.actions]
        going_on = sum(later) / len(later) if k == 1 else max(later)
        return self.paid[state][action] + self.discount * going_on

    def policies_returns(self, k: int) -> list[float]:
        """The undiscounted returns of every policy that is greedy for Q^k, by walking all its ties."""

        def walk(t: int, state: int):
            if t > self.horizon or state == -1:
                yield 0.0
                return
            worth = [self.q_cached(k, t, state, action) for action in self.actions]
            for action in self.actions:
                if worth[action] >= max(worth) - SAME * abs(max(worth)) - 1e-13:
                    for rest in walk(t + 1, self.after[state][action]):
                        yield self.paid[state][action] + rest

        return list(walk(1, 0))

    def least_k(self) -> int | None:
        best = self.best_return()
        for k in range(1, self.horizon + 1):
            if min(self.policies_returns(k)) > best - SAME:
                return k
        return None

    # GORP, by the exact distribution of its estimates.

    def _returns(self, t: int, state: int) -> dict[float, float]:
        """Discounted random returns from step t on, with their probabilities."""
        found: dict[float, float] = defaultdict(float)
        left = self.horizon - t + 1
        if left <= 0 or state == -1:
            return {0.0: 1.0}
        for each in self.sequences(left):
            found[round(self.play(state, each, self.discount)[0], 9)] += len(self.actions) ** -left
        return dict(found)

    def mean_of(self, t: int, state: int, m: int) -> dict[float, float]:
        """The distribution of the mean of m random returns."""
        one = self.returns_cached(t, state)
        sums = {0.0: 1.0}
        for _ in range(m):
            more: dict[float, float] = defaultdict(float)
            for total, p in sums.items():
                for value, q in one.items():
                    more[round(total + value, 7)] += p * q
            sums = more
        return {round(total / m, 7): p for total, p in sums.items()}

    def chance_of_each_action(self, t: int, state: int, k: int, m: int) -> list[float]:
        """How probably GORP(k, m) takes each action at step t, ties at random."""
        length = min(k, self.horizon - t + 1)
        bests = []
        for first in self.actions:
            best = {-np.inf: 1.0}
            for rest in self.sequences(length - 1):
                worth, leaf = self.play(state, (first, *rest), self.discount)
                factor = self.discount**length
                means = self.mean_of(t + length, leaf, m)
                best = greater_of(best, {round(worth + factor * value, 6): p for value, p in means.items()})
            bests.append(best)
        chances = [0.0] * len(self.actions)
        # For each value of an action the others are below, or equal, independently.
        for action in self.actions:
            for value, p in bests[action].items():
                others = [bests[other] for other in self.actions if other != action]
                below = [sum(q for v, q in each.items() if v < value) for each in others]
                equal = [each.get(value, 0.0) for each in others]
                for tied in itertools.product((0, 1), repeat=len(others)):
                    chance = np.prod([equal[i] if tie else below[i] for i, tie in enumerate(tied)])
                    chances[action] += p * chance / (1 + sum(tied))
        return chances

    def success(self, k: int, m: int) -> float:
        """The probability that GORP(k, m) returns an optimal sequence."""
        best = self.best_return()

        def walk(t: int, state: int, so_far: float) -> float:
            if t > self.horizon or state == -1:
                return float(so_far > best - SAME)
            left = max(self.play(state, each)[0] for each in self.sequences(self.horizon - t + 1))
            if so_far + left < best - SAME:
                return 0.0
            chances = self.chance_of_each_action(t, state, k, m)
            return sum(
                p * walk(t + 1, self.after[state][a], so_far + self.paid[state][a]) for a, p in enumerate(chances) if p
            )

        return walk(1, 0, 0.0)


def greater_of(one: dict[float, float], other: dict[float, float]) -> dict[float, float]:
    """The distribution of the greater of two independent values."""
    found: dict[float, float] = defaultdict(float)
    for value, p in one.items():
        for another, q in other.items():
            found[max(value, another)] += p * q
    return found
