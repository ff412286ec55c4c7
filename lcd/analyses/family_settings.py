"""What is set of the evaluation over families, and what follows from it: which scores are good, and who is ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from lcd.envs.errors import InputError
from lcd.families.measured import MEASURES, Measured
from lcd.families.standings import TIE

KEY = "families"
SOLVED_FROM = 0.95
"""The normalised score from which on a point counts as solved."""
MOST_DRAWS = 100_000
CONCENTRATIONS = (0.01, 1e6)
"""Least and greatest of a Dirichlet distribution whose draws are numbers that sum to 1."""


@dataclass(frozen=True)
class FamilySettings:
    """Settings: `'analysis_params={families: {score: auc}}'`.

    Attributes:
        score: what a point's score is: `final`, the last normalised return, or `auc`, the mean height of the curve.
        solved: the score from which on a method solves a point; null: 0.95 where scores are normalised, else nobody
            knows what solved is, and nothing is said of it.
        draws: how many random distributions over the points are drawn.
        concentration: of the Dirichlet distribution that they are drawn from: at 1 all are alike likely, towards 0 each
            is about few points.
        higher_is_better: whether a high score is good; delays, say, should be low.
        approximations: whether to measure how well fewer points would have told the same.
    """

    score: str = "final"
    solved: float | None = None
    draws: int = 10_000
    concentration: float = 1.0
    higher_is_better: bool = True
    approximations: bool = True

    def __post_init__(self) -> None:
        """Refuse values that nothing can be computed with."""
        where = f"analysis_params.{KEY}"
        if self.score not in MEASURES:
            raise InputError(f"{where}.score={self.score} is no score of a point: take {' or '.join(MEASURES)}.")
        if not 1 <= self.draws <= MOST_DRAWS:
            raise InputError(f"{where}.draws={self.draws} must be a whole number from 1 to {MOST_DRAWS:,}.")
        low, high = CONCENTRATIONS
        if not low <= self.concentration <= high:
            raise InputError(f"{where}.concentration={self.concentration:g} must lie from {low:g} to {high:g}.")

    @property
    def solved_from(self) -> float:
        """The score from which on a point counts as solved."""
        return SOLVED_FROM if self.solved is None else self.solved


def signed(found: Measured, settings: FamilySettings) -> np.ndarray:
    """(methods, points): mean scores, of which the higher ones are the better."""
    return found.means if settings.higher_is_better else -found.means


def ranks_of(values: Sequence[float] | np.ndarray, higher_is_better: bool = True) -> np.ndarray:
    """Ranks, 1 the best; those that differ by rounding alone share the better one. NaN has none."""
    values = np.asarray(values, float)
    found = np.full(len(values), np.nan)
    there = np.isfinite(values)
    sign = -1.0 if higher_is_better else 1.0
    found[there] = rankdata(np.round(sign * values[there] / TIE), method="min")
    return found
