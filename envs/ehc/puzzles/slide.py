"""The 3 × 3 slide tile puzzle: eight tiles and a gap.

A state's code has the tile of each cell in four bits, row by row; 0 is the gap, which comes last when all is done.
"""

from __future__ import annotations

import numpy as np

from lcd.envs.ehc.puzzles.planning import digits, packed, planning_rules, random_code
from lcd.envs.ehc.puzzles.sprites import numerals
from lcd.envs.tabular.closure import build, codes_of
from lcd.envs.tabular.mdp import TabularMDP
from lcd.envs.tabular.pictures import BoardRenderer

SIDE, CELLS, BITS = 3, 9, 4
HARDEST = 31
"""Moves from the most distant arrangement: the horizon, in which every start can be solved."""
ACTIONS = ("up", "down", "left", "right")
"""Where the gap goes; at the edge it stays."""
_STEPS = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])
SOLVED = np.array([1, 2, 3, 4, 5, 6, 7, 8, 0])
PREDICATES = tuple(f"at(tile {tile}, cell {tile})" for tile in range(1, CELLS))
_CELL_PIXELS = 24


def solved_code() -> int:
    """The code of the goal."""
    return int(packed(SOLVED, BITS))


def cells_of(codes: np.ndarray) -> np.ndarray:
    """(n, 9) tiles, cell by cell."""
    return digits(codes, CELLS, BITS)


def goal(codes: np.ndarray) -> np.ndarray:
    """(n, 8): is tile i in cell i?"""
    return cells_of(codes)[:, : CELLS - 1] == SOLVED[: CELLS - 1]


def moves(codes: np.ndarray) -> np.ndarray:
    """The gap changes places with the tile above, below, left or right of it."""
    cells = cells_of(codes)
    gap = cells.argmin(axis=1)
    row = gap[:, None] // SIDE + _STEPS[:, 0]
    column = gap[:, None] % SIDE + _STEPS[:, 1]
    inside = (row >= 0) & (row < SIDE) & (column >= 0) & (column < SIDE)
    other = np.where(inside, row * SIDE + column, gap[:, None])
    tile = np.take_along_axis(cells, other, axis=1)
    # The gap is 0: a tile is added where the gap was, and taken from where it was itself.
    return codes[:, None] + (tile << gap[:, None] * BITS) - (tile << other * BITS)


def shuffled(seed: int) -> int:
    """The code of a state drawn from all that can be solved; every one is as likely."""
    return random_code(moves, solved_code(), seed)


def slide(start: int, name: str) -> TabularMDP:
    """The puzzle from a start, for as many steps as the hardest start takes."""
    mdp = build(planning_rules(moves, goal), start, HARDEST, actions=ACTIONS, name=name)
    return mdp.changed(renderer=renderer(codes_of(mdp)))


def renderer(codes: np.ndarray) -> BoardRenderer:
    """Draws the states of these codes."""
    pieces = [f"tile {tile}" for tile in range(1, CELLS)]
    sprites = numerals(CELLS - 1, _CELL_PIXELS)
    return BoardRenderer(lambda states: cells_of(codes[states]), pieces, (SIDE, SIDE), _CELL_PIXELS, sprites=sprites)
