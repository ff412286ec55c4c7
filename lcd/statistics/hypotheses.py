"""Tests of hypotheses: Student's t, correlations with p-values, and corrections for testing many."""

import math
from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
from scipy import stats

from lcd.envs.errors import InputError, nearest

EXACT_UP_TO = 8
"""Up to so many pairs, a rank correlation's p-value counts all permutations; beyond, it follows Student's t."""
ALTERNATIVES = ("greater", "less", "two-sided")
ROUNDING = 1e-12


class TestResult(NamedTuple):
    """What a test found."""

    statistic: float
    p: float
    samples: int
    """How many values, or pairs, it rests on."""


def t_test(
    values: np.ndarray, others: np.ndarray | None = None, *, paired: bool = False, alternative: str = "greater"
) -> TestResult:
    """Student's t-test that values are greater (or less) than others, or than 0; one-tailed unless told otherwise.

    Args:
        values: one value a seed, or a task.
        others: likewise; without them the mean is tested against 0.
        paired: values and others belong together one by one; else Welch's test, which takes unequal variances.
        alternative: "greater", "less" or "two-sided".

    Returns:
        NaN where there are fewer than two values, or where they do not vary.
    """
    _known("alternative", alternative, ALTERNATIVES)
    values = np.asarray(values, float)
    if others is not None and paired:
        if len(values) != len(others):
            raise InputError(f"A paired test needs as many values ({len(values)}) as others ({len(others)}).")
        values, others = values - np.asarray(others, float), None
    samples = [values] if others is None else [values, np.asarray(others, float)]
    count = sum(map(len, samples))
    if min(map(len, samples)) < 2 or all(np.ptp(sample) == 0 for sample in samples):
        return TestResult(math.nan, math.nan, count)
    if others is None:
        found = stats.ttest_1samp(values, 0.0, alternative=alternative)
    else:
        found = stats.ttest_ind(*samples, equal_var=False, alternative=alternative)
    return TestResult(float(found.statistic), float(found.pvalue), count)


def correlation(x: np.ndarray, y: np.ndarray, *, kind: str = "spearman", alternative: str = "two-sided") -> TestResult:
    """A correlation over pairs that are both numbers, and its p-value.

    A rank correlation of few pairs has few possible values, none of which a t distribution knows (over three pairs it
    is ±.5 or ±1, and no p-value is below 1/6): its p-value is exact.
    """
    _known("kind", kind, ("spearman", "pearson"))
    _known("alternative", alternative, ALTERNATIVES)
    x, y = np.asarray(x, float), np.asarray(y, float)
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return TestResult(math.nan, math.nan, len(x))
    if kind == "pearson":
        found = stats.pearsonr(x, y, alternative=alternative)
        return TestResult(float(found.statistic), float(found.pvalue), len(x))
    found = stats.spearmanr(x, y, alternative=alternative)
    p = float(found.pvalue) if len(x) > EXACT_UP_TO else _exact(stats.rankdata(x), stats.rankdata(y), alternative)
    return TestResult(float(found.statistic), p, len(x))


def _exact(ranks: np.ndarray, others: np.ndarray, alternative: str) -> float:
    """Share of all permutations that agree at least as well as what was seen."""
    ranks, others = ranks - ranks.mean(), others - others.mean()
    seen = ranks @ others
    drawn = np.array(list(permutations(others))) @ ranks
    if alternative == "two-sided":
        seen, drawn = abs(seen), np.abs(drawn)
    elif alternative == "less":
        seen, drawn = -seen, -drawn
    return float((drawn >= seen - ROUNDING * len(ranks) ** 3).mean())


def adjust(p: Sequence[float], method: str = "holm") -> np.ndarray:
    """P-values corrected for being several, in their order; NaN stays NaN and counts for nothing.

    Args:
        p: the p-values.
        method: "holm" (uniformly more powerful) or "bonferroni".
    """
    _known("method", method, ("holm", "bonferroni"))
    values = np.asarray(p, float)
    adjusted = np.full(values.shape, math.nan)
    tested = np.flatnonzero(~np.isnan(values))
    if method == "bonferroni":
        adjusted[tested] = np.minimum(values[tested] * len(tested), 1)
        return adjusted
    order = tested[np.argsort(values[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1)
    return adjusted


def _known(key: str, value: str, options: Sequence[str]) -> None:
    if value not in options:
        raise InputError(f"{key}={value} is unknown: {nearest(str(value), options)}")
