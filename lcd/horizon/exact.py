"""What backward induction over time says of an MDP: the best and the random return, and how often chance is optimal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lcd.horizon.layers import Layers, Rows
from lcd.horizon.ties import Ties


@dataclass(frozen=True, eq=False)
class Exact:
    """An MDP solved.

    Attributes:
        optimal_return: J*, undiscounted.
        random_return: the undiscounted mean return of uniformly random actions.
        p_opt: probability that a sequence of random actions has the return J*.
        discount: the γ of planning.
        discount_agrees: is every policy that is greedy for the discounted optimal values optimal without discount?
        optimal_marks: for t = 0 … horizon - 1 which actions are optimal, undiscounted, as bits (see `unpacked`).
    """

    optimal_return: float
    random_return: float
    p_opt: float
    discount: float
    discount_agrees: bool
    optimal_marks: list[np.ndarray]


Chosen = Callable[[int, np.ndarray, np.ndarray], np.ndarray]
"""(t, places in the layer, states) -> (actions, n) truth values: which actions a policy may take."""
BEST, RANDOM, CHANCE, PLANNED = range(4)
_COLUMNS = 4
"""Best and random values, the chance that random actions are optimal, best discounted values: side by side, so that
where an action leads is looked up once for all of them."""


def solve(layers: Layers, ties: Ties, discount: float) -> Exact:
    """Solve an MDP by one pass over its layers, the last first."""
    horizon, start = layers.mdp.horizon, layers.mdp.start
    # After an end, and after the horizon, nothing is earned any more, and nothing left to be missed.
    following = np.zeros((layers.mdp.num_states + 1, _COLUMNS))
    following[:, CHANCE] = 1.0
    marks: list[np.ndarray] = [np.zeros(0)] * horizon
    planned: list[np.ndarray] = [np.zeros(0)] * horizon
    for t in reversed(range(horizon)):
        values, marks[t], planned[t] = _layer(layers, ties, discount, t, following)
        layer = layers.states[t]
        following[slice(0, -1) if layer is None else layer] = values
    best, random, chance, _ = (float(value) for value in following[start])
    agrees = greedy_within(layers, lambda t, place, states: unpacked(planned[t], place, layers.mdp.num_actions), marks)
    return Exact(best, random, chance, discount, agrees, marks)


def _layer(
    layers: Layers, ties: Ties, discount: float, t: int, following: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Solve one layer.

    Args:
        layers: the MDP.
        ties: when values are equal.
        discount: the γ of planning.
        t: which layer.
        following: (states + 1, columns) values of the layer after it, by state.

    Returns:
        (size, columns) values; the optimal actions as bits, and those that are optimal under the discount.
    """
    size, actions = layers.size(t), layers.mdp.num_actions
    found = np.empty((size, _COLUMNS))
    marks = np.empty((-(-actions // 8), size), dtype=np.uint8)
    planned = np.empty_like(marks)

    def work(place: slice, rows: Rows) -> None:
        count = place.stop - place.start
        room, random = np.empty((count, _COLUMNS)), np.zeros(count)
        best, chance, plans = (np.empty((actions, count)) for _ in range(3))
        for action in range(actions):
            paid = layers.rewards(action, rows)
            going_on = following.take(layers.successors(action, rows), axis=0, out=room, mode="clip")
            np.add(going_on[:, BEST], paid, out=best[action])
            random += going_on[:, RANDOM]
            random += paid
            chance[action] = going_on[:, CHANCE]
            np.multiply(going_on[:, PLANNED], discount, out=plans[action])
            plans[action] += paid
        found[place, BEST] = greatest = best.max(axis=0)
        found[place, RANDOM] = random / actions
        found[place, PLANNED] = plans.max(axis=0)
        optimal = best >= greatest - ties.returns
        chance *= optimal
        found[place, CHANCE] = chance.sum(axis=0) / actions
        marks[:, place] = _packed(optimal)
        planned[:, place] = _packed(ties.greedy(plans, axis=0))

    layers.blocks(t, work)
    return found, marks, planned


def unpacked(marks: np.ndarray, place: np.ndarray, actions: int) -> np.ndarray:
    """(actions, n) truth values from the bits of some places of a layer."""
    found = np.empty((actions, len(place)), dtype=bool)
    for action in range(actions):
        found[action] = marks[action // 8].take(place) >> (action % 8) & 1
    return found


def _packed(truths: np.ndarray) -> np.ndarray:
    """(bytes, n): the truth values (actions, n) as bits; numpy's own packing is slow along the first axis."""
    bits = np.zeros((-(-len(truths) // 8), truths.shape[1]), dtype=np.uint8)
    for action, row in enumerate(truths):
        bits[action // 8] |= row.view(np.uint8) << (action % 8)
    return bits


def greedy_within(layers: Layers, chosen: Chosen, allowed: list[np.ndarray]) -> bool:
    """Is every policy optimal that takes only chosen actions?

    In a deterministic MDP a policy is optimal when every action on its one path is; so what a policy does in states
    that no such policy reaches does not matter.

    Args:
        layers: the MDP.
        chosen: which actions a policy may take.
        allowed: the optimal actions as bits, of each layer.
    """
    mdp = layers.mdp
    reached = np.array([mdp.start], dtype=np.intp)
    for t in range(mdp.horizon):
        place = layers.position(t, reached)
        taken = chosen(t, place, reached)
        if (taken & ~unpacked(allowed[t], place, mdp.num_actions)).any():
            return False
        reached = layers.following(reached, taken)
        if not reached.size:
            return True
    return True
