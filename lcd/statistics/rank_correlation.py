"""Spearman's correlation, what is left of it given a third thing, and the best that noise of seeds lets it be."""

import numpy as np
from scipy.stats import rankdata

LEAST_TASKS = 3
"""Fewer have no ranks that could disagree much."""


def spearman(scores: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation of scores (..., tasks) with levels that are as many; NaN where either is constant."""
    ranks, others = (rankdata(each, axis=-1) for each in (scores, levels))
    ranks, others = (each - each.mean(-1, keepdims=True) for each in (ranks, others))
    norm = np.sqrt((ranks**2).sum(-1) * (others**2).sum(-1))
    return np.divide((ranks * others).sum(-1), norm, out=np.full(norm.shape, np.nan), where=norm > 0)


def partial(ours: float, with_third: float, of_third: float) -> float:
    """The correlation of two things, given a third, from all three correlations.

    Args:
        ours: the correlation of the two.
        with_third: that of the first of them with the third.
        of_third: that of the second with the third.
    """
    left = (1 - with_third**2) * (1 - of_third**2)
    return float((ours - with_third * of_third) / np.sqrt(left)) if left > 0 else float("nan")


def spearman_brown(correlation: float, times: float) -> float:
    """What two measurements would correlate at if each rested on so many times the seeds that it does."""
    return times * correlation / (1 + (times - 1) * correlation)


def ceiling(first: np.ndarray, second: np.ndarray, times: float) -> float:
    """The Spearman correlation that scores have, in the mean, with what they would be without noise.

    Scores from one half of the seeds and from the other one agree as far as noise lets them. Spearman and Brown's
    formula says how far all seeds would agree with as many others, and its root (attenuation) how far with the truth:
    no truth, however right, is recovered better, but by chance.

    Args:
        first: scores (splits, tasks) from one half of the seeds; NaN where a task has none.
        second: those from the other half.
        times: how many halves all seeds are.

    Returns:
        NaN where fewer than three tasks have a score in both halves of any split.
    """
    found = []
    for ours, theirs in zip(first, second, strict=True):
        known = ~np.isnan(ours) & ~np.isnan(theirs)
        if known.sum() >= LEAST_TASKS:
            found.append(float(spearman(ours[known], theirs[known])))
    agreed = np.array(found)[~np.isnan(found)] if found else np.array([])
    if not len(agreed):
        return float("nan")
    return float(np.sqrt(spearman_brown(max(float(agreed.mean()), 0.0), times)))
