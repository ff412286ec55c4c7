"""The least k for which an MDP is k-QVI-solvable (definition 2.1 of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lcd.envs.errors import InputError
from lcd.horizon.exact import Exact, greedy_within
from lcd.horizon.layers import Layers
from lcd.horizon.ties import Ties

_TINY = 1e-290
"""Values of a smaller size cannot be told apart for sure: still smaller ones are rounded to 0."""


MOST_WORK = 1e11
"""Entries (states times actions, of a layer) that are backed up before no further k is looked at: some minutes."""
_BACKUP = 2_000
"""Backing up a layer takes as long as so many entries do, however small the layer is."""


@dataclass(frozen=True)
class Solvable:
    """What was found of k.

    Attributes:
        k: the least k, or None where no k that was tried is one.
        tried: the greatest k that was tried.
    """

    k: int | None
    tried: int


def least_k(
    layers: Layers, ties: Ties, exact: Exact, most: int | None = None, tell: Callable[[int], None] | None = None
) -> Solvable:
    """Act greedily on the random policy's Q, then after more Q-value iteration, until every such policy is optimal.

    Args:
        layers: the MDP.
        ties: when Q-values are tied.
        exact: the solved MDP; its discount is the one of planning.
        most: the greatest k to try; by default the horizon, or as far as `MOST_WORK` goes.
        tell: told of each k before it is tried.
    """
    horizon, within = layers.mdp.horizon, MOST_WORK if most is None else np.inf
    most = horizon if most is None else min(most, horizon)
    values = _Values(layers, exact.discount)
    if not ties.floor:
        _refuse_tiny(layers, exact.discount, values.held)
    for k in range(1, most + 1):
        if tell is not None:
            tell(k)
        if _solves(layers, ties, exact, values, k):
            return Solvable(k, k)
        if values.work > within:
            return Solvable(None, k)
    return Solvable(None, most)


class _Values:
    """The layers' values under more and more Q-value iteration, each worked out when it is first asked for.

    With i steps of iteration the value of a state is what one gets by acting optimally for i steps and at random from
    then on. Where at most i steps are left that is the optimal value already, and further iteration changes nothing.
    What is asked for is asked for the first layer first: so a layer never has more iteration behind it than those
    before it, and all that it takes is there: the next layer with one step less.

    Attributes:
        held: the values of each layer, as far as they were worked out.
        work: entries that were backed up.
    """

    def __init__(self, layers: Layers, discount: float) -> None:
        self.layers, self.discount, self.work = layers, discount, 0.0
        self.held = layers.induction("mean", discount)
        self._iterated = [0] * layers.mdp.horizon

    def of(self, t: int, iterations: int) -> np.ndarray:
        """The values of layer t after so many steps of iteration."""
        horizon, waiting = self.layers.mdp.horizon, [(t, iterations)]
        while waiting:
            t, wanted = waiting[-1]
            done = self._iterated[t]
            if done >= min(wanted, horizon - t):
                waiting.pop()
            elif t + 1 < horizon and self._iterated[t + 1] < min(done, horizon - t - 1):
                waiting.append((t + 1, done))
            else:
                following = self.held[t + 1] if t + 1 < horizon else np.zeros(0)
                self.held[t] = self.layers.backed_up(t, following, "max", self.discount)
                self._iterated[t] += 1
                self.work += (self.layers.size(t) + _BACKUP) * self.layers.mdp.num_actions
        return self.held[t]


def _solves(layers: Layers, ties: Ties, exact: Exact, values: _Values, k: int) -> bool:
    """Is every policy optimal that is greedy for the Q-values that go with these values, after k - 1 iterations?"""
    mdp = layers.mdp

    def greedy(t: int, place: np.ndarray, states: np.ndarray) -> np.ndarray:
        worth = np.empty((mdp.num_actions, len(states)))
        following = values.of(t + 1, k - 1) if t + 1 < mdp.horizon else np.zeros(0)
        for action in range(mdp.num_actions):
            after = layers.after[action][states]
            going_on = np.zeros(len(states))
            if t + 1 < mdp.horizon:
                alive = after < mdp.num_states
                going_on[alive] = following.take(layers.position(t + 1, after[alive]))
            worth[action] = layers.paid[action][states] + exact.discount * going_on
        return ties.greedy(worth, axis=0)

    return greedy_within(layers, greedy, exact.optimal_marks)


def _refuse_tiny(layers: Layers, discount: float, values: list[np.ndarray]) -> None:
    """Refuse what makes values that a float does not hold: where all rewards have one sign, tiny values count.

    A value is at least the (γ / A)th part of one of the next layer, so that before any is lost some are tiny.
    """
    mdp = layers.mdp
    sizes = np.abs(mdp.rewards[mdp.rewards != 0], dtype=np.float64)
    if sizes.size and float(sizes.min()) * discount ** (mdp.horizon - 1) < _TINY:
        raise InputError(
            f"discount={discount:g} and horizon={mdp.horizon} make values below {_TINY:g}, which cannot be told apart: "
            "give a shorter horizon, or discount=1."
        )
    if any(((np.abs(own) < _TINY) & (own != 0)).any() for own in values):
        raise InputError(
            f"horizon={mdp.horizon} with {mdp.num_actions} actions makes values of random play below {_TINY:g}, which "
            "cannot be told apart: give a shorter horizon."
        )
