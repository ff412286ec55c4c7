"""GORP(k, m), greedy over the random policy: for every step, all sequences of k actions, and m random rollouts of each.

At step t it plays, from where its own earlier choices lead, every sequence of k actions (fewer where the horizon comes
first) m times, goes on at random, and takes the first action of the sequence with the best mean discounted return, one
of them at random where several are tied. All runs, sequences and rollouts of a step are one array.

In a deterministic MDP a run is optimal if and only if each of its actions is, so that a run ends at its first mistake.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lcd.horizon.exact import Exact, unpacked
from lcd.horizon.layers import Layers
from lcd.horizon.ties import Ties

EPISODES_AT_ONCE = 1 << 17
_FEWEST_COUNTED = 128
"""From so many rollouts for each state on, moving counts of rollouts is faster than moving rollouts."""


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
        simulated: environment steps that were simulated so far, without those that nothing depends on.
    """

    layers: Layers
    exact: Exact
    ties: Ties
    rng: np.random.Generator
    simulated: int = 0

    def __post_init__(self) -> None:
        mdp = self.layers.mdp
        after, self._actions, self._ends = np.stack(self.layers.after, axis=1), mdp.num_actions, mdp.num_states
        # The end leads to itself and pays nothing; what a step leads to and what it pays lie side by side.
        packed = np.empty((self._ends + 1, self._actions, 2), dtype=np.int32)
        packed[:-1, :, 0], packed[-1, :, 0] = after, self._ends
        packed[:-1, :, 1], packed[-1, :, 1] = mdp.rewards.view(np.int32), 0
        self._outcomes = packed.view(np.int64).ravel()

    def successes(self, k: int, m: int, runs: int) -> int:
        """How many of `runs` independent runs of GORP(k, m) find an optimal policy."""
        at_once = max(1, (1 << 22) // self._actions**k)
        return sum(self._run(k, m, min(at_once, runs - done)) for done in range(0, runs, at_once))

    def _run(self, k: int, m: int, runs: int) -> int:
        mdp = self.layers.mdp
        states = np.full(runs, mdp.start, dtype=np.int64)
        over = 0
        for t in range(mdp.horizon):
            if not states.size:
                break
            optimal = unpacked(self.exact.optimal_marks[t], self.layers.position(t, states), self._actions)
            chosen = self._chosen(states, t, k, m)
            kept = optimal[chosen, np.arange(len(states))]
            states = self._step(states[kept] * self._actions + chosen[kept])[0]
            ended = states == self._ends
            over += int(ended.sum())
            states = states[~ended]
        return over + len(states)

    def _step(self, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where steps lead, and what they pay; an edge is state * actions + action.

        Rewards lie there as float32; discounted in it, returns that are equal would not be tied.
        """
        outcomes = self._outcomes.take(edges)
        return outcomes.view(np.int32)[::2].astype(np.int64), outcomes.view(np.float32)[1::2].astype(np.float64)

    def _chosen(self, states: np.ndarray, t: int, k: int, m: int) -> np.ndarray:
        """The first action of the best sequence, for every run."""
        discount, actions = self.exact.discount, self._actions
        length = min(k, self.layers.mdp.horizon - t)
        leaves, worth = states, np.zeros(len(states))
        for depth in range(length):
            edges = (leaves[:, None] * actions + np.arange(actions)).ravel()
            leaves, paid = self._step(edges)
            worth = np.repeat(worth, actions) + discount**depth * paid
        self.simulated += length * m * len(leaves)
        left = self.layers.mdp.horizon - t - length
        alive = np.flatnonzero(leaves != self._ends)
        if left and alive.size:
            worth[alive] += discount**length * self._mean_returns(leaves[alive], left, m)
        best = worth.reshape(len(states), actions, -1).max(axis=2)
        tied = self.ties.greedy(best, axis=1)
        return np.where(tied, self.rng.random(tied.shape), -1.0).argmax(axis=1)

    def _mean_returns(self, leaves: np.ndarray, left: int, m: int) -> np.ndarray:
        """The mean discounted return of `m` rollouts of random actions from each leaf, over the steps that are left."""
        if m >= _FEWEST_COUNTED * self.layers.mdp.num_states:
            at_once = max(1, EPISODES_AT_ONCE // self.layers.mdp.num_states)
            parts = [self._counted(part, left, m) for part in _parts(leaves, at_once)]
            return np.concatenate(parts)
        if m > EPISODES_AT_ONCE:
            pieces = [EPISODES_AT_ONCE] * (m // EPISODES_AT_ONCE)
            pieces += [m % EPISODES_AT_ONCE] if m % EPISODES_AT_ONCE else []
            return np.array([sum(self._sums(leaf[None], left, n)[0] for n in pieces) / m for leaf in leaves])
        return np.concatenate([self._sums(part, left, m) / m for part in _parts(leaves, max(1, EPISODES_AT_ONCE // m))])

    def _sums(self, leaves: np.ndarray, left: int, m: int) -> np.ndarray:
        """The summed discounted returns of `m` rollouts from each leaf, rollout by rollout."""
        nodes = np.repeat(leaves, m)
        owner: np.ndarray | None = None
        sums, returns = np.zeros(len(leaves)), np.zeros(len(nodes))
        weight = 1.0
        for _ in range(left):
            edges = nodes * self._actions
            edges += self.rng.integers(self._actions, size=len(nodes), dtype=np.uint16)
            nodes, paid = self._step(edges)
            self.simulated += len(nodes)
            returns += paid * weight
            weight *= self.exact.discount
            going_on = nodes != self._ends
            if going_on.mean() < 0.5:
                owner = np.repeat(np.arange(len(leaves)), m) if owner is None else owner
                sums += np.bincount(owner[~going_on], returns[~going_on], len(leaves))
                nodes, returns, owner = nodes[going_on], returns[going_on], owner[going_on]
                if not nodes.size:
                    return sums
        if owner is None:
            return returns.reshape(len(leaves), m).sum(axis=1)
        return sums + np.bincount(owner, returns, len(leaves))

    def _counted(self, leaves: np.ndarray, left: int, m: int) -> np.ndarray:
        """The mean discounted returns from each leaf, by how many of its rollouts are in each state.

        However the rollouts in a state are numbered, their next actions are multinomial: the sum of the returns has
        the same distribution as rollout by rollout.
        """
        states, actions = self._ends, self._actions
        nodes, owner, counts = leaves.astype(np.int64), np.arange(len(leaves)), np.full(len(leaves), m)
        means, weight = np.zeros(len(leaves)), 1.0 / m
        even = np.full(actions, 1.0 / actions)
        for _ in range(left):
            self.simulated += int(counts.sum())
            split = self.rng.multinomial(counts, even).ravel()
            nodes, paid = self._step((nodes[:, None] * actions + np.arange(actions)).ravel())
            owner = np.repeat(owner, actions)
            means += weight * np.bincount(owner, split * paid, len(leaves))
            weight *= self.exact.discount
            kept = (split > 0) & (nodes != states)
            together, place = np.unique(owner[kept] * states + nodes[kept], return_inverse=True)
            if not together.size:
                break
            counts = np.bincount(place, split[kept]).astype(np.int64)
            owner, nodes = together // states, together % states
        return means


def _parts(rows: np.ndarray, at_once: int) -> list[np.ndarray]:
    """Rows in parts of at most so many."""
    return [rows[first : first + at_once] for first in range(0, len(rows), at_once)]
