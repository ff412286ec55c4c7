"""An analysis with a figure: how far apart the seeds of a task end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd

from lcd.analyses import Analysis, Drawing, Evidence


@dataclass(frozen=True)
class SpreadSettings:
    """Settings: `'analysis_params={spread: {wide: 0.5}}'`.

    Attributes:
        wide: from which range of normalised returns on seeds are told to be far apart.
    """

    wide: float = 0.3


def spread(evidence: Evidence, settings: SpreadSettings) -> Analysis | None:
    """How far apart the seeds of each task end.

    Args:
        evidence: the diagnosis and its curves.
        settings: what the user sets.

    Returns:
        The analysis; None where only scores are known.
    """
    held_out = evidence.curves
    if held_out.empty:
        return None
    held_out = held_out[held_out["split"] == "eval"]
    last = held_out[held_out["step"] == held_out.groupby(["task", "view"], observed=True)["step"].transform("max")]
    found = last.groupby("task", observed=True)["normalised"].agg(["min", "max", "count"]).reset_index()
    table = pd.DataFrame({"task": found["task"].astype(str), "least": found["min"], "greatest": found["max"]})
    table["spread"] = table["greatest"] - table["least"]
    far = table.loc[table["spread"] >= settings.wide, "task"].tolist()
    says = [f"Runs end far apart on {', '.join(far) or 'no task'}."]
    title = "How far apart do runs end?"
    note = "Least and greatest normalised return at the end, over seeds and conditions."
    return Analysis("spread", title, table, says, note, [Drawing("spread", title, partial(draw, table))])


def draw(table: pd.DataFrame, narrow: bool) -> Any:
    """A line a task from the least to the greatest return.

    Args:
        table: the analysis's.
        narrow: whether the page is narrow, as on a telephone.

    Returns:
        A matplotlib figure.
    """
    from lcd.report.figures import new_figure

    figure = new_figure(4.4 if narrow else 8.4, 1.0 + 0.3 * len(table))
    axes = figure.subplots()
    axes.hlines(table["task"], table["least"], table["greatest"], linewidth=4)
    axes.set_xlabel("normalised return at the end")
    return figure
