"""Statistics over seeds: the seed is the unit, so only seeds are ever resampled."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from lcd.statistics.confidence import LEVEL

RESAMPLES = 4000
METHOD = "bootstrap standard error × t"
BOOTSTRAP_SEED = 20240507

Aggregate = Callable[[np.ndarray], np.ndarray]


class Interval(NamedTuple):
    """Bounds of a confidence interval, of one shape."""

    low: np.ndarray
    high: np.ndarray


def mean_over_seeds(values: np.ndarray) -> np.ndarray:
    """Mean over the last axis, the seeds."""
    return values.mean(-1)


def iqm(values: np.ndarray) -> np.ndarray:
    """Interquartile mean over the last axis: a quarter (rounded down) is cut off at either end."""
    values = np.sort(values, axis=-1)
    cut = values.shape[-1] // 4
    return values[..., cut : values.shape[-1] - cut].mean(-1)


def bootstrap(
    samples: list[np.ndarray],
    statistic: Callable[[np.ndarray], np.ndarray],
    *,
    paired: bool,
    aggregate: Aggregate = mean_over_seeds,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = BOOTSTRAP_SEED,
) -> Interval:
    """Confidence intervals of statistics of several conditions' averages, over seeds.

    The interval is the estimate ± Student's t quantile times the bootstrap's standard error. Each
    resample draws n - 1 of n seeds, which makes the squared standard error of a mean unbiased. A
    percentile bootstrap promises 95 % and keeps about 83 % with five seeds, and far less for a ψ near its
    boundary at zero, where resampling adds to the upward bias of absolute values. In simulations with
    known truth (tests/benchmarks/bench_coverage.py; docs/calibration.md has the table) this one keeps 93-97 % for
    AUC and the calibrated φ and ψ with 5, 10 and 20 seeds, where BCa is as far off as percentiles and bootstrap-t
    falls short for ratios. No interval of five seeds knows of a failure that none of them had: see the same table.

    Args:
        samples: one array of per-seed values a condition, all in the same order of seeds when `paired`.
        statistic: from averages (..., conditions) to statistics (..., k).
        paired: draw seeds jointly for all conditions, because they were trained on the same seeds.
        aggregate: averages over the last axis.
        level: the confidence.
        resamples: how many are drawn.
        seed: of the generator that draws them.

    Returns:
        Bounds (k,); NaN where a condition that matters has one seed only.
    """
    estimate = statistic(np.array([aggregate(sample) for sample in samples]))
    counts = [len(sample) for sample in samples]
    if max(counts) < 2:
        return Interval(np.full_like(estimate, np.nan), np.full_like(estimate, np.nan))
    rng = np.random.default_rng(seed)
    drawn = statistic(replicates(samples, paired=paired, aggregate=aggregate, resamples=resamples, rng=rng))
    spread = half_width(drawn, min(count for count in counts if count > 1), level)
    return Interval(estimate - spread, estimate + spread)


def half_width(drawn: np.ndarray, count: int, level: float = LEVEL) -> np.ndarray:
    """Half the width of the intervals of statistics (resamples, …) drawn from `count` seeds: t times their spread."""
    if count < 2:
        return np.full(drawn.shape[1:], np.nan)
    return stdtrit(count - 1, 0.5 + level / 2) * drawn.std(0)


def widen(estimate: np.ndarray, drawn: np.ndarray, count: int) -> np.ndarray:
    """Replicates whose deviations from the estimate are as much wider as Student's t is than the normal.

    For statistics that are not smooth (ranks, classes), whose quantiles over replicates are their interval.
    """
    return estimate + (drawn - estimate) * stdtrit(count - 1, 0.975) / ndtri(0.975)


def mean_interval(values: np.ndarray, level: float = LEVEL) -> Interval:
    """Student's interval of the mean over the first axis, the seeds; NaN for a single seed."""
    count = values.shape[0]
    if count < 2:
        return Interval(*np.full((2, *values.shape[1:]), np.nan))
    half = stdtrit(count - 1, 0.5 + level / 2) * values.std(0, ddof=1) / np.sqrt(count)
    return Interval(values.mean(0) - half, values.mean(0) + half)


def replicates(
    samples: list[np.ndarray],
    *,
    paired: bool,
    rng: np.random.Generator,
    aggregate: Aggregate = mean_over_seeds,
    resamples: int = RESAMPLES,
) -> np.ndarray:
    """Averages (resamples, conditions) of n - 1 drawn seeds of each condition's n; NaN for a condition of one seed."""
    averages = np.full((resamples, len(samples)), np.nan)
    for column, drawn in enumerate(_draws([len(sample) for sample in samples], paired, rng, resamples)):
        if drawn is not None:
            averages[:, column] = aggregate(samples[column][drawn])
    return averages


def curve_replicates(
    samples: list[np.ndarray], *, paired: bool, rng: np.random.Generator, resamples: int = RESAMPLES
) -> np.ndarray:
    """Mean curves (resamples, conditions, k) of seeds drawn as `replicates` does, from curves (seeds, k)."""
    means = np.full((resamples, len(samples), samples[0].shape[1]), np.nan)
    for column, drawn in enumerate(_draws([len(sample) for sample in samples], paired, rng, resamples)):
        if drawn is not None:
            count = len(samples[column])
            places = drawn + count * np.arange(resamples)[:, None]
            often = np.bincount(places.ravel(), minlength=resamples * count).reshape(resamples, count)
            means[:, column] = often @ samples[column] / (count - 1)
    return means


def _draws(counts: list[int], paired: bool, rng: np.random.Generator, resamples: int) -> Iterator[np.ndarray | None]:
    """Each condition's drawn seeds (resamples, n − 1); None for a condition of one seed."""
    drawn = None
    for count in counts:
        if count < 2:
            yield None
            continue
        if drawn is None or not paired:
            drawn = rng.integers(count, size=(resamples, count - 1))
        yield drawn
