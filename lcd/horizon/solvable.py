"""The least k for which an MDP is k-QVI-solvable (definition 2.1 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lcd.envs.errors import InputError
from lcd.horizon.exact import Exact, greedy_within
from lcd.horizon.layers import Layers
from lcd.horizon.ties import Ties

_TINY = 1e-290
"""Values of a smaller size cannot be told apart for sure: still smaller ones are rounded to 0."""


@dataclass(frozen=True)
class Solvable:
    """What was found of k.

    Attributes:
        k: the least k, or None where no k that was tried is one.
        tried: the greatest k that was tried.
    """

    k: int | None
    tried: int


def least_k(layers: Layers, ties: Ties, exact: Exact, most: int | None = None) -> Solvable:
    """Act greedily on the random policy's Q, then after more Q-value iteration, until every such policy is optimal.

    With i steps of iteration the value of a state is what one gets by acting optimally for i steps and at random from
    then on. Where at most i steps are left that is the optimal value already: later steps have less to do.

    Args:
        layers: the MDP.
        ties: when Q-values are tied.
        exact: the solved MDP; its discount is the one of planning.
        most: the greatest k to try; by default the horizon.
    """
    horizon, discount = layers.mdp.horizon, exact.discount
    most = horizon if most is None else min(most, horizon)
    values = layers.induction("mean", discount)
    if not ties.floor:
        _refuse_tiny(layers, discount, values)
    for k in range(1, most + 1):
        if _solves(layers, ties, exact, values):
            return Solvable(k, k)
        if k == most:
            break
        for t in range(1, horizon - k + 1):
            following = values[t + 1] if t + 1 < horizon else np.zeros(0)
            values[t] = layers.backed_up(t, following, "max", discount)
    return Solvable(None, most)


def _solves(layers: Layers, ties: Ties, exact: Exact, values: list[np.ndarray]) -> bool:
    """Is every policy optimal that is greedy for the Q-values that go with these values of the layers?"""
    mdp = layers.mdp

    def greedy(t: int, place: np.ndarray, states: np.ndarray) -> np.ndarray:
        worth = np.empty((mdp.num_actions, len(states)))
        for action in range(mdp.num_actions):
            after = layers.after[action][states]
            going_on = np.zeros(len(states))
            if t + 1 < mdp.horizon:
                alive = after < mdp.num_states
                going_on[alive] = values[t + 1].take(layers.position(t + 1, after[alive]))
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
