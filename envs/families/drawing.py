"""Drawings of all copies at once: rods, boxes and discs, in the coordinates of what is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

SIZE = 96
"""Pixels of a picture's longer side."""
PAPER, INK, GREY = (255, 255, 255), (40, 40, 40), (190, 190, 190)
RED, BLUE, GREEN = (204, 77, 77), (70, 110, 190), (80, 160, 90)
Numbers = Any
"""A number, or one for each copy."""


class Canvas:
    """White pictures of some copies, drawn upon from the back to the front."""

    def __init__(self, copies: int, left: Numbers, right: Numbers, bottom: Numbers, top: Numbers) -> None:
        """Begin with the part of the world that each picture shows; all have the shape of the first one's."""
        left, right, bottom, top = (_each(edge, copies) for edge in (left, right, bottom, top))
        spans = float(right[0, 0] - left[0, 0]), float(top[0, 0] - bottom[0, 0])
        width, height = (max(1, round(SIZE * span / max(spans))) for span in spans)
        across, down = (np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height
        self.x = (left + (right - left) * across)[:, None, :]
        self.y = (top - (top - bottom) * down)[:, :, None]
        self.pixel = (right - left)[:, :, None] / width
        self.pictures = np.full((copies, height, width, 3), PAPER, dtype=np.uint8)

    def rod(self, start: tuple[Numbers, Numbers], end: tuple[Numbers, Numbers], radius: Numbers, colour: Any) -> None:
        """Everything within a distance of a line from one point to another, at least a pixel wide."""
        (x, y), (to_x, to_y) = (self._point(point) for point in (start, end))
        along_x, along_y = to_x - x, to_y - y
        squared = np.maximum(along_x**2 + along_y**2, 1e-12)
        share = (((self.x - x) * along_x + (self.y - y) * along_y) / squared).clip(0.0, 1.0)
        distance = np.hypot(self.x - x - share * along_x, self.y - y - share * along_y)
        self._fill(distance <= np.maximum(self._number(radius), 0.75 * self.pixel), colour)

    def disc(self, centre: tuple[Numbers, Numbers], radius: Numbers, colour: Any) -> None:
        """A disc."""
        self.rod(centre, centre, radius, colour)

    def box(self, left: Numbers, right: Numbers, bottom: Numbers, top: Numbers, colour: Any) -> None:
        """A rectangle; none where it has no width or height."""
        beside = (self.x >= self._number(left)) & (self.x <= self._number(right))
        self._fill(beside & (self.y >= self._number(bottom)) & (self.y <= self._number(top)), colour)

    def below(self, heights: Any, colour: Any) -> None:
        """Everything below a curve: a function from places along the picture to heights."""
        self._fill(self.y <= heights(self.x), colour)

    def _point(self, point: tuple[Numbers, Numbers]) -> tuple[np.ndarray, np.ndarray]:
        return self._number(point[0]), self._number(point[1])

    def _number(self, number: Numbers) -> np.ndarray:
        return _each(number, len(self.pictures))[:, :, None]

    def _fill(self, where: np.ndarray, colour: Any) -> None:
        self.pictures[np.broadcast_to(where, self.pictures.shape[:3])] = colour


def _each(number: Numbers, copies: int) -> np.ndarray:
    """(copies, 1): a number for each copy."""
    return np.broadcast_to(np.asarray(number, dtype=np.float64), (copies,))[:, None]
