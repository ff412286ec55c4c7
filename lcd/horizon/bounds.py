"""Bounds on the effective horizon and on what it takes to solve an MDP, from its tables alone.

H ≤ T: GORP(T, 1) plays every sequence of actions. And where acting greedily after k - 1 steps of iteration is optimal
with something to spare, means of m rollouts are good enough: with g the distance of the best action's Q^k from the best
suboptimal one's in a state that such policies reach, and v a bound on the variance of the rollouts' returns there,
Bernstein's inequality and a union over T steps and A^k sequences give

    m_k ≤ max 16 v / g² · log(2 T A^k),

v being (Q - worst)(best - worst) of the rollout's first state and action. The bound is that of Laidlaw et al. (2023),
with the constant of their published analyses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lcd.horizon.exact import Exact, unpacked
from lcd.horizon.layers import Layers
from lcd.horizon.ties import Ties

MOST_ENTRIES = 30_000_000
"""Entries of states, steps and actions up to which the bound on m is worked out: it takes four passes for every k."""
MOST_LAYERS = 200_000
"""Layers after which no further k is looked at: a long horizon has as many values of k as layers."""
_SMALLEST = 5e-324
"""What a spread is at least: a smaller one is rounded to 0, as if nothing varied."""


@dataclass(frozen=True)
class Bound:
    """An upper bound on the effective horizon.

    Attributes:
        h: k + log_A m, at most the horizon.
        k: the k that attains it.
        m: as many rollouts as are surely enough.
    """

    h: float
    k: int
    m: float


def upper_bound(layers: Layers, ties: Ties, exact: Exact) -> Bound | None:
    """The least bound over all k; None where the discounted optimum is none without discount."""
    mdp = layers.mdp
    if not exact.discount_agrees:
        return None
    best = Bound(float(mdp.horizon), mdp.horizon, 1.0)
    if layers.entries * mdp.num_actions > MOST_ENTRIES or mdp.num_actions == 1:
        return best
    random, worst, greatest = (layers.induction(choose, exact.discount) for choose in ("mean", "min", "max"))
    spreads = _first_spreads(layers, exact.discount, random, worst, greatest)
    values = random
    k = 1
    while k < best.h and k * mdp.horizon <= MOST_LAYERS:
        m = _enough(layers, ties, exact, values, spreads, k)
        if m is not None:
            h = k + math.log(m) / math.log(mdp.num_actions)
            best = min(best, Bound(h, k, m), key=lambda bound: bound.h)
        values = [
            layers.backed_up(t, values[t + 1] if t + 1 < mdp.horizon else np.zeros(0), "max", exact.discount)
            for t in range(mdp.horizon)
        ]
        spreads = _later_spreads(layers, exact.discount, spreads)
        k += 1
    return best


def _q(layers: Layers, t: int, values: list[np.ndarray], discount: float) -> np.ndarray:
    """(actions, size of layer t): Q-values from the values of the layer after it."""
    rows = layers.rows(t)
    dense = layers.spread(t + 1, values[t + 1] if t + 1 < layers.mdp.horizon else np.zeros(0))
    return np.stack(
        [
            layers.rewards(action, rows) + discount * dense.take(layers.successors(action, rows))
            for action in range(layers.mdp.num_actions)
        ]
    )


def _first_spreads(
    layers: Layers, discount: float, random: list[np.ndarray], worst: list[np.ndarray], greatest: list[np.ndarray]
) -> list[np.ndarray]:
    """For every layer (actions, size): the most that the variance of a random return can be."""
    spreads = []
    for t in range(layers.mdp.horizon):
        low = _q(layers, t, worst, discount)
        spreads.append((_q(layers, t, random, discount) - low) * (_q(layers, t, greatest, discount) - low))
    return spreads


def _later_spreads(layers: Layers, discount: float, spreads: list[np.ndarray]) -> list[np.ndarray]:
    """The same where one more action is played before rollouts begin: the worst that may then follow."""
    following = [each.max(axis=0) for each in spreads]
    found = []
    for t in range(layers.mdp.horizon):
        rows = layers.rows(t)
        dense = layers.spread(t + 1, following[t + 1] if t + 1 < layers.mdp.horizon else np.zeros(0))
        after = [dense.take(layers.successors(action, rows)) for action in range(layers.mdp.num_actions)]
        found.append(discount**2 * np.stack(after))
    return found


def _enough(
    layers: Layers, ties: Ties, exact: Exact, values: list[np.ndarray], spreads: list[np.ndarray], k: int
) -> float | None:
    """Rollouts that are enough for GORP(k, ·); None where none are: a suboptimal action is among the best."""
    mdp = layers.mdp
    factor = 16 * (math.log(2 * mdp.horizon) + k * math.log(mdp.num_actions))
    reached, most = np.array([mdp.start], dtype=np.intp), 1.0
    for t in range(mdp.horizon):
        place = layers.position(t, reached)
        worth = _q(layers, t, values, exact.discount)[:, place]
        optimal = unpacked(exact.optimal_marks[t], place, mdp.num_actions)
        wrong = np.where(optimal, -np.inf, worth).max(axis=0)
        best = worth.max(axis=0)
        gap = best - wrong
        if (gap <= ties.relative * np.abs(best) + ties.floor).any():
            return None
        spread = np.maximum(spreads[t][:, place].max(axis=0), _SMALLEST)
        # The square of a gap may be too small for a float, and what is needed too large for one.
        with np.errstate(over="ignore"):
            most = max(most, float(np.ceil(factor * spread / gap / gap).max()))
        reached = layers.following(reached, worth > wrong)
        if not reached.size:
            break
    return most
