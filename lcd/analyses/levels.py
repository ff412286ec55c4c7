"""Final returns (interquartile means), and how much better agents are on the levels they were trained on."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Drawing, Evidence
from lcd.analyses.areas import with_interval
from lcd.analyses.outcomes import outcomes
from lcd.curves.reading import group_numbers
from lcd.curves.row_ranges import CurveRows
from lcd.curves.table import CURVE, SETTING
from lcd.scores.contrasts import PERCEPTION
from lcd.statistics.aggregates import AGGREGATES, Scores, probability_of_improvement
from lcd.statistics.aggregates import with_interval as with_interval_over_tasks

VIEWS = PERCEPTION.values
PLAIN = {"view": PERCEPTION.baseline, "frontend": "identity", "reward_p": 1.0, "shaping": "none"}
NAMED = ("benchmark", "task", *SETTING[1:])
POOLED = {"IQM": "iqm", "median": "median", "optimality gap": "optimality_gap"}
BETTER = f"P(> {PERCEPTION.baseline})"
RESAMPLED = 500
"""Resamples of an interval here: of every condition, so that a report takes seconds."""


def performance_at_the_end(evidence: Evidence) -> Analysis | None:
    """How much of what is possible agents reach at the end, over all tasks and seeds."""
    return None if evidence.curves.empty else final_performance(evidence.curves)


def gaps(evidence: Evidence) -> Analysis | None:
    """How much better agents are on the levels that they were trained on."""
    return None if evidence.curves.empty else generalisation(evidence.curves)


def final_performance(curves: pd.DataFrame) -> Analysis:
    """The last held-out returns of every condition over all tasks and seeds, and the chance to beat plain pixels."""
    scores = final_scores(curves)
    rows = []
    for key, mine in scores.items():
        row = dict(zip(SETTING, key, strict=True)) | {"tasks": float(len(mine))}
        row |= _columns(tuple(POOLED), with_interval_over_tasks(_pooled, mine, resamples=RESAMPLED))
        plain = scores.get(tuple((dict(zip(SETTING, key, strict=True)) | PLAIN).values()), {})
        both = sorted(set(mine) & set(plain))
        known: Sequence[Any] = [np.nan] * 3
        if both and mine is not plain:
            pair = [{task: of[task] for task in both} for of in (mine, plain)]
            known = with_interval_over_tasks(probability_of_improvement, *pair, resamples=RESAMPLED)
        rows.append(row | _columns((BETTER,), [np.atleast_1d(value) for value in known]))
    table = pd.DataFrame(rows)
    if table[BETTER].isna().all():
        table = table.drop(columns=[BETTER, f"{BETTER}_low", f"{BETTER}_high"])
    note = (
        "Normalised held-out returns at the end of training over tasks and seeds (Agarwal et al. 2021): interquartile "
        "mean (of three values or fewer their plain mean), median of the tasks' means, shortfall from 1, and the "
        "probability that a seed is above one on plain pixels with all rewards, on the same task. Intervals resample "
        "the seeds of each task."
    )
    title = "Final performance"
    figures = [Drawing("final", title, partial(_draw, scores))] if curves["task"].nunique() > 1 else []
    return Analysis("final", title, table, (), note, figures)


def _draw(scores: Mapping[tuple, dict[str, np.ndarray]], narrow: bool) -> Any:
    from lcd.report.analysis_figures import profiles

    by_agent: dict[str, list[tuple[dict[str, Any], dict[str, np.ndarray]]]] = {}
    for key, found in scores.items():
        setting = dict(zip(SETTING, key, strict=True))
        by_agent.setdefault(str(setting["agent"]), []).append((setting, found))
    return profiles(dict(sorted(by_agent.items())), narrow)


def final_scores(curves: pd.DataFrame) -> dict[tuple, dict[str, np.ndarray]]:
    """Condition without its task (`SETTING`) → task → the last held-out return of each seed."""
    rows = CurveRows(group_numbers(curves, CURVE), curves["step"].to_numpy(float))
    last = curves.iloc[rows.last]
    last = last[last["split"] == "eval"]
    found = {
        key: {str(task): mine["normalised"].to_numpy() for task, mine in rows.groupby("task", sort=True)}
        for key, rows in last.groupby(list(SETTING), sort=False)
    }
    return dict(sorted(found.items(), key=lambda each: place_of_setting(**dict(zip(SETTING, each[0], strict=True)))))


def place_of_setting(view: str, frontend: str, reward_p: float, shaping: str, **others: str) -> tuple:
    """Plain pixels come first, then the other views, then less reward; front-ends and shaping after all of these."""
    known = VIEWS.index(view) if view in VIEWS else len(VIEWS)
    own = (frontend != "identity", frontend, shaping != "none", shaping)
    return (*others.values(), *own, known, view, -reward_p)


def _pooled(scores: Scores) -> np.ndarray:
    return np.stack([AGGREGATES[name](scores) for name in POOLED.values()], axis=-1)


def _columns(names: tuple[str, ...], values: Sequence[np.ndarray]) -> dict[str, float]:
    """Estimates and bounds as columns."""
    return {
        name + end: float(of[place])
        for place, name in enumerate(names)
        for end, of in zip(("", "_low", "_high"), values, strict=True)
    }


def generalisation(curves: pd.DataFrame) -> Analysis | None:
    """AUC on training levels less AUC on held-out ones, by condition; None without training curves."""
    splits = ("train", "eval")
    if not (curves["split"] == "train").any():
        return None
    found: dict[tuple, dict[str, pd.Series]] = {}
    for outcome in outcomes(curves[curves["split"].isin(splits)]):
        # No area: no episode of training had ended but once.
        if outcome.areas is not None:
            key = tuple(outcome.where[name] for name in NAMED)
            found.setdefault(key, {})[outcome.where["split"]] = outcome.areas
    rows = []
    for key in (
        curves[list(NAMED)].drop_duplicates().sort_values(list(NAMED[:2]), kind="stable").itertuples(index=False)
    ):
        if len(samples := found.get(tuple(key), {})) == len(splits):
            ordered = {split: samples[split] for split in splits}
            columns = with_interval(("AUC training", "AUC held out", "gap"), ordered, _gap)
            rows.append(dict(zip(NAMED, key, strict=True)) | columns)
    if not rows:
        return None
    table = pd.DataFrame(rows)
    wide = table[table["gap_low"] > 0]
    says = [
        f"Agents are better on the levels they were trained on in {len(wide)} of {len(table)} conditions, for sure."
    ]
    return Analysis(
        "generalisation", "Training levels against held-out levels", table, says, "Original reward on both."
    )


def _gap(averages: np.ndarray) -> np.ndarray:
    return np.stack([averages[..., 0], averages[..., 1], averages[..., 0] - averages[..., 1]], axis=-1)
