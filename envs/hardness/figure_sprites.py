"""The figures of all states under all transforms: all drawn beforehand, or each when it is first shown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

MOST_BYTES = 2**24
"""Of figures that are kept with a border: of more than a processor's cache holds, the border is what takes time."""
MOST_PICTURE_BYTES = 2**29
"""Of the user's own pictures, which are all kept with a border."""
_BLACKENED = 2**18
"""Bytes of images that are blackened at once: when figures are pasted, a core's own cache still has them."""
MOST_BYTES_SHOWN = 2**27
"""Of figures that were drawn when they were shown: they are forgotten when they become more."""


def margin(masks: np.ndarray, width: int, channels: int) -> np.ndarray:
    """(n, size, size) masks with a border, repeated for all channels."""
    padded = np.pad(masks, [(0, 0), (width, width), (width, width)])
    return np.repeat(padded[..., None], channels, axis=3)


def windows(images: np.ndarray, size: int) -> np.ndarray:
    """All (size, size, channels) cut-outs, to be indexed by image, top and channels times the left."""
    count, height, width, channels = images.shape
    rows = np.ascontiguousarray(images).reshape(count, height, width * channels)
    return sliding_window_view(rows, (size, size * channels), axis=(1, 2))


class KeptSprites:
    """Figures that are all there, each with a border as wide as it may move."""

    def __init__(self, sprites: np.ndarray, size: int, reach: int) -> None:
        """Keep sprites (n, size + 2 reach, size + 2 reach, channels)."""
        self._windows, self._reach, self._channels = windows(sprites, size), reach, sprites.shape[3]

    def at(self, numbers: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """(n, size, channels * size): the figures of these numbers, moved from the middle by (down, right)."""
        corner = self._reach - offset
        return self._windows[numbers, corner[:, 0], self._channels * corner[:, 1]]

    def one(self, number: int, down: int, right: int) -> np.ndarray:
        """(size, channels * size): one figure, moved so from the middle."""
        return self._windows[number, self._reach - down, self._channels * (self._reach - right)].copy()


Drawn = tuple[np.ndarray, int, int, int]
"""A figure, how far it is from the border in the middle of an image, its height, and its width times the channels."""


class ShownSprites:
    """Figures without a border, which are drawn when they are first shown, and pasted into black images."""

    def __init__(self, draw: Callable[[int], dict[int, np.ndarray]], size: int, channels: int) -> None:
        """Nothing is drawn yet.

        Args:
            draw: a number -> figures (side, side, channels) by number, among them that one, where the side of the image
                less that of the figure is even.
            size: side of an image in pixels.
            channels: of an image.
        """
        self._draw, self._size, self._channels = draw, size, channels
        self._drawn: dict[int, Drawn] = {}
        self.bytes = 0

    def at(self, numbers: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """(n, size, channels * size): the figures of these numbers, moved from the middle by (down, right)."""
        frames = np.empty((len(numbers), self._size, self._size * self._channels), np.uint8)
        at_once = max(1, _BLACKENED // frames[0].nbytes) if len(frames) else 1
        for place, (frame, number, (down, right)) in enumerate(
            zip(frames, numbers.tolist(), offset.tolist(), strict=True)
        ):
            if place % at_once == 0:
                frames[place : place + at_once] = 0
            self._paste(frame, number, down, right)
        return frames

    def one(self, number: int, down: int, right: int) -> np.ndarray:
        """(size, channels * size): one figure, moved so from the middle."""
        frame = np.zeros((self._size, self._size * self._channels), np.uint8)
        self._paste(frame, number, down, right)
        return frame

    def _paste(self, frame: np.ndarray, number: int, down: int, right: int) -> None:
        figure, margin, side, width = self._drawn.get(number) or self._newly_drawn(number)
        top, left = margin + down, self._channels * (margin + right)
        frame[top : top + side, left : left + width] = figure

    def _newly_drawn(self, number: int) -> Drawn:
        drawn = self._draw(number)
        more = sum({id(figure): figure.nbytes for figure in drawn.values()}.values())
        if self.bytes + more > MOST_BYTES_SHOWN:
            self._drawn.clear()
            self.bytes = 0
        for other, figure in drawn.items():
            side, width = len(figure), len(figure) * self._channels
            self._drawn[other] = figure.reshape(side, width), (self._size - side) // 2, side, width
        self.bytes += more
        return self._drawn[number]
