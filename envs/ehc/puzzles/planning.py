"""Planning problems: a goal of several predicates, and a reward that is the change in how many of them hold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lcd.envs.tabular.closure import Rules

Moves = Callable[[np.ndarray], np.ndarray]
"""(n,) codes -> (n, actions) codes of the next states; a move that is not allowed leads to where it began."""
Goal = Callable[[np.ndarray], np.ndarray]
"""(n,) codes -> (n, predicates) truth values."""


def planning_rules(moves: Moves, goal: Goal) -> Rules:
    """Rules that pay for each predicate that begins to hold, and take as much for each that ends to.

    The rewards of an episode add up to how many predicates hold at its end, less those of its first state. An episode
    ends when all hold.
    """

    def rules(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        after = moves(codes)
        holds = goal(after.ravel()).reshape(*after.shape, -1)
        gained = holds.sum(axis=-1) - goal(codes).sum(axis=-1)[:, None]
        return after, gained.astype(np.float32), np.asarray(holds.all(axis=-1))

    return rules


def distances(moves: Moves, code: int) -> tuple[np.ndarray, np.ndarray]:
    """All states that can be reached from one, and how many moves each is away, the nearest first.

    Args:
        moves: where each action leads.
        code: of the state to begin in. Where every move can be taken back, the distances are those to this state.
    """
    frontier, known = np.array([code], dtype=np.int64), np.array([code], dtype=np.int64)
    layers = []
    while frontier.size:
        layers.append(frontier)
        after = np.unique(moves(frontier))
        frontier = after[~_within(after, known)]
        known = np.sort(np.concatenate([known, frontier]))
    steps = np.repeat(np.arange(len(layers)), [len(layer) for layer in layers])
    return np.concatenate(layers), steps


def random_code(moves: Moves, code: int, seed: int) -> int:
    """The code of a state drawn from all that can be reached from one; every one is as likely."""
    codes = np.sort(distances(moves, code)[0])
    return int(codes[np.random.Generator(np.random.PCG64(seed)).integers(len(codes))])


def _within(codes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which codes are among the known ones, which are sorted."""
    place = np.minimum(np.searchsorted(known, codes), known.size - 1)
    return known[place] == codes


def digits(codes: np.ndarray, count: int, bits: int) -> np.ndarray:
    """(n, count) digits of `bits` bits each, the lowest first."""
    return codes[:, None] >> (np.arange(count, dtype=np.int64) * bits) & ((1 << bits) - 1)


def packed(values: np.ndarray, bits: int) -> np.ndarray:
    """The codes of digits along the last axis, the inverse of `digits`."""
    return (values.astype(np.int64) << (np.arange(values.shape[-1], dtype=np.int64) * bits)).sum(axis=-1)
