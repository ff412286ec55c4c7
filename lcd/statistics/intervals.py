"""Statistics over seeds: the seed is the unit, so only seeds are ever resampled."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, compress
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from lcd.statistics.confidence import LEVEL

RESAMPLES = 4000
METHOD = "bootstrap standard error × t"
BOOTSTRAP_SEED = 20240507

STEP = 0.1
"""Of a standard error: how far an average is moved to see what it does to a statistic."""
TINY = 1e-9

Aggregate = Callable[[np.ndarray], np.ndarray]
Seeds = Sequence[Sequence[int]]


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
    seeds: Seeds | None = None,
    aggregate: Aggregate = mean_over_seeds,
    level: float | np.ndarray = LEVEL,
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
        samples: one array of per-seed values a condition.
        statistic: from averages (..., conditions) to statistics (..., k).
        seeds: those of each condition, in the order of its values: a seed that several have is drawn for all of them
            together. None: no condition's seeds are another's.
        aggregate: averages over the last axis; with another than the mean each condition is drawn by itself.
        level: the confidence, of all statistics or of each.
        resamples: how many are drawn.
        seed: of the generator that draws them.

    Returns:
        Bounds (k,); NaN where a condition that matters has one seed only.
    """
    averages = np.array([aggregate(sample) for sample in samples])
    estimate = statistic(averages)
    if max(map(len, samples)) < 2:
        return Interval(np.full_like(estimate, np.nan), np.full_like(estimate, np.nan))
    rng = np.random.default_rng(seed)
    own = own_seeds(samples) if seeds is None else seeds
    if aggregate is mean_over_seeds:
        drawn = replicates(samples, seeds=own, resamples=resamples, rng=rng)
    else:
        drawn = _aggregated(samples, aggregate, rng, resamples)
    spread = half_width(statistic(drawn), 1 + freedom(statistic, averages, drawn, own), level)
    return Interval(estimate - spread, estimate + spread)


def freedom(
    statistic: Callable[[np.ndarray], np.ndarray], averages: np.ndarray, drawn: np.ndarray, seeds: Seeds
) -> float | np.ndarray:
    """The degrees of freedom of the spread of statistics of conditions that need not have the same seeds.

    Those of n seeds have n - 1. Otherwise each set of seeds adds its part to the variance, and the parts' degrees of
    freedom make those of the sum (Satterthwaite 1946), never fewer than the fewest, nor more than all seeds have.

    Args:
        statistic: from averages (..., conditions) to statistics (..., k).
        averages: the conditions' (conditions,).
        drawn: their replicates (resamples, conditions).
        seeds: the conditions'.
    """
    sets = list(dict.fromkeys(tuple(mine) for mine in seeds if len(mine) > 1))
    if len(sets) == 1:
        return float(len(sets[0]) - 1)
    moved = influences(statistic, averages, np.nan_to_num(drawn.std(0)))
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = moved * (np.nan_to_num(np.corrcoef(drawn.T)) @ moved)
    of_set = np.array([[tuple(mine) == each for mine in seeds] for each in sets]) @ parts
    counts, matters = np.array([len(each) for each in sets]), np.abs(of_set) > TINY * np.abs(of_set).max(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = of_set.sum(0) ** 2 / (of_set**2 / (counts[:, None] - 1)).sum(0)
    fewest = np.where(matters, counts[:, None], counts.max()).min(0)
    every = [len({*chain(*compress(sets, mine))}) for mine in matters.T]
    return np.clip(np.where(np.isfinite(found), found, fewest - 1), fewest - 1, np.maximum(fewest, every) - 1)


def influences(statistic: Callable[[np.ndarray], np.ndarray], averages: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """How far statistics move (conditions, k) when one condition's average moves by its spread (conditions,)."""
    step = STEP * np.diag(spread)
    return np.nan_to_num(statistic(averages + step) - statistic(averages - step)) / (2 * STEP)


def half_width(drawn: np.ndarray, count: float | np.ndarray, level: float | np.ndarray = LEVEL) -> np.ndarray:
    """Half the width of the intervals of statistics (resamples, …) drawn from `count` seeds: t times their spread."""
    if np.max(count) < 2:
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


def own_seeds(samples: Sequence[np.ndarray]) -> list[tuple[int, ...]]:
    """Seeds of conditions that share none."""
    ends = np.cumsum([len(sample) for sample in samples])
    return [tuple(range(end - len(sample), end)) for sample, end in zip(samples, ends, strict=True)]


def replicates(
    samples: Sequence[np.ndarray],
    *,
    seeds: Seeds,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    among: Iterable[int] | None = None,
) -> np.ndarray:
    """Means (resamples, conditions, …) over drawn seeds; NaN for a condition of one seed.

    Of all N seeds N - 1 are drawn. A condition that has all of them has the mean of those. The deviations of one that
    has n of them are as much larger as makes the variance of its mean unbiased, too; means of two conditions vary
    together by the seeds that both have.

    Args:
        samples: one array (seeds, …) a condition.
        seeds: the conditions', in the order of their values.
        rng: what draws.
        resamples: how many are drawn.
        among: seeds that are drawn from, where others beside these conditions have them, too.
    """
    places = {each: place for place, each in enumerate(dict.fromkeys([*(among or ()), *chain(*seeds)]))}
    total = len(places)
    means = np.full((resamples, len(samples), *samples[0].shape[1:]), np.nan)
    if total < 2:
        return means
    drawn = rng.integers(total, size=(resamples, total - 1)) + total * np.arange(resamples)[:, None]
    often = np.bincount(drawn.ravel(), minlength=resamples * total).reshape(resamples, total)
    for column, (sample, mine) in enumerate(zip(samples, seeds, strict=True)):
        if (count := len(sample)) > 1:
            scale = np.sqrt(total / ((total - 1) * count * (count - 1)))
            mean = sample.mean(0)
            means[:, column] = mean + scale * (often[:, [places[each] for each in mine]] @ (sample - mean))
    return means


def _aggregated(
    samples: Sequence[np.ndarray], aggregate: Aggregate, rng: np.random.Generator, resamples: int
) -> np.ndarray:
    """Averages (resamples, conditions) of n - 1 drawn seeds of each condition's n; NaN for a condition of one seed."""
    averages = np.full((resamples, len(samples)), np.nan)
    drawn: dict[int, np.ndarray] = {}
    for column, sample in enumerate(samples):
        if (count := len(sample)) > 1:
            if count not in drawn:
                drawn[count] = rng.integers(count, size=(resamples, count - 1))
            averages[:, column] = aggregate(sample[drawn[count]])
    return averages
