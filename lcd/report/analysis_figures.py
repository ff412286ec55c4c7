"""Figures of the analyses: outcomes with intervals, two agents' scores against each other, curves of all tasks."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from lcd.analyses.analysis import Analysis
from lcd.curves.index import CurveIndex
from lcd.report.curve_figures import draw_line
from lcd.report.curve_lines import mean_line
from lcd.report.figures import INK, MUTED, new_figure, short_name, styled_figure, styles
from lcd.scores.challenge_table import KEYS
from lcd.scores.contrasts import PERCEPTION, Contrast
from lcd.scores.diagnosis import Diagnosis, solved_views
from lcd.statistics.aggregates import Scores, performance_profile, with_interval

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
MARKERS = ("o", "s", "^", "D")
LETTER = 0.08
"""Of a panel's title, in inches across."""
LEVELS = np.linspace(0, 1, 51)
VIEW_STYLES = dict(zip(PERCEPTION.values, styles(PERCEPTION), strict=True))


@styled_figure
def outcomes(table: pd.DataFrame, values: Sequence[str], split: str | None, words: str, narrow: bool = False) -> Figure:
    """One row a task, a point with its 95 % interval for each series.

    Args:
        table: an analysis's.
        values: the columns that are drawn.
        split: the column that tells series apart; None: each of `values` is one.
        words: what the axis shows.
        narrow: draw for a phone's width.
    """
    tasks = list(dict.fromkeys(table["task"]))
    figure = new_figure(4.4 if narrow else 8.4, 1.3 + 0.3 * len(tasks))
    axes = figure.subplots()
    axes.axvline(0, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    series = _series(table, values, split)
    for place, (label, rows, name) in enumerate(series):
        shift = 0.26 * (place - (len(series) - 1) / 2)
        at = np.array([tasks.index(task) for task in rows["task"]]) + shift
        style = {"color": COLOURS[place % 4], "linewidth": 1.6}
        axes.hlines(at, rows[f"{name}_low"], rows[f"{name}_high"], alpha=0.6, **style)
        axes.plot(rows[name], at, MARKERS[place % 4], color=COLOURS[place % 4], markersize=5.5, label=label)
    axes.set_yticks(range(len(tasks)), [short_name(task, 26 if narrow else 40) for task in tasks], fontsize=8.5)
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    axes.set_xlabel(words, loc="right")
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    if len(series) > 1:
        axes.legend(ncols=3, fontsize=8.5, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    return figure


@styled_figure
def grouped_bars(grouped: pd.DataFrame, points: pd.DataFrame, split: str, words: str, narrow: bool = False) -> Figure:
    """A panel an agent: a bar for each group of tasks, with its interval and a point for each of its tasks (figure 3b).

    Args:
        grouped: the mean `gain` of each group (`tasks of`), with its bounds.
        points: the `gain` of each task of each group, with the same columns.
        split: the column that tells series apart.
        words: what the axis shows.
        narrow: draw for a phone's width.
    """
    panels_of = list(grouped.groupby(["benchmark", "agent"], sort=True))
    names, series = list(dict.fromkeys(grouped["tasks of"])), sorted(grouped[split].unique())
    rows = len(names) * len(series)
    figure = new_figure(4.4 if narrow else 8.4, 0.9 + (0.5 + 0.26 * rows) * len(panels_of))
    panels = figure.subplots(len(panels_of), 1, squeeze=False).ravel()
    thickness = 0.8 / len(series)
    for axes, (key, mine) in zip(panels, panels_of, strict=True):
        own = points[(points[["benchmark", "agent"]] == list(key)).all(axis=1)]
        axes.axvline(0, color=MUTED, linewidth=0.9)
        for place, value in enumerate(series):
            bars, dots = mine[mine[split] == value], own[own[split] == value]
            shift = thickness * (place - (len(series) - 1) / 2)
            at, where = ([names.index(name) + shift for name in each["tasks of"]] for each in (bars, dots))
            colour = COLOURS[place % 4]
            axes.barh(at, bars["gain"], 0.85 * thickness, color=colour, alpha=0.35, label=short_name(value, 24))
            axes.hlines(at, bars["gain_low"], bars["gain_high"], color=colour, linewidth=1.6)
            axes.plot(dots["gain"], where, "o", color=INK, markersize=3.2, alpha=0.7)
        axes.set_yticks(range(len(names)), names, fontsize=8.5)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        if len(panels_of) > 1:
            axes.set_title(", ".join(map(short_name, key)), loc="left", fontsize=9)
    panels[-1].set_xlabel(words, loc="right")
    if len(series) > 1:
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=3, fontsize=8.5)
    return figure


def _series(table: pd.DataFrame, values: Sequence[str], split: str | None) -> list[tuple[str, pd.DataFrame, str]]:
    if split is None:
        return [(name, table, name) for name in values]
    return [(str(label), rows, values[0]) for label, rows in table.groupby(split, sort=True)]


@styled_figure
def differences(analysis: Analysis, narrow: bool = False) -> Figure:
    """What two studies differ by: a panel a score, a row a task."""
    table = analysis.table[~analysis.table["measure"].str.startswith("AUC")]
    measures = list(dict.fromkeys(table["measure"])) or [""]
    tasks = list(dict.fromkeys(table["task"]))
    height = 1.2 + 0.3 * len(tasks)
    figure = new_figure(*((4.4, height * len(measures)) if narrow else (9.6, height)))
    panels = figure.subplots(*((len(measures), 1) if narrow else (1, len(measures))), sharey=True, squeeze=False)
    for place, (axes, measure) in enumerate(zip(panels.ravel(), measures, strict=True)):
        rows = table[table["measure"] == measure]
        at = [tasks.index(task) for task in rows["task"]]
        axes.axvline(0, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.hlines(at, rows["difference_low"], rows["difference_high"], color=COLOURS[place], alpha=0.6, linewidth=1.6)
        axes.plot(rows["difference"], at, MARKERS[place], color=COLOURS[place], markersize=5.5)
        axes.set_title(measure, loc="left", fontsize=9)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.set_yticks(range(len(tasks)), [short_name(task, 26) for task in tasks], fontsize=8.5)
        axes.set_ylim(len(tasks) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0, labelcolor=INK)
    return figure


@styled_figure
def profiles(scores: Mapping[str, Sequence[tuple[Mapping[str, Any], Scores]]], narrow: bool = False) -> Figure:
    """A panel an agent: the share of runs that end above a return, for the views and for front-ends on pixels.

    Args:
        scores: agent → what each of its conditions is (view, front-end, …) and the last returns under it.
        narrow: draw for a phone's width.
    """
    agents = sorted(scores)
    figure = new_figure(*((4.4, 0.6 + 2.6 * len(agents)) if narrow else (8.4, 0.6 + 2.4 * -(-len(agents) // 2))))
    columns = 1 if narrow else min(2, len(agents))
    panels = figure.subplots(-(-len(agents) // columns), columns, sharey=True, squeeze=False).ravel()
    for axes, agent in zip(panels, agents, strict=False):
        others = iter(zip(COLOURS[2:] + COLOURS[:2], ((0, (3, 1.2, 1, 1.2)), (0, (1, 1))) * 2, strict=True))
        for of, returns in scores[agent]:
            if of["shaping"] != "none" or of["reward_p"] != 1 or len(returns) < 2:
                continue
            plain = of["frontend"] == "identity"
            colour, dashes = (
                VIEW_STYLES[of["view"]] if plain and of["view"] in VIEW_STYLES else next(others, (MUTED, ":"))
            )
            label = str(of["view"]).replace("_", " ") if plain else str(of["frontend"])
            share, low, high = with_interval(partial(performance_profile, thresholds=LEVELS), returns, resamples=200)
            axes.plot(LEVELS, share, color=colour, linestyle=dashes, label=short_name(label, 24), linewidth=1.7)
            axes.fill_between(LEVELS, low, high, color=colour, alpha=0.13, linewidth=0)
        axes.set_title(short_name(agent, 24), loc="left", fontsize=9)
        axes.set_ylim(0, 1.02)
        axes.legend(fontsize=8)
    for axes in panels[len(agents) :]:
        axes.set_axis_off()
    figure.supxlabel("normalised return at the end", fontsize=9)
    figure.supylabel("share of runs above it", fontsize=9)
    return figure


@styled_figure
def scatter(diagnosis: Diagnosis, first: str, second: str, narrow: bool = False) -> Figure:
    """The raw scores of two agents' diagnoses against each other (figure 4)."""
    figure = new_figure(*((4.4, 8.2) if narrow else (9.0, 4.4)))
    panels = figure.subplots(*((2, 1) if narrow else (1, 2)))
    for axes, score, sign in zip(panels, ("phi", "psi"), ("φ", "ψ"), strict=True):
        table = diagnosis.table[(diagnosis.table["frontend"] == "identity") & (diagnosis.table["shaping"] == "none")]
        pair = [table[table["agent"] == agent].set_index("task")[f"{score}_raw"] for agent in (first, second)]
        both = pd.concat(pair, axis=1, join="inner").dropna().to_numpy(float)
        axes.plot(both[:, 0], both[:, 1], "o", color=COLOURS[0], markersize=6)
        if len(both):
            ends = [both.min(), both.max()]
            axes.plot(ends, ends, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        axes.set_xlabel(f"raw {sign}, {short_name(first, 24)}")
        axes.set_ylabel(f"raw {sign}, {short_name(second, 24)}")
    return figure


@styled_figure
def curve_grid(curves: pd.DataFrame, contrast: Contrast, words: str, narrow: bool = False) -> Figure | None:
    """A small panel a task: returns over training steps under a contrast's conditions (figures 6 to 13).

    None where no variant was trained.

    Args:
        curves: those of one split.
        contrast: what is compared.
        words: what the upright axis shows.
        narrow: draw for a phone's width.
    """
    index, solved = CurveIndex(curves), solved_views(curves)
    tasks = [dict(zip(KEYS, key, strict=True)) for key in sorted({tuple(w[k] for k in KEYS) for w in index})]
    # What varies along the axis is a line, and no panel of its own.
    tasks = [row for row in tasks if row.get(contrast.axis, contrast.baseline) == contrast.baseline]
    if not any(index.under(row, each) for row in tasks for each in contrast.conditions(solved[row["benchmark"]])[1:]):
        return None
    columns = min(2 if narrow else 4, len(tasks))
    rows = -(-len(tasks) // columns)
    width = 4.4 if narrow else 9.6
    letters = int((width - 0.6) / columns / LETTER)
    figure = new_figure(width, 0.8 + 1.7 * rows)
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for axes, row in zip(panels, tasks, strict=False):
        conditions = contrast.conditions(solved[row["benchmark"]])
        for condition, value, style in zip(conditions, contrast.values, styles(contrast), strict=True):
            if (line := mean_line(index.under(row, condition), contrast.label(value), style)) is not None:
                draw_line(axes, line)
        axes.set_title(short_name(row["task"].rpartition("/")[2], letters), loc="left", fontsize=8.5)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.tick_params(labelsize=7.5)
    for axes in panels[len(tasks) :]:
        axes.set_axis_off()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=4, fontsize=8.5)
    figure.supxlabel("environment steps", fontsize=9)
    figure.supylabel(words, fontsize=9)
    return figure
