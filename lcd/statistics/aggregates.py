"""Aggregates over tasks and seeds (Agarwal et al. 2021), with intervals from seeds resampled within each task.

Scores come as a mapping from task to one value a seed, so that no axis can be taken for the other, and tasks may
have unequal numbers of seeds.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.stats import trim_mean

from lcd.envs.errors import InputError
from lcd.statistics.intervals import BOOTSTRAP_SEED, RESAMPLES, half_width

Scores = Mapping[str, np.ndarray]
"""Task to the values of its seeds; leading axes, if there are any, are resamples, and statistics keep them."""

Statistic = Callable[[Scores], np.ndarray]


def pooled_iqm(scores: Scores) -> np.ndarray:
    """Interquartile mean over all seeds of all tasks."""
    return trim_mean(np.concatenate(list(scores.values()), axis=-1), 0.25, axis=-1)


def pooled_mean(scores: Scores) -> np.ndarray:
    """Mean over tasks of the mean over seeds."""
    return _task_means(scores).mean(-1)


def median_task(scores: Scores) -> np.ndarray:
    """Median over tasks of the mean over seeds."""
    return np.median(_task_means(scores), axis=-1)


def optimality_gap(scores: Scores) -> np.ndarray:
    """By how much all seeds of all tasks fall short of 1, on average; what is above 1 does not make up for it."""
    return 1 - _task_means({task: np.minimum(values, 1) for task, values in scores.items()}).mean(-1)


AGGREGATES: dict[str, Statistic] = {
    "iqm": pooled_iqm,
    "mean": pooled_mean,
    "median": median_task,
    "optimality_gap": optimality_gap,
}


def _task_means(scores: Scores) -> np.ndarray:
    return np.stack([values.mean(-1) for values in scores.values()], axis=-1)


def probability_of_improvement(scores: Scores, others: Scores) -> np.ndarray:
    """Mean over tasks of the probability that a seed of `scores` is above one of `others`; ties count half."""
    _same_tasks(scores, others)
    above = [np.sign(values[..., :, None] - others[task][..., None, :]) for task, values in scores.items()]
    return np.stack([(each.mean((-2, -1)) + 1) / 2 for each in above], axis=-1).mean(-1)


def performance_profile(scores: Scores, thresholds: np.ndarray) -> np.ndarray:
    """Share of runs above each threshold: mean over tasks of the share of seeds."""
    return np.mean([(values[..., None] > thresholds).mean(-2) for values in scores.values()], axis=0)


def with_interval(
    statistic: Callable[..., np.ndarray],
    *scores: Scores,
    resamples: int = RESAMPLES // 4,
    seed: int = BOOTSTRAP_SEED,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimate and 95 % bounds of a statistic of one or several sets of scores.

    Seeds are drawn within each task (n - 1 of n), which leaves the tasks as they are: they are the benchmark, not a
    sample of one. The interval is the estimate ± t times the standard error, as in `lcd.statistics.intervals`; NaN
    where some task has one seed only.
    """
    for one in scores:
        if not one or any(len(values) == 0 for values in one.values()):
            raise InputError("An aggregate needs at least one task, and each task at least one seed.")
    estimate = np.asarray(statistic(*scores), float)
    fewest = min(len(values) for one in scores for values in one.values())
    if fewest < 2:
        return estimate, np.full_like(estimate, np.nan), np.full_like(estimate, np.nan)
    rng = np.random.default_rng(seed)
    drawn = statistic(*_drawn(scores, resamples, rng))
    # Every task adds what its seeds know: its n - 1 degrees of freedom.
    freedom = sum(len(values) - 1 for values in scores[0].values())
    spread = half_width(drawn, freedom + 1)
    return estimate, estimate - spread, estimate + spread


def _drawn(scores: Sequence[Scores], resamples: int, rng: np.random.Generator) -> list[Scores]:
    """Resamples of each set of scores: (resamples, seeds - 1) a task."""
    counts = [len(values) for one in scores for values in one.values()]
    if len(set(counts)) == 1:
        places = list(rng.integers(counts[0], size=(resamples, len(counts), counts[0] - 1)).swapaxes(0, 1))
    else:
        # The numbers that are drawn for equal counts, resample by resample.
        every = [[rng.integers(count, size=count - 1) for count in counts] for _ in range(resamples)]
        places = [np.stack(each) for each in zip(*every, strict=True)]
    following = iter(places)
    return [{task: values[next(following)] for task, values in one.items()} for one in scores]


def _same_tasks(scores: Scores, others: Scores) -> None:
    if set(scores) != set(others):
        missing = sorted(set(scores) ^ set(others))
        raise InputError(f"Both sets of scores need the same tasks, but only one has {', '.join(missing)}.")
