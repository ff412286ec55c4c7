"""Masks of polygons, small ones included, and the textures that fill them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from lcd.envs.colours import label_colours

RADIUS = 1 / 3
"""Radius of a figure at scale 1, as a share of the image's side."""
_SUPERSAMPLING = 4
_ON_AN_EDGE = 1e-6
"""Of the distance between two samples: nearer to an edge than this, a sample lies on it."""
_DEEPEST_NOTCH = 0.75
_FIXED_SEED = 20_041_215


def figure_radii(state: int, lookalikes: int) -> np.ndarray:
    """How far the vertices of a state's polygon are from its centre (1 = the full radius).

    State n has n + 3 sides. With look-alikes, states in groups of `lookalikes + 1` share the polygon of the
    group's number, and each member has one vertex pulled in by an amount of its own.
    """
    group, member = divmod(state, lookalikes + 1)
    radii = np.ones(group + 3)
    radii[0] -= _DEEPEST_NOTCH * member / (lookalikes + 1)
    return radii


def polygon_mask(size: int, radii: np.ndarray, radius: float, rotation: float = 0.0) -> np.ndarray:
    """A (size, size) array, 255 inside the polygon in the middle and 0 outside.

    Args:
        size: side of the image in pixels.
        radii: the vertices' distances from the centre, relative to `radius`, at equal angles.
        radius: in pixels.
        rotation: in degrees; at 0 the first vertex points up.
    """
    distance, angle = _polar_grid(size)
    sector_width = 2 * np.pi / len(radii)
    within = (angle - np.deg2rad(rotation)) % (2 * np.pi)
    sector = np.minimum((within / sector_width).astype(np.int64), len(radii) - 1)
    within = within - sector * sector_width
    first, second = radii[sector], np.roll(radii, -1)[sector]
    edge = first * second * np.sin(sector_width)
    edge = edge / (first * np.sin(within) + second * np.sin(sector_width - within))
    covered = (distance <= radius * edge).reshape(size, _SUPERSAMPLING, size, _SUPERSAMPLING).mean(axis=(1, 3))
    return np.where(covered >= 0.5, 255, 0).astype(np.uint8)


@lru_cache(maxsize=8)
def _polar_grid(size: int) -> tuple[np.ndarray, np.ndarray]:
    centres = (np.arange(size * _SUPERSAMPLING) + 0.5) / _SUPERSAMPLING - size / 2
    down, right = np.meshgrid(centres, centres, indexing="ij")
    return np.hypot(down, right), np.arctan2(right, -down) % (2 * np.pi)


