"""What backward induction over time says of an MDP: the best and the random return, and how often chance is optimal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

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

    @property
    def random_guessing(self) -> float:
        """Episodes of random actions, log 2 / p_opt, of which the best is optimal with a probability of at least ½."""
        return math.log(2) / self.p_opt if self.p_opt > 0 else math.inf


def solve(layers: Layers, ties: Ties, discount: float) -> Exact:
    """Solve an MDP by one pass over its layers, the last first."""
    horizon, start = layers.mdp.horizon, layers.mdp.start
    following = [np.zeros(0)] * 4
    marks: list[np.ndarray] = [np.zeros(0)] * horizon
    planned: list[np.ndarray] = [np.zeros(0)] * horizon
    for t in reversed(range(horizon)):
        following, marks[t], planned[t] = _layer(layers, ties, discount, t, following)
    first = int(layers.position(0, np.array([start]))[0])
    best, random, chance, _ = (float(values[first]) for values in following)
    agrees = _all_within(layers, planned, marks)
    return Exact(best, random, chance, discount, agrees, marks)


def _layer(
    layers: Layers, ties: Ties, discount: float, t: int, following: list[np.ndarray]
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Solve one layer.

    Returns:
        Best and random values, the chance of the best, and best discounted values; the optimal actions, and those that
        are optimal under the discount.
    """
    dense = [layers.spread(t + 1, values) for values in following]
    last = t + 1 == layers.mdp.horizon
    # After an end, and after the horizon, there is nothing left to be missed.
    dense[2][-1] = 1.0
    if last:
        dense[2][:] = 1.0
    size, actions = layers.size(t), layers.mdp.num_actions
    found = [np.empty(size) for _ in range(4)]
    marks = np.empty((-(-actions // 8), size), dtype=np.uint8)
    planned = np.empty_like(marks)

    def work(place: slice, rows: Rows) -> None:
        count = place.stop - place.start
        best, chance, thrifty = (np.empty((actions, count)) for _ in range(3))
        random = np.zeros(count)
        for action in range(actions):
            after, paid = layers.successors(action, rows), layers.rewards(action, rows)
            np.add(dense[0].take(after), paid, out=best[action])
            random += dense[1].take(after)
            random += paid
            chance[action] = dense[2].take(after)
            np.add(dense[3].take(after) * discount, paid, out=thrifty[action])
        found[0][place] = greatest = best.max(axis=0)
        found[1][place] = random / actions
        optimal = best >= greatest - ties.returns
        found[2][place] = (chance * optimal).sum(axis=0) / actions
        found[3][place] = thrifty.max(axis=0)
        marks[:, place] = _packed(optimal)
        planned[:, place] = _packed(ties.greedy(thrifty, axis=0))

    layers.blocks(t, work)
    return found, marks, planned


def unpacked(marks: np.ndarray, place: np.ndarray, actions: int) -> np.ndarray:
    """(n, actions) truth values from the bits of some places of a layer."""
    found = np.empty((len(place), actions), dtype=bool)
    for action in range(actions):
        found[:, action] = marks[action // 8].take(place) >> (action % 8) & 1
    return found


def _packed(truths: np.ndarray) -> np.ndarray:
    """(bytes, n): the truth values (actions, n) as bits; numpy's own packing is slow along the first axis."""
    bits = np.zeros((-(-len(truths) // 8), truths.shape[1]), dtype=np.uint8)
    for action, row in enumerate(truths):
        bits[action // 8] |= row.view(np.uint8) << (action % 8)
    return bits


def _all_within(layers: Layers, chosen: list[np.ndarray], allowed: list[np.ndarray]) -> bool:
    """Are all actions that policies may choose, in states that those reach, among the allowed ones?"""

    def marked(t: int, place: np.ndarray, states: np.ndarray) -> np.ndarray:
        return unpacked(chosen[t], place, layers.mdp.num_actions)

    return greedy_within(layers, marked, allowed)


def greedy_within(layers: Layers, chosen: Any, allowed: list[np.ndarray]) -> bool:
    """Is every policy optimal that takes only chosen actions?

    In a deterministic MDP a policy is optimal when every action on its one path is; so what a policy does in states
    that no such policy reaches does not matter.

    Args:
        layers: the MDP.
        chosen: (t, places, states) -> (n, actions) truth values: which actions a policy may take there.
        allowed: the optimal actions as bits, of each layer.
    """
    mdp = layers.mdp
    reached = np.array([mdp.start], dtype=np.intp)
    for t in range(mdp.horizon):
        place = layers.position(t, reached)
        taken = chosen(t, place, reached)
        if (taken & ~unpacked(allowed[t], place, mdp.num_actions)).any():
            return False
        row, action = np.nonzero(taken)
        reached = layers.distinct(mdp.transitions[reached[row], action])
        if not reached.size:
            return True
    return True
