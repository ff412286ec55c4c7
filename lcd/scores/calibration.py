"""Does a definition measure what it claims? Scores of tasks whose hardness is known, against that hardness."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lcd.envs.protocols import KnownHardness, offers
from lcd.scores.contrasts import COMPARED, SAMPLES
from lcd.scores.halves import half_scores, times_of_half
from lcd.scores.scoring import OF_CURVES, TaskSamples, score_columns, score_replicates
from lcd.statistics.intervals import half_width
from lcd.statistics.rank_correlation import ceiling, partial, spearman

LEVELS = {"perception": "perception_level", "reward": "reward_level"}
MEASURES = {
    "phi_recovery": ("phi", "perception"),
    "psi_recovery": ("psi", "reward"),
    "phi_crosstalk": ("phi", "reward"),
    "psi_crosstalk": ("psi", "perception"),
}
"""Measure → the score and the kind of hardness whose ranks are compared."""
TRUTHS = "truths"
"""What both kinds of hardness have to do with each other."""


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
        Definition, or `SAMPLES`, → measure of `MEASURES` → value, low, high, tasks (how many had the score), ceiling
        and, where both kinds are known, partial. "truths" → value and tasks: ρ of both kinds with each other. Measures
        against a kind of hardness that nobody knows are not there, and nothing is where none is known. Of several
        groups (agents, say) the first one's; then "groups" lists those of all, each with its key.

        Intervals are the correlation ± t times its standard error over resampled seeds, cut at ±1. The ceiling is what
        noise of seeds lets the score's ρ with any truth be (see `lcd.statistics.rank_correlation.ceiling`), and partial
        the correlation that is left given the other kind of hardness.
    """
    keys = list(samples)
    found = []
    for key, rows in table.groupby(list(group), sort=False):
        rows = rows[rows["status"] != "no_range"]
        levels = rows[list(LEVELS.values())]
        rows = rows[levels.notna().any(axis=1)]
        if levels.nunique().max() > 1:
            chosen = {keys[place]: samples[keys[place]] for place in rows.index}
            found.append(({"group": dict(zip(group, key, strict=True))}, _measures(rows, chosen, least)))
    if not found:
        return {}
    everything = {"groups": [named | measures for named, measures in found]} if len(found) > 1 else {}
    return found[0][1] | everything


def _measures(rows: pd.DataFrame, samples: Mapping[tuple, TaskSamples], least: float) -> dict[str, Any]:
    drawn = score_replicates(samples, least)
    in_steps = score_replicates(samples, least, OF_CURVES, steps=True)
    first, second = half_scores(samples, least)
    count = min(each.count for each in samples.values())
    times = times_of_half(count)
    levels = {kind: rows[column].to_numpy(float) for kind, column in LEVELS.items() if rows[column].notna().any()}
    found: dict[str, Any] = {}
    for name in COMPARED:
        found[name] = {}
        for measure, (score, kind) in MEASURES.items():
            if kind not in levels:
                continue
            column = score_columns().index(f"{score}_{name}")
            scores = rows[f"{score}_{name}"].to_numpy(float)
            scored = ~np.isnan(scores) & ~np.isnan(levels[kind])
            resampled = (in_steps if name == SAMPLES else drawn)[:, scored, column]
            found[name][measure] = (
                _correlation(scores[scored], resampled, levels[kind][scored], count)
                | {"ceiling": ceiling(first[:, scored, column], second[:, scored, column], times)}
                | _given_the_other(scores, levels, kind)
            )
    return found | _truths(levels)


def _correlation(scores: np.ndarray, drawn: np.ndarray, levels: np.ndarray, count: int) -> dict[str, float]:
    """A Spearman correlation over the tasks that have the score, and its interval over seeds."""
    value = float(spearman(scores, levels))
    # Of few resamples a score in steps may be unknown.
    known = drawn[~np.isnan(drawn).any(axis=1)] if len(scores) else drawn
    spread = half_width(spearman(known, levels), count)
    return {
        "value": value,
        "low": float(np.maximum(value - spread, -1)),
        "high": float(np.minimum(value + spread, 1)),
        "tasks": len(scores),
    }


def _given_the_other(scores: np.ndarray, levels: Mapping[str, np.ndarray], kind: str) -> dict[str, float]:
    """What is left of a correlation given the other kind of hardness, where that is known."""
    if len(levels) < len(LEVELS):
        return {}
    known = ~np.isnan([scores, *levels.values()]).any(axis=0)
    scores, ours = scores[known], levels[kind][known]
    other = next(each[known] for name, each in levels.items() if name != kind)
    correlations = (spearman(scores, ours), spearman(scores, other), spearman(ours, other))
    return {"partial": partial(*(float(each) for each in correlations))}


def _truths(levels: Mapping[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """The correlation of both kinds of hardness, where both are known."""
    if len(levels) < len(LEVELS):
        return {}
    both = np.stack(list(levels.values()))
    known = both[:, ~np.isnan(both).any(axis=0)]
    return {TRUTHS: {"value": float(spearman(*known)), "tasks": known.shape[1]}}
