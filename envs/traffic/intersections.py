"""The family of intersections: drawn from one seed, brought to what can be built, and counted."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np

from lcd.envs.checks import require_whole_number
from lcd.envs.families.family import GENERIC, Family
from lcd.envs.families.features import Feature, defaults
from lcd.envs.streams import Streams, seed_sequence
from lcd.envs.traffic.moments import MARGINALS, drawn

FEATURES = (
    Feature("lanes", 4, 1, 8),
    Feature("speed", 35, 5, 75),
    Feature("length", 250, 50, 1000),
    Feature("inflow", 300, 1, 1000),
    Feature("left_lanes", 1, 0, 2),
    Feature("right_lanes", 0, 0, 1),
)
"""Lanes of a road in both directions, miles per hour, metres of an approach, vehicles per hour and through lane of the
main road's approaches, turning lanes per approach; the default is the intersection that is reported alone."""
SEED, DRAWS = 0, 345
"""Of the family that ships: the paper draws on 345 intersections."""
GRIDS = {
    "speed": (20, 30, 40, 50),
    "length": (50, 100, 200, 400, 800),
    "inflow": (1, 3, 10, 30, 100, 300, 1000),
}
"""What intersections are told apart by: a number counts as that of its grid which is nearest by ratio."""


def draws(seed: int = SEED, number: int = DRAWS) -> dict[str, np.ndarray]:
    """Features of intersections as they are drawn, before anything asks whether they can be built."""
    (stream,) = Streams.spawn([seed_sequence(seed, "traffic", row) for row in range(len(MARGINALS))])
    return drawn(stream.uniform(count=2 * number))


def built(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Drawn features, clipped to what can be simulated, each at the nearest number of its grid."""
    columns = clipped(columns)
    for name, grid in GRIDS.items():
        ratios = np.abs(np.log(columns[name])[:, None] - np.log(grid))
        columns[name] = np.array(grid, float)[ratios.argmin(axis=1)]
    return columns


def clipped(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Features between the least and the greatest values that can be simulated."""
    return {feature.name: np.clip(columns[feature.name], feature.low, feature.high) for feature in FEATURES}


@cache
def family(seed: int = SEED, number: int = DRAWS) -> Family:
    """The intersections that `number` draws give, each weighted by how often it occurred.

    Args:
        seed: all else equal, the same seed gives the same family, bit for bit.
        number: draws, of which equal ones are one point.
    """
    require_whole_number("seed", seed, 0)
    require_whole_number("number", number, 1)
    columns = built(draws(seed, number))
    rows = Counter(zip(*(columns[feature.name].tolist() for feature in FEATURES), strict=True))
    points = tuple(dict(zip(columns, row, strict=True)) for row in sorted(rows))
    weights = tuple(float(rows[row]) for row in sorted(rows))
    return Family(points, defaults(FEATURES), weights, {GENERIC: _nearest_to_mean(points, weights)})


def _nearest_to_mean(points: tuple[dict[str, float], ...], weights: tuple[float, ...]) -> int:
    """The point nearest to the weighted mean, each feature measured in its standard deviations."""
    table = np.array([list(point.values()) for point in points])
    mean = np.average(table, axis=0, weights=weights)
    deviation = np.sqrt(np.average((table - mean) ** 2, axis=0, weights=weights))
    return int((((table - mean) / np.where(deviation > 0, deviation, 1)) ** 2).sum(axis=1).argmin())
