"""How the features of intersections are distributed: each with the mean and the standard deviation of table 4."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

TABLE_4 = {
    "lanes": (3.8, 1.37),
    "speed": (32.6, 5.40),
    "length": (260.8, 193.0),
    "inflow": (73.5, 774.0),
    "left_lanes": (0.229, 0.496),
    "right_lanes": (0.100, 0.298),
}
"""Feature → mean and standard deviation over 345 intersections of Salt Lake City (Jayawardana et al. 2022, table 4)."""
NEWTON_STEPS = 100
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Lognormal:
    """A number above 0 whose logarithm is normal, with this mean and standard deviation."""

    mean: float
    deviation: float

    @property
    def log_moments(self) -> tuple[float, float]:
        """Mean and standard deviation of the logarithm."""
        variance = math.log1p((self.deviation / self.mean) ** 2)
        return math.log(self.mean) - variance / 2, math.sqrt(variance)

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """The values below which these shares lie."""
        centre, spread = self.log_moments
        return np.exp(centre + spread * np.array([_NORMAL.inv_cdf(share) for share in shares]))


@dataclass(frozen=True)
class Count:
    """One of some values: of all distributions on them with this mean and deviation, the one of the largest entropy."""

    values: tuple[float, ...]
    mean: float
    deviation: float

    @property
    def probabilities(self) -> np.ndarray:
        """The probability of each value: the exponential of a parabola, found by Newton's method."""
        standard = (np.array(self.values) - self.mean) / self.deviation
        powers = np.stack([standard, standard**2 - 1])
        slopes = np.zeros(2)
        for _ in range(NEWTON_STEPS):
            weights = np.exp(slopes @ powers)
            weights /= weights.sum()
            excess = powers @ weights
            if np.abs(excess).max() < 1e-13:
                break
            curvature = (powers * weights) @ powers.T - np.outer(excess, excess)
            step = np.linalg.solve(curvature, excess)
            slopes -= step * min(1.0, 2.0 / np.abs(step).max())
        return weights

    def quantiles(self, shares: np.ndarray) -> np.ndarray:
        """The values below or at which these shares lie."""
        places = np.searchsorted(np.cumsum(self.probabilities)[:-1], shares, side="right")
        return np.array(self.values)[places]


MARGINALS: dict[str, Lognormal | Count] = {
    "lanes": Count(tuple(range(1, 9)), *TABLE_4["lanes"]),
    "speed": Lognormal(*TABLE_4["speed"]),
    "length": Lognormal(*TABLE_4["length"]),
    "inflow": Lognormal(*TABLE_4["inflow"]),
    "left_lanes": Count((0, 1, 2), *TABLE_4["left_lanes"]),
    # No distribution on whole numbers has these moments: they have E k² ≥ E k, but .298² + .1² < .1.
    "right_lanes": Count((0, 0.5, 1), *TABLE_4["right_lanes"]),
}
"""Feature → its distribution; features are independent of each other."""


def spread_shares(uniforms: np.ndarray) -> np.ndarray:
    """Shares that fill (0, 1) evenly in every row, in the random order of these uniform numbers (a Latin hypercube)."""
    columns = uniforms.shape[1]
    ranks = uniforms[:, : columns // 2].argsort(axis=1).argsort(axis=1)
    return (ranks + np.clip(uniforms[:, columns // 2 :], 1e-9, 1 - 1e-9)) / (columns // 2)


def drawn(uniforms: np.ndarray, features: Sequence[str] = tuple(MARGINALS)) -> dict[str, np.ndarray]:
    """Intersections as columns of features.

    Args:
        uniforms: (features, 2 × intersections) numbers in [0, 1).
        features: what the rows stand for.
    """
    shares = spread_shares(uniforms)
    return {name: MARGINALS[name].quantiles(row) for name, row in zip(features, shares, strict=True)}
