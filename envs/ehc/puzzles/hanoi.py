"""The towers of Hanoi: discs on three pegs, never a larger one on a smaller one.

A state's code has the peg of each disc in two bits, the smallest disc lowest.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from lcd.envs.ehc.puzzles.planning import digits, packed, planning_rules
from lcd.envs.tabular.closure import build, codes_of
from lcd.envs.tabular.mdp import TabularMDP
from lcd.envs.tabular.pictures import LabelRenderer

PEGS, BITS, LAST = 3, 2, 2
PAIRS = tuple(permutations(range(PEGS), 2))
ACTIONS = tuple(f"{source + 1} to {target + 1}" for source, target in PAIRS)
"""The topmost disc of one peg goes to another; where it may not, nothing happens."""


def predicates(discs: int) -> tuple[str, ...]:
    """The goal: each disc lies on the next larger one, and the largest on the last peg."""
    return (*(f"on(disc {disc}, disc {disc + 1})" for disc in range(1, discs)), f"on(disc {discs}, peg {LAST + 1})")


def goal_of(pegs: np.ndarray) -> np.ndarray:
    """(n, discs) pegs -> (n, discs) which of the goal's predicates hold.

    Discs of a peg lie in the order of their size, so that a disc lies on the next larger one when both are on one peg.
    """
    on_next = pegs[:, :-1] == pegs[:, 1:]
    return np.concatenate([on_next, pegs[:, -1:] == LAST], axis=1)


def moved(pegs: np.ndarray) -> np.ndarray:
    """(n, discs) pegs -> (n, actions, discs) pegs after each action."""
    discs = pegs.shape[1]
    # The smallest disc of each peg; an empty peg has one that is larger than all.
    on_peg = pegs[:, :, None] == np.arange(PEGS)
    top = np.where(on_peg.any(axis=1), on_peg.argmax(axis=1), discs)
    after = np.repeat(pegs[:, None, :], len(PAIRS), axis=1)
    for action, (source, target) in enumerate(PAIRS):
        allowed = np.flatnonzero(top[:, source] < top[:, target])
        after[allowed, action, top[allowed, source]] = target
    return after


def hanoi(discs: int, name: str) -> TabularMDP:
    """All discs begin on the first peg and shall come to the last, in as many steps as it takes: 2ⁿ - 1."""

    def moves(codes: np.ndarray) -> np.ndarray:
        return packed(moved(digits(codes, discs, BITS)), BITS)

    def goal(codes: np.ndarray) -> np.ndarray:
        return goal_of(digits(codes, discs, BITS))

    mdp = build(planning_rules(moves, goal), 0, 2**discs - 1, actions=ACTIONS, name=name)
    return mdp.changed(renderer=HanoiRenderer(codes_of(mdp), discs))


class HanoiRenderer(LabelRenderer):
    """Three pegs seen from the side; each disc has a width and a colour of its own."""

    thickness = 8
    kinds = PEGS

    def __init__(self, codes: np.ndarray, discs: int) -> None:
        """Draw the states of these codes."""
        self._codes, self._discs = codes, discs
        self._room = 6 * discs + 8
        shape = ((discs + 2) * self.thickness, PEGS * self._room)
        super().__init__(("nothing", "peg", *(f"disc {disc}" for disc in range(1, discs + 1))), shape)

    def cells(self, states: np.ndarray) -> np.ndarray:
        """(n, discs) the peg of each disc."""
        return digits(self._codes[states], self._discs, BITS)

    def draw(self, states: np.ndarray) -> np.ndarray:
        """Pegs, and on them the discs from the bottom up."""
        pegs = self.cells(states)
        frames = np.zeros((len(pegs), *self.shape), dtype=np.uint8)
        middle = np.arange(PEGS) * self._room + self._room // 2
        for place in middle:
            frames[:, self.thickness :, place - 2 : place + 2] = 1
        height = np.zeros((len(pegs), PEGS), dtype=np.int64)
        for disc in reversed(range(self._discs)):
            half = 3 * disc + 5
            for peg in range(PEGS):
                rows = np.flatnonzero(pegs[:, disc] == peg)
                for level in np.unique(height[rows, peg]):
                    bottom = self.shape[0] - level * self.thickness
                    here = rows[height[rows, peg] == level]
                    span = slice(middle[peg] - half, middle[peg] + half)
                    frames[here, bottom - self.thickness + 1 : bottom, span] = disc + 2
                height[rows, peg] += 1
        return frames
