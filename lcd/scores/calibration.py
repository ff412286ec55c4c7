"""Does a definition measure what it claims? Scores of tasks whose hardness is known, against that hardness."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from lcd.envs.protocols import KnownHardness, offers
from lcd.scores.contrasts import COMPARED, SAMPLES
from lcd.scores.scoring import OF_CURVES, TaskSamples, score_columns, score_replicates
from lcd.statistics.intervals import half_width

LEVELS = {"perception": "perception_level", "reward": "reward_level"}
MEASURES = {
    "phi_recovery": ("phi", "perception"),
    "psi_recovery": ("psi", "reward"),
    "phi_crosstalk": ("phi", "reward"),
    "psi_crosstalk": ("psi", "perception"),
}
"""Measure → the score and the kind of hardness whose ranks are compared."""


def ground_truth(benchmark: str, task: str) -> dict[str, float]:
    """How hard a task was made: its perception_level and reward_level, NaN where the benchmark does not say."""
    unknown = dict.fromkeys(LEVELS.values(), math.nan)
    from lcd.envs.benchmarks import registered_benchmark

    found = registered_benchmark(benchmark)
    truth = found.truth if offers(found, KnownHardness) else {}
    if task not in truth:
        return unknown
    return {column: float(getattr(truth[task], kind)) for kind, column in LEVELS.items()}


def calibrate(
    table: pd.DataFrame, samples: Mapping[tuple, TaskSamples], group: Sequence[str], least: float
) -> dict[str, Any]:
    """Spearman correlations of every definition's scores, and of those in samples, with the tasks' true hardness.

    Args:
        table: rows in the order of `samples`, with perception_level and reward_level and the scores of every
            definition.
        samples: (group…, task) → its per-seed areas.
        group: the columns that tell groups apart.
        least: the least AUC that scores divide by.

    Returns:
        Definition, or `SAMPLES`, → measure of `MEASURES` → value, low, high and tasks (how many had the score). Empty
        without known hardness. Of several groups (agents, say) the first one's; then "groups" lists those of all, each
        with its key. Intervals are the correlation ± t times its standard error over resampled seeds, cut at ±1.
    """
    keys = list(samples)
    found = []
    for key, rows in table.groupby(list(group), sort=False):
        known = rows[rows[list(LEVELS.values())].notna().all(axis=1) & (rows["status"] != "no_range")]
        if known[list(LEVELS.values())].nunique().max() > 1:
            chosen = {keys[place]: samples[keys[place]] for place in known.index}
            found.append(({"group": dict(zip(group, key, strict=True))}, _measures(known, chosen, least)))
    if not found:
        return {}
    everything = {"groups": [named | measures for named, measures in found]} if len(found) > 1 else {}
    return found[0][1] | everything


def _measures(rows: pd.DataFrame, samples: Mapping[tuple, TaskSamples], least: float) -> dict[str, Any]:
    drawn = score_replicates(samples, least)
    in_steps = score_replicates(samples, least, OF_CURVES, steps=True)
    count = min(each.count for each in samples.values())
    return {
        name: {
            measure: _correlation(
                rows[f"{score}_{name}"].to_numpy(float),
                (in_steps if name == SAMPLES else drawn)[..., score_columns().index(f"{score}_{name}")],
                rows[LEVELS[kind]].to_numpy(float),
                count,
            )
            for measure, (score, kind) in MEASURES.items()
        }
        for name in COMPARED
    }


def _correlation(scores: np.ndarray, drawn: np.ndarray, levels: np.ndarray, count: int) -> dict[str, float]:
    """A Spearman correlation over the tasks that have the score, and its interval over seeds."""
    scored = ~np.isnan(scores)
    value = float(spearman(scores[scored], levels[scored]))
    known = drawn[:, scored]
    # Of few resamples a score in steps may be unknown.
    known = known[~np.isnan(known).any(axis=1)] if scored.any() else known
    spread = half_width(spearman(known, levels[scored]), count)
    return {
        "value": value,
        "low": float(np.maximum(value - spread, -1)),
        "high": float(np.minimum(value + spread, 1)),
        "tasks": int(scored.sum()),
    }


def spearman(scores: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation of scores (..., tasks) with levels (tasks,); NaN where either does not vary."""
    ranks, others = rankdata(scores, axis=-1), rankdata(levels)
    ranks, others = ranks - ranks.mean(-1, keepdims=True), others - others.mean()
    norm = np.sqrt((ranks**2).sum(-1) * (others**2).sum())
    return np.divide((ranks * others).sum(-1), norm, out=np.full(norm.shape, np.nan), where=norm > 0)
