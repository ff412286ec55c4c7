"""A folder of the user's own images as the figures of the states."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lcd.envs.errors import InputError

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif")


@lru_cache(maxsize=8)
def picture_sprites(
    folder: str,
    states: int,
    size: int,
    radius: float,
    scales: tuple[float, ...],
    rotations: tuple[float, ...],
    flips: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Every state's picture under every variant: masks (states, variants, size, size) and colours (…, 3).

    A state's picture is the file of its number in alphabetical order, fitted into the circle that a polygon has;
    what is transparent in it is not part of the figure. Variants are numbered as those of `figure_masks`.

    Args:
        folder: where the images are.
        states: how many are needed.
        size: side of a frame in pixels.
        radius: of the circle at scale 1, in pixels.
        scales: the variants' sizes.
        rotations: their angles.
        flips: how many of unflipped, left-right, upside down and both there are.
    """
    frames = [
        _placed(picture, size, radius * scale, rotation, flip)
        for picture in _pictures(folder, states)
        for scale in scales
        for rotation in rotations
        for flip in range(flips)
    ]
    stacked = np.stack(frames).reshape(states, -1, size, size, 4)
    return np.where(stacked[..., 3] >= 128, 255, 0).astype(np.uint8), np.ascontiguousarray(stacked[..., :3])


def _pictures(folder: str, states: int) -> list:
    from PIL import Image, UnidentifiedImageError

    files = sorted(f for f in Path(folder).expanduser().glob("*") if f.suffix.lower() in SUFFIXES)
    if len(files) < states:
        raise InputError(
            f"image_folder is {folder!r}, which has {len(files)} images ({', '.join(SUFFIXES)}), but {states} states "
            "need one each."
        )
    try:
        return [Image.open(file).convert("RGBA") for file in files[:states]]
    except (OSError, UnidentifiedImageError) as error:
        raise InputError(f"image_folder is {folder!r}, but an image in it cannot be read: {error}.") from None


def _placed(picture: Image.Image, size: int, radius: float, rotation: float, flip: int) -> np.ndarray:
    """A picture in the middle of a transparent frame, so that its corners touch the circle."""
    from PIL import Image

    factor = 2 * radius / np.hypot(*picture.size)
    own = picture.resize([max(1, round(side * factor)) for side in picture.size])
    own = own.rotate(-rotation, expand=True)
    for bit, way in ((1, Image.Transpose.FLIP_LEFT_RIGHT), (2, Image.Transpose.FLIP_TOP_BOTTOM)):
        own = own.transpose(way) if flip & bit else own
    frame = Image.new("RGBA", (size, size))
    frame.paste(own, ((size - own.size[0]) // 2, (size - own.size[1]) // 2))
    return np.asarray(frame)
