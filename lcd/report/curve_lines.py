"""What is drawn of a diagnosis' learning curves: means over seeds with their intervals, thinned to what can be seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from lcd.curves.index import Curve
from lcd.report.curve_figures import Line, Panel, TaskCurves
from lcd.report.figures import styles
from lcd.scores.contrasts import Contrast
from lcd.scores.diagnosis import Diagnosis
from lcd.scores.judging import NO_RANGE
from lcd.statistics.intervals import mean_interval

POINTS = 100
"""So many points of a curve are drawn at most: more cannot be told apart on a page."""


def curves_by_task(diagnosis: Diagnosis) -> Iterator[tuple[str, TaskCurves]]:
    """What is drawn of each row of a diagnosis that has curves, by a name fit for a file."""
    if diagnosis.curves.empty:
        return
    for index, row in diagnosis.table.iterrows():
        # Of a task whose runs are all left out there is none.
        if any(diagnosis.curves_under(row, each) for each in diagnosis.conditions(row["benchmark"]).values()):
            yield f"curves-{index}", task_curves(diagnosis, row)


def task_curves(diagnosis: Diagnosis, row: pd.Series) -> TaskCurves:
    """Held-out curves of one row of a diagnosis' table: a panel for each contrast that compares some.

    Where none does, the first that has a curve.
    """
    panels = [panel for each in diagnosis.contrasts if (panel := _panel(diagnosis, row, each)).lines]
    compared = [panel for panel in panels if len(panel.lines) > 1]
    return TaskCurves(str(row["task"]), tuple(compared or panels[:1]), row["status"] != NO_RANGE)


def _panel(diagnosis: Diagnosis, row: pd.Series, contrast: Contrast) -> Panel:
    conditions = diagnosis.conditions_of(contrast, row["benchmark"])
    views = {condition.view for condition in conditions}
    where = f", {views.pop().replace('_', ' ')}" if len(views) == 1 else ""
    lines = (
        mean_line(diagnosis.curves_under(row, condition), contrast.label(value), style)
        for condition, value, style in zip(conditions, contrast.values, styles(contrast), strict=True)
    )
    axis = contrast.axis.removeprefix("knobs.").replace("_", " ")
    return Panel(f"by {axis}{where}", tuple(line for line in lines if line is not None))


def mean_line(curves: Mapping[int, Curve], label: str, style: tuple) -> Line | None:
    """The mean over seeds of one condition's curves; None without curves."""
    if not curves:
        return None
    seeds = list(curves.values())
    low, high = max(steps[0] for steps, _ in seeds), min(steps[-1] for steps, _ in seeds)
    grid = np.unique(np.concatenate([steps for steps, _ in seeds]))
    grid = thinned(grid[(grid >= low) & (grid <= high)])
    heights = np.array([np.interp(grid, *seed) for seed in seeds])
    return Line(label, style, grid, heights.mean(0), mean_interval(heights) if len(seeds) > 1 else None)


def thinned(grid: np.ndarray) -> np.ndarray:
    """At most `POINTS` steps of a curve, as evenly as they come, the first and the last among them."""
    return grid[np.unique(np.linspace(0, len(grid) - 1, POINTS).round().astype(int))] if len(grid) > POINTS else grid
