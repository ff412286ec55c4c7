"""Logs of any rhythm onto a grid of steps, and curves of different lengths cut to what they share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lcd.curves.table import CONDITION, CURVE, SETTING

if TYPE_CHECKING:
    import pandas as pd

BINS = 50
"""As many as `grid=auto` makes of the shortest curve, about."""
MEANS = ("return_std", "length_mean", "wall_s", "r_min", "r_max")
COMPARED = ("benchmark", "task", "agent", "frontend", "shaping", "split")
"""What conditions have in common whose areas are compared."""
MOST_NAMED = 3


@dataclass(frozen=True)
class Cut:
    """Curves over the steps that they share, and sentences on what became of the others."""

    curves: pd.DataFrame
    notes: tuple[str, ...] = ()


def binned(curves: pd.DataFrame, grid: float | None, of_episodes: bool) -> Cut:
    """Curves on a grid: the mean return of every bin, at the middle of the bin; what comes twice at a step, its mean.

    The middle is where the mean of a straight line lies: the area under it stays what it was. A bin ends with its last
    step, as training does.

    Args:
        curves: rows of curves, one or several at a step.
        grid: steps of a bin; 0 leaves steps as they are; None decides: single episodes get about `BINS` bins.
        of_episodes: whether rows are single episodes.
    """
    notes = []
    if grid is None:
        grid = _chosen(curves) if of_episodes else 0.0
        if grid:
            notes.append(
                f"Single episodes are averaged over {grid:,.0f} steps each (grid={grid:.0f}): give grid=… for others."
            )
    placed = curves.assign(step=(np.maximum(np.ceil(curves["step"] / grid), 1) - 0.5) * grid) if grid else curves
    keys = [name for name in (*CURVE, "step") if name in placed]
    twice = int(placed.duplicated(keys).sum())
    if not twice:
        return Cut(placed, tuple(notes))
    if not grid:
        notes.append(f"{twice:,} rows come again at a step of a curve: their returns are averaged.")
    return Cut(_averaged(placed, keys), tuple(notes))


def _averaged(curves: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One row for each value of the keys: mean returns, weighted by their episodes, and how many these were."""
    counts = curves["episodes"].fillna(1.0) if "episodes" in curves else np.ones(len(curves))
    means = ["return_mean", *(name for name in MEANS if name in curves)]
    weighed = curves[keys].assign(episodes=counts)
    for name in means:
        weighed[name] = curves[name] * counts
        weighed[f"{name} counts"] = np.where(curves[name].notna(), counts, 0.0)
    sums = weighed.groupby(keys, sort=False, observed=True, dropna=False).sum(min_count=1).reset_index()
    for name in means:
        sums[name] /= sums[f"{name} counts"].where(sums[f"{name} counts"] > 0)
    return sums[[*keys, "episodes", *means]]


def _chosen(curves: pd.DataFrame) -> float:
    """A round number of steps of which the shortest curve has about `BINS`."""
    last = curves.groupby([name for name in CURVE if name in curves], observed=True, dropna=False)["step"].max()
    wanted = max(float(last.min()) / BINS, 1.0)
    power = 10.0 ** math.floor(math.log10(wanted))
    return min((m * power for m in (1, 2, 5, 10)), key=lambda step: abs(math.log(step / wanted)))


def cut_to_shared(curves: pd.DataFrame, least: float) -> Cut:
    """Curves of whatever is compared over the steps that all of its curves have.

    A curve that goes on beyond the shortest one ends there, at its straight line between evaluations, as areas have it.

    Args:
        curves: checked curves.
        least: curves with less than this share of the longest one's steps are left out, and do not cut the others.
    """
    import pandas as pd

    parts, notes = [], []
    for key, rows in curves.groupby(list(COMPARED), sort=False, observed=True):
        name = f"{key[COMPARED.index('task')]} ({key[COMPARED.index('agent')]})"
        ends = rows.groupby([*CONDITION, "seed"], sort=False, observed=True)["step"].transform("max")
        short = ends < least * ends.max()
        if short.any():
            notes.append(
                f"{name}: left out are curves that end before {least:.0%} of the longest: {_named(rows[short])}."
            )
            rows, ends = rows[~short], ends[~short]
        shared = float(ends.min())
        if shared < ends.max():
            cause = _named(rows[ends == shared])
            notes.append(
                f"{name}: curves end between step {shared:,.0f} and {ends.max():,.0f}; all are cut to the first "
                f"{shared:,.0f}, which is where {cause} end{'s' if cause.startswith('seed') else ''}."
            )
            rows = _ending_at(rows, shared)
        parts.append(rows)
    return Cut(pd.concat(parts, ignore_index=True) if notes else curves, tuple(notes))


def _named(rows: pd.DataFrame) -> str:
    """Whose curves these are: a seed of a view and p, or how many."""
    found: list[dict[str, Any]] = rows[[*SETTING, "seed"]].drop_duplicates().to_dict("records")
    told = [f"seed {each['seed']} of {each['view']}, p = {each['reward_p']:g}" for each in found[:MOST_NAMED]]
    more = len(found) - len(told)
    return "; ".join([*told, *([f"{more} more"] if more else [])])


def _ending_at(rows: pd.DataFrame, end: float) -> pd.DataFrame:
    """Rows up to a step; of each curve that goes beyond it and has no row there, one between its neighbours."""
    import pandas as pd

    parts = []
    for _, curve in rows.groupby([*CONDITION, "seed"], sort=False, observed=True):
        curve = curve.sort_values("step")
        before = curve[curve["step"] <= end]
        if before.empty:
            continue
        parts.append(before)
        if before["step"].iloc[-1] < end:
            last = before.tail(1).assign(
                step=end, return_mean=float(np.interp(end, curve["step"], curve["return_mean"])),
                return_std=np.nan, episodes=np.nan, length_mean=np.nan, wall_s=np.nan,
            )  # fmt: skip
            parts.append(last)
    return pd.concat(parts, ignore_index=True)
