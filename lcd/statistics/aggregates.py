"""Aggregates over tasks and seeds (Agarwal et al. 2021), with intervals from seeds resampled within each task.

Scores come as a mapping from task to one value a seed, so that no axis can be taken for the other, and tasks may
have unequal numbers of seeds.
"""

from collections.abc import Callable, Mapping

import numpy as np
from scipy.stats import trim_mean

from lcd.envs.errors import InputError
from lcd.statistics.intervals import BOOTSTRAP_SEED, RESAMPLES, half_width

Scores = Mapping[str, np.ndarray]


def pooled_iqm(scores: Scores) -> float:
    """Interquartile mean over all seeds of all tasks."""
    return float(trim_mean(np.concatenate(list(scores.values())), 0.25))


def pooled_mean(scores: Scores) -> float:
    """Mean over tasks of the mean over seeds."""
    return float(np.mean([values.mean() for values in scores.values()]))


def median_task(scores: Scores) -> float:
    """Median over tasks of the mean over seeds."""
    return float(np.median([values.mean() for values in scores.values()]))


def optimality_gap(scores: Scores) -> float:
    """By how much all seeds of all tasks fall short of 1, on average; what is above 1 does not make up for it."""
    return float(1 - np.mean([np.minimum(values, 1).mean() for values in scores.values()]))


AGGREGATES: dict[str, Callable[[Scores], float]] = {
    "iqm": pooled_iqm,
    "mean": pooled_mean,
    "median": median_task,
    "optimality_gap": optimality_gap,
}


def probability_of_improvement(scores: Scores, others: Scores) -> float:
    """Mean over tasks of the probability that a seed of `scores` is above one of `others`; ties count half."""
    _same_tasks(scores, others)
    wins = []
    for task, values in scores.items():
        difference = np.sign(np.subtract.outer(values, others[task]))
        wins.append((difference.mean() + 1) / 2)
    return float(np.mean(wins))


def performance_profile(scores: Scores, thresholds: np.ndarray) -> np.ndarray:
    """Share of runs above each threshold: mean over tasks of the share of seeds."""
    return np.mean([(values[:, None] > thresholds).mean(0) for values in scores.values()], axis=0)


def with_interval(
    statistic: Callable[..., float | np.ndarray],
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
    drawn = np.array([statistic(*(_drawn(one, rng) for one in scores)) for _ in range(resamples)])
    # Every task adds what its seeds know: its n - 1 degrees of freedom.
    freedom = sum(len(values) - 1 for values in scores[0].values())
    spread = half_width(drawn, freedom + 1)
    return estimate, estimate - spread, estimate + spread


def _drawn(scores: Scores, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {task: values[rng.integers(len(values), size=len(values) - 1)] for task, values in scores.items()}


def _same_tasks(scores: Scores, others: Scores) -> None:
    if set(scores) != set(others):
        missing = sorted(set(scores) ^ set(others))
        raise InputError(f"Both sets of scores need the same tasks, but only one has {', '.join(missing)}.")
