"""A family of MDPs: one task under many contexts, of which each makes a point MDP, and how much each of them counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from lcd.envs.errors import InputError

Point = Mapping[str, float]
"""Context feature → its value; every point of a family has all features."""
GENERIC, SIMPLIFIED = "generic", "simplified"
"""What a family may call two of its points: its parametric mean, and its easiest."""


@dataclass(frozen=True)
class Family:
    """The point MDPs of a task, and their distribution.

    Attributes:
        points: all of them, each with the same features.
        default: the point that the task is when nobody says anything; it need not be one of `points`.
        weights: the probability of each point; None: all are equally important.
        marks: points with a name of their own, `generic` and `simplified` among them, by their place in `points`.
    """

    points: tuple[Point, ...]
    default: Point
    weights: tuple[float, ...] | None = None
    marks: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse points that do not belong together, and weights that are no distribution."""
        features = set(self.default)
        for point in self.points:
            if set(point) != features:
                raise InputError(
                    f"A family's point has the features {', '.join(sorted(point))}, its default "
                    f"{', '.join(sorted(features))}: all points of a family need the same ones."
                )
        names = [point_name(point) for point in self.points]
        if not names or len(set(names)) < len(names):
            raise InputError("A family needs at least one point, and none twice.")
        if self.weights is not None:
            weights = np.asarray(self.weights, float)
            if weights.shape != (len(names),) or not np.isfinite(weights).all() or (weights < 0).any():
                raise InputError(f"A family of {len(names)} points needs as many weights, none negative.")
            if not weights.sum() > 0:
                raise InputError("A family's weights are all 0: at least one point must count.")

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the context's features."""
        return tuple(self.default)

    @property
    def distribution(self) -> np.ndarray:
        """The probability of each point; they sum to one."""
        weights = np.ones(len(self.points)) if self.weights is None else np.asarray(self.weights, float)
        return weights / weights.sum()

    @property
    def table(self) -> np.ndarray:
        """(points, features): the points as rows of numbers, in the order of `features`."""
        return np.array([[point[name] for name in self.features] for point in self.points], float)

    def context_of(self, point: Point) -> str:
        """What curves call the context of a point: empty for the default, which is the task as it is."""
        return "" if dict(point) == dict(self.default) else point_name(point)


def grid_family(
    features: Mapping[str, Sequence[float]], default: Point, weights: Iterable[float] | None = None
) -> Family:
    """The family of all combinations of some features' values; the last feature changes fastest."""
    points = tuple(dict(zip(features, values, strict=True)) for values in product(*features.values()))
    return Family(points, dict(default), None if weights is None else tuple(weights))


def point_name(point: Point) -> str:
    """A point as curves write it: `gravity=9.8,length=0.5`, its features in alphabetical order."""
    return ",".join(f"{name}={repr(float(value)).removesuffix('.0')}" for name, value in sorted(point.items()))


def parse_point(name: str) -> dict[str, float] | None:
    """The point that `point_name` wrote; None where a context's name is no point."""
    point: dict[str, float] = {}
    for part in name.split(","):
        feature, equals, value = part.partition("=")
        if feature in point:
            return None
        try:
            point[feature] = float(value)
        except ValueError:
            return None
        if not (feature and equals):
            return None
    return point
