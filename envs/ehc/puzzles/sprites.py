"""Outlines of pieces: numerals, and shapes that are told apart without colour."""

from __future__ import annotations

import numpy as np

_NUMERALS = (
    ".#. ##. .#. .#. ###",
    "### ..# ### #.. ###",
    "### ..# .## ..# ###",
    "#.# #.# ### ..# ..#",
    "### #.. ### ..# ###",
    "### #.. ### #.# ###",
    "### ..# .#. .#. .#.",
    "### #.# ### #.# ###",
    "### #.# ### ..# ###",
)
"""1 to 9, on three by five points."""


def numerals(count: int, side: int) -> np.ndarray:
    """(count, side, side) truth values: the numerals 1, 2, … in the middle of a cell, within a frame."""
    point = (side - 4) // 5
    top, left = (side - 5 * point) // 2, (side - 3 * point) // 2
    found = np.zeros((count, side, side), dtype=bool)
    for numeral, drawn in zip(found, _NUMERALS, strict=False):
        points = np.array([[mark == "#" for mark in row] for row in drawn.split()])
        numeral[top : top + 5 * point, left : left + 3 * point] = points.repeat(point, axis=0).repeat(point, axis=1)
    return found | frame(side, 1)


def frame(side: int, width: int) -> np.ndarray:
    """(side, side): the border of a cell."""
    found = np.ones((side, side), dtype=bool)
    found[width:-width, width:-width] = False
    return found


def disc(side: int, radius: float) -> np.ndarray:
    """(side, side): a disc in the middle; the radius is a share of half the side."""
    return _distance(side) <= radius * side / 2


def diamond(side: int, radius: float) -> np.ndarray:
    """(side, side): a square on its corner."""
    away = np.abs(np.arange(side) + 0.5 - side / 2)
    return away[:, None] + away <= radius * side / 2


def block(side: int, share: float) -> np.ndarray:
    """(side, side): a square in the middle; its side is a share of the cell's."""
    away = np.abs(np.arange(side) + 0.5 - side / 2)
    return np.maximum(away[:, None], away) <= share * side / 2


def _distance(side: int) -> np.ndarray:
    away = np.arange(side) + 0.5 - side / 2
    return np.hypot(away[:, None], away)
