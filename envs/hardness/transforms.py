"""Shift, scale, rotate and flip whole images at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lcd.envs.streams import Streams


@dataclass(frozen=True)
class ImageTransforms:
    """What happens to a batch of images (n, height, width, …), anew for every frame.

    Attributes:
        names: which of shift, scale, rotate and flip.
        padding: width of a black border around the image, within which it is shifted; without one a shift is up
            to a quarter of the side, and what leaves the frame is lost.
        sh_quant: shifts are multiples of this many pixels.
        ro_quant: rotations are multiples of this many degrees.
        scale_range: least and largest scale.
    """

    names: tuple[str, ...]
    padding: int
    sh_quant: int
    ro_quant: int
    scale_range: tuple[float, float]

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an image afterwards."""
        return (shape[0] + 2 * self.padding, shape[1] + 2 * self.padding, *shape[2:])

    def __call__(self, images: np.ndarray, streams: Streams, index: np.ndarray | None) -> np.ndarray:
        """Transform the images of the copies in `index` (None: all)."""
        count, height, width = images.shape[:3]
        padded = self.shape(images.shape[1:])
        down, across = np.meshgrid(*(np.arange(s) - (s - 1) / 2 for s in padded[:2]), indexing="ij")
        draws = streams.uniform(index, count=6)
        shift = self._shifts(draws[:, :2], height, width)
        down, across = down - shift[:, 0, None, None], across - shift[:, 1, None, None]
        down, across = self._turned(draws[:, 2], down, across)
        scale = self._scales(draws[:, 3])[:, None, None]
        flips = np.where((draws[:, 4:] < 0.5) & ("flip" in self.names), -1.0, 1.0)
        down, across = down / scale * flips[:, 0, None, None], across / scale * flips[:, 1, None, None]
        row = np.rint(down + (height - 1) / 2).astype(np.int64)
        column = np.rint(across + (width - 1) / 2).astype(np.int64)
        outside = (row < 0) | (row >= height) | (column < 0) | (column >= width)
        moved = images[np.arange(count)[:, None, None], row.clip(0, height - 1), column.clip(0, width - 1)]
        moved[outside] = 0
        return moved

    def _shifts(self, draws: np.ndarray, height: int, width: int) -> np.ndarray:
        if "shift" not in self.names:
            return np.zeros_like(draws)
        most = np.array([self.padding or side // 4 for side in (height, width)]) // self.sh_quant
        return self.sh_quant * (np.floor(draws * (2 * most + 1)) - most)

    def _turned(self, draws: np.ndarray, down: np.ndarray, across: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if "rotate" not in self.names:
            return down, across
        turns = np.floor(draws * len(range(0, 360, self.ro_quant))) * self.ro_quant
        angle = np.deg2rad(turns)[:, None, None]
        cosine, sine = np.cos(angle), np.sin(angle)
        return cosine * down - sine * across, sine * down + cosine * across

    def _scales(self, draws: np.ndarray) -> np.ndarray:
        if "scale" not in self.names:
            return np.ones(len(draws))
        low, high = self.scale_range
        return low * (high / low) ** draws
