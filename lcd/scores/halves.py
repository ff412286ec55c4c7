"""Scores from one half of the seeds and from the other: how far two studies of that size would agree."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lcd.scores.scoring import TaskSamples, score_columns
from lcd.statistics.intervals import BOOTSTRAP_SEED

SPLITS = 100


def half_scores(tasks: Mapping[Any, TaskSamples], least: float, splits: int = SPLITS) -> np.ndarray:
    """Scores (2, splits, tasks, scores) of several tasks from either half of their seeds, at random; NaN of one seed.

    Of an odd number of seeds one is left out. Tasks that were all trained on the same seeds are halved together,
    because a seed may make several of them easy.

    Args:
        tasks: What is known of each.
        least: The least AUC that scores divide by.
        splits: How often seeds are halved.
    """
    together = len({samples.seeds for samples in tasks.values()}) == 1
    found = []
    for place, samples in enumerate(tasks.values()):
        rng = np.random.default_rng(BOOTSTRAP_SEED if together else [BOOTSTRAP_SEED, place])
        found.append(_of_task(samples, least, splits, rng))
    return np.stack(found, axis=2)


def times_of_half(count: int) -> float:
    """How many halves so many seeds are."""
    return count / (count // 2) if count > 1 else np.nan


def _of_task(samples: TaskSamples, least: float, splits: int, rng: np.random.Generator) -> np.ndarray:
    """Scores (2, splits, scores) of one task."""
    chosen = _halves([len(area) for area in samples.areas], samples.paired, splits, rng)
    areas = [_mean(area[:, None], half)[..., 0] for area, half in zip(samples.areas, chosen, strict=True)]
    scores = samples.scores(np.stack(areas, axis=-1), least)
    if samples.curves:
        means = np.stack([_mean(each, half) for each, half in zip(samples.curves, chosen, strict=True)], axis=-2)
        columns = score_columns(samples.contrasts)
        for name, shift in samples.shifts(means).items():
            scores[..., columns.index(name)] = shift.value
    return scores


def _halves(counts: list[int], paired: bool, splits: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Of each condition which seeds (2, splits, seeds) are in which half, as weights that add up to 1."""
    found: list[np.ndarray] = []
    for count in counts:
        if paired and found:
            found.append(found[0])
            continue
        half = count // 2
        place = rng.permuted(np.tile(np.arange(count), (splits, 1)), axis=1)
        weights = [(place < half), (place >= half) & (place < 2 * half)]
        found.append(np.stack(weights) / half if half else np.full((2, splits, count), np.nan))
    return found


def _mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Means (2, splits, k) of values (seeds, k) by halves."""
    return np.asarray(weights @ values)
