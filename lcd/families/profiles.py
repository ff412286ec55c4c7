"""Performance profiles over a family, and which method is stochastically better than which."""

from typing import NamedTuple

import numpy as np


class Dominance(NamedTuple):
    """How one method stands to another over a family.

    Attributes:
        holds: whether its profile is nowhere below the other's, and somewhere above.
        against: the share of the area between the profiles where it is below: 0 where it dominates, 1 where it is
            dominated; NaN where the profiles are the same.
    """

    holds: bool
    against: float


def profile(
    scores: np.ndarray, distribution: np.ndarray, thresholds: np.ndarray, higher_is_better: bool = True
) -> np.ndarray:
    """The probability that a point of the family, with one seed, is at least as good as each threshold.

    Args:
        scores: (points, seeds) of one method.
        distribution: the probability of each point.
        thresholds: scores.
        higher_is_better: else a low score is good.

    Returns:
        One share a threshold. A profile that lies above is the better one, whichever scores are good.
    """
    sign = 1.0 if higher_is_better else -1.0
    flat = sign * scores.ravel()
    weights = np.repeat(distribution / scores.shape[1], scores.shape[1])
    order = np.argsort(flat, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(weights[order])])
    return 1 - below[np.searchsorted(flat[order], sign * np.asarray(thresholds, float), side="left")]


def dominance(
    scores: np.ndarray, others: np.ndarray, distribution: np.ndarray, higher_is_better: bool = True
) -> Dominance:
    """Whether a method is stochastically better than another one over a family (first order).

    Args:
        scores: (points, seeds) of the one method.
        others: (points, seeds) of the other.
        distribution: the probability of each point.
        higher_is_better: else a low score is good.
    """
    levels = np.unique(np.concatenate([scores.ravel(), others.ravel()]))
    if len(levels) < 2:
        return Dominance(False, float("nan"))
    gap = profile(scores, distribution, levels, higher_is_better) - profile(
        others, distribution, levels, higher_is_better
    )
    # A profile steps at its levels: it has one height between two of them, the one at the worse end's better side.
    widths = np.diff(levels)
    heights = gap[1:] if higher_is_better else gap[:-1]
    heights = np.where(np.abs(heights) < 1e-12, 0.0, heights)
    worse, better = float(widths @ np.maximum(-heights, 0)), float(widths @ np.maximum(heights, 0))
    if worse + better == 0:
        return Dominance(False, float("nan"))
    return Dominance(worse == 0, worse / (worse + better))
