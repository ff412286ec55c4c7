"""The figures of all states under all transforms: all drawn beforehand, or each when it is first shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

MOST_BYTES = 2**24
"""Of figures that are kept with a border: of more than a processor's cache holds, the border is what takes time."""
MOST_PICTURE_BYTES = 2**29
"""Of the user's own pictures, which are all kept with a border."""
_BLACKENED = 2**19
"""Bytes of images that are blackened at once: when figures are pasted, a core's own cache still has them."""
MOST_BYTES_SHOWN = 2**29
"""Of figures that were drawn when they were shown: they are forgotten when they become more."""
_NOT_DRAWN = -1
_ID_BYTES = 4


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


class ShownSprites:
    """Figures without a border, which are drawn when they are first shown, and pasted into black images.

    A figure is kept as an image's bytes from its first pixel to its last one, and so is pasted as one piece: what is
    black between its rows is black in the image, too. Those that look the same are kept once.
    """

    def __init__(
        self,
        draw: Callable[[int], Sequence[np.ndarray]],
        in_a_block: int,
        blocks: int,
        borders: Sequence[int],
        size: int,
        channels: int,
    ) -> None:
        """Nothing is drawn yet.

        Args:
            draw: a block -> its figures (side, side, channels). Figures are numbered block by block.
            in_a_block: how many figures a block has.
            blocks: how many blocks there are.
            borders: pixels around the figures of the first blocks when they are in the middle of an image; around
                those of the following blocks are as many, and so on.
            size: side of an image in pixels.
            channels: of an image.
        """
        self._draw, self._in_a_block, self._size, self._channels = draw, in_a_block, size, channels
        self._row = size * channels
        self._bytes_a_pixel = np.array([self._row, channels])
        self._first_bytes = np.array(borders) * (self._row + channels)
        self._rows = np.empty(blocks, np.int64)
        most_rows = max(1, MOST_BYTES_SHOWN // (_ID_BYTES * in_a_block))
        self._ids = np.empty((min(blocks, most_rows), in_a_block), np.int32)
        self._forget()

    def at(self, numbers: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """(n, size, channels * size): the figures of these numbers, moved from the middle by (down, right)."""
        image = self._size * self._row
        blocks, places = np.divmod(numbers, self._in_a_block)
        starts = offset @ self._bytes_a_pixel
        starts += self._first_bytes[blocks % len(self._first_bytes)]
        starts += np.arange(0, len(numbers) * image, image)
        frames = np.empty((len(numbers), self._size, self._row), np.uint8)
        pixels, at_once = frames.reshape(-1).data, max(1, _BLACKENED // image)
        figures = zip(starts.tolist(), self._figures_at(blocks, places), strict=True)
        for place in range(0, len(frames), at_once):
            frames[place : place + at_once] = 0
            for start, figure in islice(figures, at_once):
                pixels[start : start + len(figure)] = figure
        return frames

    def one(self, number: int, down: int, right: int) -> np.ndarray:
        """(size, channels * size): one figure, moved so from the middle."""
        block, place = divmod(number, self._in_a_block)
        start = self._first_bytes.item(block % len(self._first_bytes)) + down * self._row + right * self._channels
        figure = self._figure(block, place)
        frame = np.zeros((self._size, self._row), np.uint8)
        frame.reshape(-1).data[start : start + len(figure)] = figure
        return frame

    def _figures_at(self, blocks: np.ndarray, places: np.ndarray) -> Iterable[bytes]:
        rows = self._rows[blocks]
        if (rows == _NOT_DRAWN).any():
            return list(map(self._figure, blocks.tolist(), places.tolist()))
        return map(self._figures.__getitem__, self._ids[rows, places].tolist())

    def _figure(self, block: int, place: int) -> bytes:
        if self._rows.item(block) == _NOT_DRAWN:
            self._draw_block(block)
        return self._figures[self._ids.item(self._rows.item(block), place)]

    def _draw_block(self, block: int) -> None:
        drawn = self._draw(block)
        looks = [figure.tobytes() for figure in drawn]
        different = dict(zip(looks, drawn, strict=True))
        pieces = list(map(self._as_piece, different.values()))
        more = _ID_BYTES * self._in_a_block + sum(map(len, pieces))
        if self.bytes + more > MOST_BYTES_SHOWN:
            self._forget()
        ids = {look: number for number, look in enumerate(different, start=len(self._figures))}
        self._ids[self._blocks_drawn] = [ids[look] for look in looks]
        self._rows[block] = self._blocks_drawn
        self._figures += pieces
        self._blocks_drawn += 1
        self.bytes += more

    def _as_piece(self, figure: np.ndarray) -> bytes:
        side = len(figure)
        rows = np.zeros((side, self._size, self._channels), np.uint8)
        rows[:, :side] = figure
        return rows.reshape(-1)[: (side - 1) * self._row + side * self._channels].tobytes()

    def _forget(self) -> None:
        self._figures: list[bytes] = []
        self._rows.fill(_NOT_DRAWN)
        self._blocks_drawn = self.bytes = 0
