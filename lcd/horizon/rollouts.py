"""Random rollouts on a tabular MDP, many at once: what they earn, and how many steps they took."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lcd.horizon.layers import Layers

EPISODES_AT_ONCE = 1 << 17
_FEWEST_COUNTED = 128
"""From so many rollouts for each state on, moving counts of rollouts is faster than moving rollouts."""


class OutOfStepsError(Exception):
    """More steps were simulated than there were to be."""


@dataclass
class Rollouts:
    """Rollouts of one MDP.

    Attributes:
        layers: the MDP.
        discount: γ.
        rng: where random actions come from.
        simulated: environment steps that were simulated so far, without those that nothing depends on.
        most: of which many `OutOfStepsError` is raised.
    """

    layers: Layers
    discount: float
    rng: np.random.Generator
    simulated: int = 0
    most: float = math.inf

    def __post_init__(self) -> None:
        mdp = self.layers.mdp
        after, self._actions, self.ends = np.stack(self.layers.after, axis=1), mdp.num_actions, mdp.num_states
        # The end leads to itself and pays nothing; what a step leads to and what it pays lie side by side.
        packed = np.empty((self.ends + 1, self._actions, 2), dtype=np.int32)
        packed[:-1, :, 0], packed[-1, :, 0] = after, self.ends
        packed[:-1, :, 1], packed[-1, :, 1] = mdp.rewards.view(np.int32), 0
        self._outcomes = packed.view(np.int64).ravel()

    def count(self, steps: int) -> None:
        """Count simulated steps."""
        self.simulated += steps
        if self.simulated > self.most:
            raise OutOfStepsError

    def step(self, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where steps lead, and what they pay; an edge is state * actions + action.

        Rewards lie there as float32; discounted in it, returns that are equal would not be tied.
        """
        outcomes = self._outcomes.take(edges)
        return outcomes.view(np.int32)[::2].astype(np.int64), outcomes.view(np.float32)[1::2].astype(np.float64)

    def mean_returns(self, leaves: np.ndarray, left: int, m: int) -> np.ndarray:
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
            nodes, paid = self.step(edges)
            self.count(len(nodes))
            returns += paid * weight
            weight *= self.discount
            going_on = nodes != self.ends
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
        states, actions = self.ends, self._actions
        nodes, owner, counts = leaves.astype(np.int64), np.arange(len(leaves)), np.full(len(leaves), m)
        means, weight = np.zeros(len(leaves)), 1.0 / m
        even = np.full(actions, 1.0 / actions)
        for _ in range(left):
            self.count(int(counts.sum()))
            split = self.rng.multinomial(counts, even).ravel()
            nodes, paid = self.step((nodes[:, None] * actions + np.arange(actions)).ravel())
            owner = np.repeat(owner, actions)
            means += weight * np.bincount(owner, split * paid, len(leaves))
            weight *= self.discount
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
