"""Colours that tell labels apart."""

from __future__ import annotations

import numpy as np

_PALETTE = np.array(
    [
        (255, 0, 0),
        (0, 255, 0),
        (0, 0, 255),
        (255, 255, 0),
        (255, 0, 255),
        (0, 255, 255),
        (255, 255, 255),
        (255, 128, 0),
    ],
    dtype=np.uint8,
)


def label_colours(labels: int) -> np.ndarray:
    """Colours for labels, (labels, 3) bytes: well apart from one another and from black."""
    if labels <= len(_PALETTE):
        return _PALETTE[:labels]
    levels = next(n for n in range(2, 257) if n**3 > labels)
    steps = np.linspace(0, 255, levels).astype(np.uint8)
    cube = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)[1:]
    return cube[np.linspace(0, len(cube) - 1, labels).astype(np.int64)]


MOST_GREY_LABELS = 255
"""By then all levels but black are taken."""


def label_greys(labels: int) -> np.ndarray:
    """Levels of grey for up to 255 labels, (labels, 1) bytes: white, and as far from one another and from black."""
    return np.rint(255 * (1 - np.arange(labels)[:, None] / labels)).astype(np.uint8)
