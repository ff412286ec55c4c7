"""Videos whose truth is known: a textured shape moves over a background of the same colours.

Shape and background are grains of one noise, stretched along two directions at right angles; the values of each are
made exactly uniform and painted with one palette. So neither the colours nor their spread tell the shape from what is
behind it: only how the texture runs does, and how it moves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SHAPES = ("disc", "square", "diamond", "bar")


class Videos(NamedTuple):
    """Videos with their truth."""

    frames: np.ndarray
    """uint8 (videos, time, side, side, 3)."""
    masks: np.ndarray
    """bool (videos, time, side, side): where the shape is."""
    velocities: np.ndarray
    """int (videos, time − 1, 2): the shape's step from a frame to the next in pixels, x and y."""


def moving_shapes(
    videos: int,
    length: int,
    rng: np.random.Generator,
    *,
    side: int = 48,
    radius: tuple[int, int] = (9, 13),
    speed: int = 2,
    grain: tuple[float, float] = (2.5, 0.7),
) -> Videos:
    """Videos of one shape each.

    Args:
        videos: how many.
        length: frames of each.
        rng: where all that is random comes from.
        side: of the frames, in pixels.
        radius: least and greatest half extent of a shape.
        speed: most pixels a step along each axis; a shape never stands still.
        grain: standard deviations of the texture's grain along and across.
    """
    frames = np.empty((videos, length, side, side, 3), np.uint8)
    masks = np.empty((videos, length, side, side), bool)
    velocities = np.empty((videos, length - 1, 2), np.int64)
    for video in range(videos):
        reach = int(rng.integers(radius[0], radius[1] + 1))
        shape = _shape(rng.choice(SHAPES), reach)
        palette = rng.uniform(0, 255, (2, 3))
        background = _paint(texture(rng, side, grain, slant=1), palette)
        thing = _paint(texture(rng, len(shape), grain, slant=-1), palette)
        corner = rng.integers(0, side - len(shape) + 1, 2)
        velocity = _velocity(rng, speed)
        for t in range(length):
            if t:
                out = (corner + velocity < 0) | (corner + velocity > side - len(shape))
                velocity = np.where(out, -velocity, velocity)
                corner = corner + velocity
                velocities[video, t - 1] = velocity
            x, y = corner
            place = np.s_[y : y + len(shape), x : x + len(shape)]
            masks[video, t] = False
            masks[video, t][place] = shape
            picture = background.copy()
            picture[place][shape] = thing[shape]
            frames[video, t] = picture
    return Videos(frames, masks, velocities)


def texture(rng: np.random.Generator, side: int, grain: tuple[float, float], slant: int) -> np.ndarray:
    """Noise with values exactly uniform in 0–1, its grain along a diagonal: 1 falls to the right, −1 rises."""
    frequency = np.fft.fftfreq(side)
    across, down = frequency[None, :], frequency[:, None] * slant
    along, aside = (across + down) / np.sqrt(2), (across - down) / np.sqrt(2)
    low_pass = np.exp(-2 * np.pi**2 * ((along * grain[0]) ** 2 + (aside * grain[1]) ** 2))
    smooth = np.fft.ifft2(np.fft.fft2(rng.normal(size=(side, side))) * low_pass).real
    ranks = np.empty(side * side)
    ranks[np.argsort(smooth, axis=None)] = np.arange(side * side)
    return ranks.reshape(side, side) / (side * side - 1)


def _paint(values: np.ndarray, palette: np.ndarray) -> np.ndarray:
    return palette[0] + values[..., None] * (palette[1] - palette[0])


def _shape(kind: str, reach: int) -> np.ndarray:
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    if kind == "disc":
        return x**2 + y**2 <= reach**2
    if kind == "diamond":
        return abs(x) + abs(y) <= reach
    if kind == "bar":
        return abs(y) <= reach * 0.6
    return np.ones_like(x, bool)


def _velocity(rng: np.random.Generator, speed: int) -> np.ndarray:
    while True:
        velocity = rng.integers(-speed, speed + 1, 2)
        if velocity.any():
            return velocity
