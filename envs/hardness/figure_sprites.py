"""The figures of all states under all transforms: all drawn beforehand, or each when it is first shown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

MOST_BYTES = 2**29
"""Of figures that are drawn beforehand."""
MOST_BYTES_SHOWN = 2**27
"""Of figures that were drawn when they were shown: they are forgotten when they become more."""


def margin(masks: np.ndarray, width: int) -> np.ndarray:
    """(n, size, size) masks with a border, repeated for three channels."""
    padded = np.pad(masks, [(0, 0), (width, width), (width, width)])
    return np.repeat(padded[..., None], 3, axis=3)


def windows(images: np.ndarray, size: int) -> np.ndarray:
    """All (size, size, 3) cut-outs, to be indexed by image, top and three times the left."""
    count, height, width, channels = images.shape
    rows = np.ascontiguousarray(images).reshape(count, height, width * channels)
    return sliding_window_view(rows, (size, size * channels), axis=(1, 2))


class KeptSprites:
    """Figures that are all there, each with a border as wide as it may move."""

    def __init__(self, sprites: np.ndarray, size: int, reach: int) -> None:
        """Keep sprites (n, size + 2 reach, size + 2 reach, 3)."""
        self._windows, self._reach = windows(sprites, size), reach

    def at(self, numbers: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """(n, size, 3 size): the figures of these numbers, moved from the middle by (down, right)."""
        corner = self._reach - offset
        return self._windows[numbers, corner[:, 0], 3 * corner[:, 1]]


class ShownSprites:
    """Figures that are drawn when they are first shown, where all of them would take too much memory."""

    def __init__(self, draw: Callable[[int], np.ndarray], size: int) -> None:
        """Nothing is drawn yet.

        Args:
            draw: a number -> its figure (side, side, 3), where the side of the image less that of the figure is even.
            size: side of an image in pixels.
        """
        self._draw, self._size = draw, size
        self._drawn: dict[int, np.ndarray] = {}
        self.bytes = 0

    def at(self, numbers: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """(n, size, 3 size): the figures of these numbers, moved from the middle by (down, right)."""
        frames = np.zeros((len(numbers), self._size, self._size, 3), np.uint8)
        for frame, number, (down, right) in zip(frames, numbers.tolist(), offset.tolist(), strict=True):
            figure = self._figure(number)
            side = len(figure)
            top, left = (self._size - side) // 2 + down, (self._size - side) // 2 + right
            frame[top : top + side, left : left + side] = figure
        return frames.reshape(len(numbers), self._size, -1)

    def _figure(self, number: int) -> np.ndarray:
        figure = self._drawn.get(number)
        if figure is None:
            figure = self._draw(number)
            if self.bytes + figure.nbytes > MOST_BYTES_SHOWN:
                self._drawn.clear()
                self.bytes = 0
            self._drawn[number] = figure
            self.bytes += figure.nbytes
        return figure
