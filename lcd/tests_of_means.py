"""One-tailed t-tests, correlations with their p-values, and corrections for making several tests."""

from itertools import permutations
from typing import NamedTuple

import numpy as np
from scipy import stats

EXACT = 7
"""Up to so many pairs the rank correlation's p-value counts all orders; t is a poor guide there."""


class Test(NamedTuple):
    """A statistic, its p-value and how many units it was computed from."""

    value: float
    p: float
    n: int


def greater(sample: np.ndarray, other: np.ndarray | None = None, paired: bool = False) -> Test:
    """One-tailed t-test that a sample's mean is above another's (Welch's, or paired), or above 0."""
    sample = np.asarray(sample, float)
    if other is None or paired:
        differences = sample if other is None else sample - np.asarray(other, float)
        if len(differences) < 2 or np.ptp(differences) == 0:
            return Test(np.nan, np.nan, len(differences))
        found = stats.ttest_1samp(differences, 0, alternative="greater")
        return Test(float(found.statistic), float(found.pvalue), len(differences))
    other = np.asarray(other, float)
    if min(len(sample), len(other)) < 2 or np.ptp(sample) == np.ptp(other) == 0:
        return Test(np.nan, np.nan, min(len(sample), len(other)))
    found = stats.ttest_ind(sample, other, equal_var=False, alternative="greater")
    return Test(float(found.statistic), float(found.pvalue), min(len(sample), len(other)))


def spearman(x: np.ndarray, y: np.ndarray) -> Test:
    """Rank correlation with its two-sided p-value, which is exact for few pairs."""
    x, y = _complete(x, y)
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Test(np.nan, np.nan, len(x))
    first, second = stats.rankdata(x), stats.rankdata(y)
    value = float(np.corrcoef(first, second)[0, 1])
    if len(x) > EXACT:
        return Test(value, float(stats.spearmanr(x, y).pvalue), len(x))
    orders = np.array(list(permutations(second)))
    centred = (orders - orders.mean(1, keepdims=True)) @ (first - first.mean())
    own = abs((second - second.mean()) @ (first - first.mean()))
    return Test(value, float((np.abs(centred) >= own - 1e-9).mean()), len(x))


def pearson(x: np.ndarray, y: np.ndarray) -> Test:
    """Linear correlation with its two-sided p-value."""
    x, y = _complete(x, y)
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Test(np.nan, np.nan, len(x))
    found = stats.pearsonr(x, y)
    return Test(float(found.statistic), float(found.pvalue), len(x))


def holm(p: np.ndarray) -> np.ndarray:
    """p-values corrected for all of them being looked at (Holm 1979); NaN stays NaN and counts for nothing."""
    p = np.asarray(p, float)
    corrected, valid = np.full_like(p, np.nan), np.flatnonzero(np.isfinite(p))
    order = valid[np.argsort(p[valid])]
    steps = p[order] * (len(order) - np.arange(len(order)))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1) if len(order) else steps
    return corrected


def _complete(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(x, float), np.asarray(y, float)
    both = np.isfinite(x) & np.isfinite(y)
    return x[both], y[both]
