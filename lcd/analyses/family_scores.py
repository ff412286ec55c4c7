"""Do φ and ψ of a task hold over its family? Each point that was trained under their conditions is scored as a task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Evidence
from lcd.curves.names import evaluated_name
from lcd.curves.reading import as_categories
from lcd.curves.table import TEXT
from lcd.families.weights import default_among_points, point_weights
from lcd.scores.challenge_table import GROUP
from lcd.scores.contrasts import HEADLINE
from lcd.scores.diagnosis import Diagnosis, samples_by_task
from lcd.scores.scoring import TaskSamples, score_columns, score_replicates
from lcd.statistics.intervals import half_width

RESAMPLED = 200
"""Resamples of an interval here: of every point, so that a report takes seconds."""


def challenges_over_families(evidence: Evidence) -> Analysis | None:
    """Do φ and ψ hold over the family? Of points that were trained under their conditions."""
    diagnosis = evidence.diagnosis
    if (points := diagnosis.points).empty:
        return None
    points = with_defaults(points, diagnosis.curves)
    points = points[(points["split"] == "eval") & points["normalised"].notna()]
    if points["view"].nunique() < 2 and points["reward_p"].nunique() < 2:
        return None
    samples = samples_by_task(as_tasks(points))
    places = points[["benchmark", "task", "context"]].drop_duplicates().astype(str)
    rows: list[dict[str, Any]] = []
    groups = points[[*GROUP, "task"]].drop_duplicates().sort_values([*GROUP, "task"])
    for *group, task in groups.itertuples(index=False, name=None):
        of_task = places[(places["task"] == task) & (places["benchmark"] == group[0])]
        mine = {
            context: samples[key]
            for context in of_task["context"]
            if (key := (*group, evaluated_name(task, context))) in samples
        }
        if mine:
            weights = point_weights(group[0], task, points[points["task"] == task], list(mine))
            named = dict(zip(GROUP, group, strict=True)) | {"task": task}
            rows += _rows(mine, weights, named, diagnosis)
    if not rows:
        return None
    note = (
        f"Unscaled scores ({diagnosis.definition}) of each point, as if it were a task; their mean over the family "
        "with an interval over seeds (none where each point has one agent), their quantiles over points, and the value "
        "on the default point. Points that are unsolved under every condition, or leave nothing to divide by, have no "
        "score: the rest weighs what it weighs in the family, made to sum to 1."
    )
    return Analysis("family_scores", "Do φ and ψ hold over the family?", pd.DataFrame(rows), _says(rows), note)


def with_defaults(points: pd.DataFrame, defaults: pd.DataFrame) -> pd.DataFrame:
    """Curves of points, and of the default points that are among their families', by the names of points.

    Args:
        points: rows that `lcd.curves.table.of_points` chooses.
        defaults: rows of tasks as they were trained.
    """
    found = points
    for benchmark, task in points[["benchmark", "task"]].drop_duplicates().astype(str).itertuples(index=False):
        name = default_among_points(benchmark, task)
        own = defaults[(defaults["benchmark"] == benchmark) & (defaults["task"] == task)] if name else defaults[:0]
        if len(own):
            again = (found["benchmark"] == benchmark) & (found["task"] == task) & (found["context"] == name)
            found = pd.concat([found[~again], own.assign(context=name, trained_on=evaluated_name(task, name))])
    return found.astype(dict.fromkeys(TEXT, "category"))


def as_tasks(points: pd.DataFrame) -> pd.DataFrame:
    """The same curves, with each point as a task of its own that was trained as it is."""
    names = as_categories(points["trained_on"])
    plain = points.assign(task=names, trained_on=names, context="")
    return plain.astype(dict.fromkeys(TEXT, "category"))


def _rows(
    mine: dict[str, TaskSamples], weights: np.ndarray, named: dict[str, Any], diagnosis: Diagnosis
) -> Iterator[dict[str, Any]]:
    """A row for φ and one for ψ, of one task and group."""
    limits = diagnosis.thresholds
    columns = score_columns(HEADLINE)
    averages = [[area.mean() for area in each.areas] for each in mine.values()]
    solved = np.array([max(means) > limits.floor for means in averages])
    found = np.array([each.estimate(limits.no_signal) for each in mine.values()])
    drawn = score_replicates(mine, limits.no_signal, RESAMPLED)
    for contrast in HEADLINE:
        formula = contrast.formula_under(diagnosis.definition)
        column = columns.index(f"{contrast.name}_{formula}")
        if np.isnan(found[:, column]).all():
            continue
        told = solved & np.isfinite(found[:, column])
        if contrast.formulas[formula].needs == "baseline":
            told &= np.array([means[0] > limits.no_signal for means in averages])
        row = named | {"score": contrast.sign, "default": _of_default(diagnosis, named, contrast.name)}
        row |= dict.fromkeys(("family", "family_low", "family_high", "5 %", "median", "95 %"), np.nan)
        if told.any() and weights[told].sum() > 0:
            p = weights[told] / weights[told].sum()
            values = found[told, column]
            mean, count = float(values @ p), min(each.count for each in mine.values())
            half = float(half_width((drawn[:, told, column] @ p)[:, None], count)[0])
            row |= {"family": mean, "family_low": mean - half, "family_high": mean + half}
            row |= dict(zip(("5 %", "median", "95 %"), np.quantile(values, [0.05, 0.5, 0.95]), strict=True))
        yield row | {"no score %": float(100 * weights[~told].sum()), "points": str(len(mine))}


def _of_default(diagnosis: Diagnosis, named: dict[str, Any], name: str) -> float:
    table = diagnosis.table
    same = np.logical_and.reduce([(table[key] == value).to_numpy() for key, value in named.items()])
    return float(table.loc[same, f"{name}_raw"].iloc[0]) if same.any() else np.nan


def _says(rows: list[dict[str, Any]]) -> list[str]:
    return [
        f"{row['task']}, {row['agent']}: {row['score']} is {row['default']:.2f} on the default point and "
        f"{_with_bounds(row)} over the family, where nine points in ten lie between {row['5 %']:.2f} and "
        f"{row['95 %']:.2f}."
        for row in rows
        if np.isfinite([row["default"], row["family"]]).all()
    ]


def _with_bounds(row: dict[str, Any]) -> str:
    """A row's mean over the family; one seed a point leaves it without an interval."""
    bounds = [row["family_low"], row["family_high"]]
    told = f" [{bounds[0]:.2f}, {bounds[1]:.2f}]" if np.isfinite(bounds).all() else ""
    return f"{row['family']:.2f}{told}"
