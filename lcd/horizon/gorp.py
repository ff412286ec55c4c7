"""GORP(k, m), greedy over the random policy: for every step, all sequences of k actions, and m random rollouts of each.

At step t it plays, from where its own earlier choices lead, every sequence of k actions (fewer where the horizon comes
first) m times, goes on at random, and takes the first action of the sequence with the best mean discounted return, one
of them at random where several are tied. All runs, sequences and rollouts of a step are one array; where that would be
too long, those that cannot matter are left out (`merged`).

In a deterministic MDP a run is optimal if and only if each of its actions is, so that a run ends at its first mistake.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lcd.horizon.exact import Exact, unpacked
from lcd.horizon.layers import Layers
from lcd.horizon.merged import Merged
from lcd.horizon.rollouts import Rollouts
from lcd.horizon.tails import Tails
from lcd.horizon.ties import Ties

FEWEST_MERGED = 1 << 17
"""From so many rollouts of a decision on it pays to ask which of them matter."""


def timesteps(horizon: int, actions: int, k: int, m: float) -> float:
    """Environment steps of a run of GORP(k, m) as the papers count them, an episode as T steps: T² · A^k · m."""
    return float(horizon) ** 2 * float(actions) ** k * m


@dataclass
class Gorp:
    """Runs of GORP on one MDP.

    Attributes:
        layers: the MDP.
        exact: the solved MDP: which actions are optimal, and the discount.
        ties: when mean returns are tied.
        rng: where random actions come from.
        rollouts: what plays them.
    """

    layers: Layers
    exact: Exact
    ties: Ties
    rng: np.random.Generator
    rollouts: Rollouts = field(init=False)

    def __post_init__(self) -> None:
        self.rollouts = Rollouts(self.layers, self.exact.discount, self.rng)
        self._merged: Merged | None = None

    @property
    def simulated(self) -> int:
        """Environment steps that were simulated so far, without those that nothing depends on."""
        return self.rollouts.simulated

    def successes(self, k: int, m: int, runs: int) -> int:
        """How many of `runs` independent runs of GORP(k, m) find an optimal policy."""
        at_once = max(1, (1 << 22) // self.layers.mdp.num_actions**k)
        return sum(self._run(k, m, min(at_once, runs - done)) for done in range(0, runs, at_once))

    def _run(self, k: int, m: int, runs: int) -> int:
        mdp = self.layers.mdp
        states = np.full(runs, mdp.start, dtype=np.int64)
        over = 0
        for t in range(mdp.horizon):
            if not states.size:
                break
            optimal = unpacked(self.exact.optimal_marks[t], self.layers.position(t, states), mdp.num_actions)
            chosen = self._chosen(states, t, k, m)
            kept = optimal[chosen, np.arange(len(states))]
            states = self.rollouts.step(states[kept] * mdp.num_actions + chosen[kept])[0]
            ended = states == mdp.num_states
            over += int(ended.sum())
            states = states[~ended]
        return over + len(states)

    def _chosen(self, states: np.ndarray, t: int, k: int, m: int) -> np.ndarray:
        """The first action of the best sequence, for every run."""
        discount, actions = self.exact.discount, self.layers.mdp.num_actions
        if float(actions) ** k * m >= FEWEST_MERGED and (merged := self._merging()):
            return np.array([merged.chosen(int(state), t, k, m) for state in states])
        length = min(k, self.layers.mdp.horizon - t)
        leaves, worth = states, np.zeros(len(states))
        for depth in range(length):
            edges = (leaves[:, None] * actions + np.arange(actions)).ravel()
            leaves, paid = self.rollouts.step(edges)
            worth = np.repeat(worth, actions) + discount**depth * paid
        self.rollouts.count(length * m * len(leaves))
        left = self.layers.mdp.horizon - t - length
        alive = np.flatnonzero(leaves != self.layers.mdp.num_states)
        if left and alive.size:
            worth[alive] += discount**length * self.rollouts.mean_returns(leaves[alive], left, m)
        best = worth.reshape(len(states), actions, -1).max(axis=2)
        tied = self.ties.greedy(best, axis=1)
        return np.where(tied, self.rng.random(tied.shape), -1.0).argmax(axis=1)

    def _merging(self) -> Merged | None:
        """Decisions without what cannot matter, where the tables that they take are not too large."""
        if self._merged is None and Tails.fit(self.layers):
            self._merged = Merged(self.rollouts, self.exact, self.ties)
        return self._merged
