"""Scores of tasks against their effective horizon."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

from lcd.report.curve_figures import PANEL
from lcd.report.figures import MUTED, SET_STYLES, styled_figure
from lcd.scores.contrasts import HEADLINE, Contrast
from lcd.scores.diagnosis import GROUP
from lcd.scores.horizons import LONG

_MARKERS = "os^Dvp"


@styled_figure
def scores_against_horizon(table: pd.DataFrame, long: float, narrow: bool = False) -> Figure:
    """φ and ψ against H, a mark a task and a colour a group; an arrow where H is only known to be at least that.

    Args:
        table: a diagnosis' table.
        long: H from which on an effective horizon is called long: a line.
        narrow: draw for a phone's width.
    """
    shape = (2, 1) if narrow else (1, 2)
    size = (PANEL[0], 2 * PANEL[1]) if narrow else (2 * PANEL[0], PANEL[1])
    figure = Figure(figsize=size, layout="constrained")
    for axes, contrast in zip(figure.subplots(*shape).flat, HEADLINE, strict=True):
        for place, (key, group) in enumerate(table.groupby(list(GROUP), sort=False)):
            _marks(axes, contrast, group, place, " ".join(part for part in key if part not in ("identity", "none")))
        axes.axvline(long, color=MUTED, linewidth=1, linestyle="--")
        axes.set_xlabel("effective horizon H")
        axes.set_ylabel(f"{contrast.sign}, raw")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7)
    return figure


def _marks(axes: Axes, contrast: Contrast, group: pd.DataFrame, place: int, label: str) -> None:
    score = group[f"{contrast.name}_raw"].to_numpy(float)
    colour, marker = SET_STYLES[place % len(SET_STYLES)][0], _MARKERS[place % len(_MARKERS)]
    h = group["H"].to_numpy(float)
    least = np.where(np.isfinite(h), np.nan, group["H_low"].to_numpy(float))
    known = np.isfinite(h) & np.isfinite(score)
    ends = np.abs(group[[f"{contrast.name}_raw_low", f"{contrast.name}_raw_high"]].to_numpy(float).T - score)
    axes.errorbar(
        h[known], score[known], ends[:, known], fmt=marker, color=colour, markersize=5, elinewidth=0.8, label=label
    )
    more = np.isfinite(least) & np.isfinite(score)
    axes.errorbar(least[more], score[more], ends[:, more], fmt="none", ecolor=colour, elinewidth=0.8)
    axes.scatter(least[more], score[more], marker=">", color=colour, s=28, label=f"{label}, at least")


@styled_figure
def steps_against_horizon(found: pd.DataFrame, narrow: bool = False) -> Figure:
    """Steps until a task is solved against H, a colour an agent; tasks that are not solved lie above the line.

    Args:
        found: rows of the analysis `solved`: `agent`, `solved`, `N`, `H`, `H_low`.
        narrow: draw for a phone's width.
    """
    figure = Figure(figsize=PANEL if narrow else (1.4 * PANEL[0], PANEL[1]), layout="constrained")
    axes = figure.subplots()
    steps = found["N"].dropna()
    top = 3 * max([1e3, *steps])
    for place, (agent, mine) in enumerate(found.groupby("agent", sort=True)):
        colour, marker = SET_STYLES[place % len(SET_STYLES)][0], _MARKERS[place % len(_MARKERS)]
        x = mine["H"].fillna(mine["H_low"]).to_numpy(float)
        never = mine["N"].isna().to_numpy()
        axes.plot(x[~never], mine["N"].to_numpy(float)[~never], marker, color=colour, markersize=5, label=agent)
        # Agents side by side, so that none hides another.
        axes.plot(x[never], np.full(never.sum(), top * 1.4**place), marker, color=colour, mfc="white", markersize=5)
    axes.set_yscale("log")
    agents = found["agent"].nunique()
    axes.set_ylim(0.5 * min([1e3, *steps]), top * 1.4**agents)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if top < 100 * min([1e3, *steps]) else (1,)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{EngFormatter(sep='')(value)}" if value < top / 1.8 else "")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(0, 1.05 * max(LONG, found[["H", "H_low"]].max(axis=None)))
    axes.axhline(top / 1.8, color=MUTED, linewidth=0.9)
    axes.axvline(LONG, color=MUTED, linewidth=1, linestyle="--")
    axes.annotate("not solved", (1, top * 1.4 ** ((agents - 1) / 2)), (3, 0), xycoords=("axes fraction", "data"),
                  textcoords="offset points", va="center", fontsize=7.5, color=MUTED)  # fmt: skip
    axes.set_xlabel("effective horizon H, or its lower bound")
    axes.set_ylabel("steps of a seed until it is solved")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=3)
    return figure