def turned_masks(size: int, radii: np.ndarray, radius: float, rotations: Sequence[float]) -> list[np.ndarray]:
    """`polygon_mask` at every rotation, all of them in the time of a few.

    Each row of samples is inside a polygon between two crossings with its edges. Rotations at which a regular polygon
    looks the same share an array. Where a sample lies on an edge, which rounding decides, `polygon_mask` does.
    """
    whole = 360 / len(radii) if (radii == radii[0]).all() else 360
    different, which = np.unique(np.round(np.mod(rotations, whole), 9) % whole, return_inverse=True)
    turns = np.deg2rad(different)[:, None] + 2 * np.pi / len(radii) * np.arange(len(radii))
    down, right = -radius * radii * np.cos(turns), radius * radii * np.sin(turns)
    # In units of samples: a whole number is the place of one.
    top, left = (_SUPERSAMPLING * (place + size / 2) - 0.5 for place in (down, right))
    on_a_row = (np.abs(top - np.rint(top)) < _ON_AN_EDGE).any(axis=1)
    next_top, next_left = np.roll(top, -1, axis=1), np.roll(left, -1, axis=1)
    rows = np.arange(_SUPERSAMPLING * size)
    turn, edge, row = np.nonzero((top[..., None] <= rows) != (next_top[..., None] <= rows))
    high, low = top[turn, edge], next_top[turn, edge]
    crossing = left[turn, edge] + (row - high) / (low - high) * (next_left[turn, edge] - left[turn, edge])
    on_an_edge = np.abs(crossing - np.rint(crossing)) < _ON_AN_EDGE
    first, part = np.divmod(np.ceil(crossing).astype(np.int64).clip(0, len(rows)), _SUPERSAMPLING)
    sign = np.where(low > high, 1, -1)
    places = (turn * size + row // _SUPERSAMPLING) * (size + 2) + first
    more = np.bincount(places, sign * (_SUPERSAMPLING - part), len(turns) * size * (size + 2))
    more += np.bincount(places + 1, sign * part, len(more))
    covered = more.astype(np.int16).reshape(len(turns), size, size + 2).cumsum(axis=2, dtype=np.int16)[:, :, :size]
    masks = list(np.uint8(255) * (np.abs(covered) >= _SUPERSAMPLING**2 // 2))
    undecided = on_a_row | (np.bincount(turn, on_an_edge, len(turns)) > 0)
    return [
        polygon_mask(size, radii, radius, rotation) if undecided[number] else masks[number]
        for rotation, number in zip(rotations, which.tolist(), strict=True)
    ]


@lru_cache(maxsize=16)
def figure_masks(
    states: int,
    size: int,
    lookalikes: int,
    scales: tuple[float, ...],
    rotations: tuple[float, ...],
    flips: int,
    radius: float = RADIUS,
) -> np.ndarray:
    """Every state's figure under every variant: (states, scales * rotations * flips, size, size).

    A variant's number is `(scale * rotations + rotation) * flips + flip`; of the flips, 1 is left-right, 2 is
    upside down and 3 is both.
    """
    masks = [
        flipped
        for state in range(states)
        for scale in scales
        for mask in turned_masks(size, figure_radii(state, lookalikes), radius * size * scale, rotations)
        for flipped in flips_of(mask, flips)
    ]
    return np.stack(masks).reshape(states, -1, size, size)


def flips_of(mask: np.ndarray, flips: int) -> list[np.ndarray]:
    """The first so many ways to flip a mask."""
    return [mask, mask[:, ::-1], mask[::-1], mask[::-1, ::-1]][:flips]


@lru_cache(maxsize=8)
def distractor_masks(size: int, count: int = 32) -> np.ndarray:
    """(count, size, size): polygons of many kinds, all smaller than a figure."""
    rng = np.random.default_rng(_FIXED_SEED)
    masks = []
    for number in range(count):
        radii = rng.uniform(0.6, 1.0, size=3 + number % 7)
        masks.append(polygon_mask(size, radii, RADIUS * size * rng.uniform(0.4, 0.7), rng.uniform(0, 360)))
    return np.stack(masks)


@lru_cache(maxsize=8)
def noise_tiles(period: int, count: int = 8) -> np.ndarray:
    """(count, period, period, 3) in [-1, 1]: smooth coloured noise of several grains that repeats seamlessly."""
    rng = np.random.default_rng(_FIXED_SEED)
    frequency = np.fft.fftfreq(period)
    squared = frequency[:, None] ** 2 + frequency[None, :] ** 2
    tiles = np.empty((count, period, period, 3))
    for number in range(count):
        grain = 0.5 + 2.0 * number / count
        blur = np.exp(-2 * (np.pi * grain) ** 2 * squared)[:, :, None]
        white = rng.standard_normal((period, period, 1)) + rng.standard_normal((period, period, 3))
        smooth = np.fft.ifft2(np.fft.fft2(white, axes=(0, 1)) * blur, axes=(0, 1)).real
        tiles[number] = np.clip((smooth - smooth.mean()) / (2 * smooth.std()), -1, 1)
    return tiles


@lru_cache(maxsize=8)
def portraits(states: int, size: int = 64) -> np.ndarray:
    """(states, size, size, 3): every state's figure in its label's colour, for people to look at."""
    masks = figure_masks(states, size, 0, (1.0,), (0.0,), 1)[:, 0, :, :, None]
    return masks & label_colours(states)[:, None, None, :]
