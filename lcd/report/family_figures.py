"""Figures of families of MDPs: bars, profiles, histograms, maps over two features, errors over budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from lcd.families.measured import Measured
from lcd.families.profiles import profile
from lcd.report.figures import INK, MUTED, SET_STYLES, new_figure, short_name, styled_figure
from lcd.statistics.intervals import mean_interval

_BINS = 25
_TAIL = 0.025
"""This share of all scores, the worst, lies beyond what a profile shows: a single failure would take the width."""
_MOST_LEVELS = 12
"""A feature with more values is drawn as it is, not as the lines of a map."""
_WAYS = {
    "with_replacement": "with_replacement (M1)",
    "without_replacement": "without_replacement (M2)",
    "kmeans": "kmeans (M3)",
    "quadrature": "quadrature",
}


@styled_figure
def bars(table: pd.DataFrame, narrow: bool = False) -> Figure:
    """Reported beside overall performance, with intervals over seeds (the paper's figure 6).

    Args:
        table: of the analysis, a row a method.
        narrow: draw for a phone's width.
    """
    figure = new_figure(4.4 if narrow else 8.4, 3.0)
    axes = figure.subplots()
    places = np.arange(len(table))
    for shift, (name, colour, label) in enumerate(
        (("reported", "#56b4e9", "reported (default point)"), ("overall", "#d55e00", "overall (family)"))
    ):
        values = table[name].to_numpy(float)
        ends = np.nan_to_num(np.abs(table[[f"{name}_low", f"{name}_high"]].to_numpy(float).T - values))
        style = {"ecolor": INK, "error_kw": {"elinewidth": 1}, "capsize": 3}
        axes.bar(places + 0.4 * (shift - 0.5), values, 0.38, yerr=ends, color=colour, label=label, **style)
    length = min(14 if narrow else 24, (44 if narrow else 84) // max(len(table), 1))
    axes.set_xticks(places, [short_name(name, length) for name in table["agent"]])
    axes.set_ylabel("performance")
    axes.grid(visible=False, axis="x")
    axes.legend(ncols=2, fontsize=8.5, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    return figure


@styled_figure
def profiles(found: Measured, higher_is_better: bool, narrow: bool = False) -> Figure:
    """The share of the family on which each method is at least as good as a threshold (figure 8)."""
    figure = new_figure(4.4 if narrow else 8.4, 3.2)
    axes = figure.subplots()
    every = np.concatenate([scores.ravel() for scores in found.scores.values()])
    worst = np.quantile(every, _TAIL if higher_is_better else 1 - _TAIL)
    levels = np.linspace(worst, every.max() if higher_is_better else every.min(), 301)
    for method, (colour, dashes) in _styles(found.methods):
        share = profile(found.scores[method], found.distribution, levels, higher_is_better)
        axes.plot(levels, share, color=colour, linestyle=dashes, linewidth=1.8, label=short_name(method, 24))
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("performance")
    axes.set_ylabel("share of the family at least as good")
    axes.legend(ncols=2 if narrow else 4, fontsize=8.5, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    return figure


@styled_figure
def distributions(table: pd.DataFrame, names: Sequence[str], narrow: bool = False) -> Figure:
    """Overall performance under several distributions, with intervals over seeds (figure 23).

    Args:
        table: of the analysis, a row a method, a column a distribution.
        names: the distributions.
        narrow: draw for a phone's width.
    """
    figure = new_figure(4.4 if narrow else 8.4, 3.2)
    axes = figure.subplots()
    values, lows, highs = (table[[name + end for name in names]].to_numpy(float) for end in ("", "_low", "_high"))
    _grouped_bars(axes, list(table["agent"]), values, np.abs(np.stack([lows, highs]) - values))
    axes.set_xticks(np.arange(len(names)), names)
    axes.legend(ncols=2 if narrow else 4, fontsize=8.5, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    return figure


def _grouped_bars(axes: Axes, methods: list[str], values: np.ndarray, ends: np.ndarray) -> None:
    """Groups of bars, in each a method's: values (methods, groups), and how far their intervals go down and up."""
    width = 0.8 / len(methods)
    styles = dict(_styles(sorted(methods)))  # as in the figures whose methods are in this order
    for number, method in enumerate(methods):
        shift, (colour, _) = width * (number - (len(methods) - 1) / 2), styles[method]
        axes.bar(
            np.arange(values.shape[1]) + shift, values[number], 0.94 * width, yerr=np.nan_to_num(ends[:, number]),
            color=colour, label=short_name(method, 24), ecolor=INK, error_kw={"elinewidth": 1}, capsize=2,
        )  # fmt: skip
    axes.set_ylabel("performance")
    axes.grid(visible=False, axis="x")


@styled_figure
def points(found: Measured, narrow: bool = False) -> Figure:
    """What methods reach on each point, with intervals over seeds (figure 2)."""
    figure = new_figure(4.4 if narrow else 8.4, 3.6)
    axes = figure.subplots()
    means = found.means
    ends = [np.abs(np.stack(mean_interval(seeds.T)) - seeds.mean(1)) for seeds in found.scores.values()]
    _grouped_bars(axes, found.methods, means, np.stack(ends, 1))
    labels, features = _point_labels(found, most=(52 if narrow else 110) // len(found.contexts))
    axes.set_xticks(np.arange(len(found.contexts)), labels, fontsize=7.5)
    axes.set_xlabel(features, fontsize=7.5)
    axes.legend(ncols=2 if narrow else 4, fontsize=8.5, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    return figure


def _point_labels(found: Measured, most: int) -> tuple[list[str], str]:
    """Each point by the features that differ between them, a line each, and by what the family calls it.

    Args:
        found: whose points they are.
        most: letters of a line; where names of features take more, lines are their values, in the order that is told.

    Returns:
        The labels, and what there is to say of all of them.
    """
    varied = [place for place, values in enumerate(found.table.T) if len(set(values)) > 1]
    named = {place: mark for mark, place in found.marks.items()}
    values = [[f"{point[each]:g}" for each in varied] for point in found.table]
    names = [found.features[each] for each in varied]
    whole = [[f"{name} {value}" for name, value in zip(names, of_point, strict=True)] for of_point in values]
    fits = all(len(line) <= most for lines in whole for line in lines)
    labels = ["\n".join([*lines, named.get(place, "")]) for place, lines in enumerate(whole if fits else values)]
    return labels, "" if fits else f"from top to bottom: {', '.join(names)}"


@styled_figure
def training(told: Mapping[str, Mapping[str, tuple[np.ndarray, np.ndarray]]], narrow: bool = False) -> Figure:
    """A panel a method: the mean held-out curve of each point (figures 3 and 12).

    Args:
        told: method → point → steps and scores.
        narrow: draw for a phone's width.
    """
    columns = min(1 if narrow else 3, len(told))
    rows = -(-len(told) // columns)
    figure = new_figure(4.4 if narrow else 9.0, 1.0 + 2.2 * rows)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, (method, curves) in zip(panels, told.items(), strict=False):
        for point, (colour, dashes) in _styles(list(curves)):
            axes.plot(*curves[point], color=colour, linestyle=dashes, linewidth=1.6, label=short_name(point, 40))
        axes.set_title(short_name(method, 20), loc="left", fontsize=9)
        axes.tick_params(labelsize=7.5)
    for axes in panels[len(told) :]:
        axes.set_axis_off()
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=1 if narrow else 3, fontsize=8
    )
    figure.supxlabel("steps", fontsize=9)
    figure.supylabel("performance", fontsize=9)
    return figure


@styled_figure
def histograms(found: Measured, narrow: bool = False) -> Figure:
    """A panel a method: how much of the family has which performance (figures 4 and 13 to 15)."""
    columns = 2 if narrow else min(4, len(found.methods))
    rows = -(-len(found.methods) // columns)
    figure = new_figure(4.4 if narrow else 8.4, 0.6 + 1.9 * rows)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    ends = float(found.means.min()), float(found.means.max())
    bins = np.linspace(*ends, _BINS + 1) if ends[0] < ends[1] else np.array([ends[0] - 0.5, ends[0] + 0.5])
    for axes, (method, means) in zip(panels, zip(found.methods, found.means, strict=True), strict=False):
        axes.hist(means, bins, weights=found.distribution, color="#9fb3c8")
        axes.axvline(means @ found.distribution, color="#d55e00", linewidth=1.6, label="overall")
        if len(found.reported.get(method, ())):
            reported = found.reported[method].mean()
            axes.axvline(reported, color="#0072b2", linewidth=1.6, linestyle=(0, (3, 2)), label="reported")
        axes.set_title(short_name(method, 20), loc="left", fontsize=9)
        axes.tick_params(labelsize=7.5)
    for axes in panels[len(found.methods) :]:
        axes.set_axis_off()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=2, fontsize=8.5)
    figure.supxlabel("performance", fontsize=9)
    figure.supylabel("share of the family", fontsize=9)
    return figure


@styled_figure
def maps(found: Measured, higher_is_better: bool, narrow: bool = False) -> Figure:
    """A panel a method, and one of who is best: performance over two features, averaged over the others.

    The two are those that performance depends on most, by the variance of its means over their values.
    """
    across, down = telling_features(found)
    panels = len(found.methods) + (len(found.methods) > 1)
    columns = min(2 if narrow else 3, panels)
    rows = -(-panels // columns)
    figure = new_figure(4.4 if narrow else 9.0, 0.7 + (1.9 if narrow else 2.3) * rows)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    x, y = (_levels(found.table[:, place]) for place in (across, down))
    cells = y[1] * len(x[0]) + x[1]
    weight = np.bincount(cells, found.distribution, minlength=len(x[0]) * len(y[0]))
    with np.errstate(invalid="ignore", divide="ignore"):
        means = [np.bincount(cells, found.distribution * each, minlength=len(weight)) / weight for each in found.means]
    grids = np.array(means).reshape(len(means), len(y[0]), len(x[0]))
    low, high = np.nanmin(grids), np.nanmax(grids)
    for panel, (method, grid) in zip(axes, zip(found.methods, grids, strict=True), strict=False):
        image = panel.imshow(grid, vmin=low, vmax=high, aspect="auto", origin="lower", cmap="viridis")
        panel.set_title(short_name(method, 20), loc="left", fontsize=9)
    figure.colorbar(image, ax=axes.tolist(), shrink=0.7, label="performance")
    if panels > len(grids):
        _who_is_best(axes[len(grids)], grids if higher_is_better else -grids, found.methods)
    for panel in axes[:panels]:
        panel.set_xticks(range(len(x[0])), [f"{value:.4g}" for value in x[0]], fontsize=7.5)
        panel.set_yticks(range(len(y[0])), [f"{value:.4g}" for value in y[0]], fontsize=7.5)
        panel.tick_params(labelbottom=True)
        panel.grid(visible=False)
    for panel in axes[panels:]:
        panel.set_axis_off()
    figure.supxlabel(found.features[across], fontsize=9)
    figure.supylabel(found.features[down], fontsize=9)
    return figure


def _who_is_best(axes: Axes, grids: np.ndarray, methods: list[str]) -> None:
    """A map of the method that is best in each cell; others within a hundredth of it make a tie."""
    colours = [colour for _, (colour, _) in _styles(methods)]
    there = np.isfinite(grids).all(0)
    filled = np.where(there, grids, 0.0)
    ordered = np.sort(filled, axis=0)
    tie = len(methods)
    best = np.where(there, np.where(ordered[-1] - ordered[-2] > 0.01, filled.argmax(0), tie), np.nan)
    axes.imshow(
        best, cmap=ListedColormap([*colours, "#d5dbe1"]), vmin=-0.5, vmax=tie + 0.5, aspect="auto", origin="lower",
        alpha=0.8,
    )  # fmt: skip
    axes.set_title("best", loc="left", fontsize=9)
    for (line, column), place in np.ndenumerate(best):
        if np.isfinite(place):
            name = "tie" if place == tie else short_name(methods[int(place)].rpartition("/")[2], 7)
            axes.text(column, line, name, ha="center", va="center", fontsize=6.5, color=INK)


def telling_features(found: Measured) -> tuple[int, int]:
    """The places of the two features whose values move performance most; the stronger one first."""
    strength = []
    for values in found.table.T:
        values, place = _levels(values)
        weight = np.bincount(place, found.distribution, minlength=len(values))
        sums = np.array([np.bincount(place, found.distribution * each, minlength=len(values)) for each in found.means])
        means = np.divide(sums, weight, out=np.zeros_like(sums), where=weight > 0)
        overall = (found.means @ found.distribution)[:, None]
        strength.append(float((((means - overall) ** 2) @ weight).sum()))
    first, second = np.argsort(-np.array(strength), kind="stable")[:2]
    return int(first), int(second)


def _levels(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of a feature, and the place of each point's; many values fall into bins of as many points."""
    distinct, place = np.unique(values, return_inverse=True)
    if len(distinct) <= _MOST_LEVELS:
        return distinct, place
    edges = np.quantile(values, np.linspace(0, 1, 9)[1:-1])
    place = np.searchsorted(edges, values)
    return np.array([np.median(values[place == each]) for each in range(8)]), place


@styled_figure
def accuracy(table: pd.DataFrame, narrow: bool = False) -> Figure:
    """The error of the overall performance over the number of points, a line a way to choose them (figures 16–19)."""
    figure = new_figure(4.4 if narrow else 8.4, 3.2)
    axes = figure.subplots()
    for (how, rows), (colour, dashes) in zip(table.groupby("how", sort=False), SET_STYLES, strict=False):
        axes.plot(
            rows["N"], np.maximum(rows["error"], 1e-6), color=colour, linestyle=dashes, marker="o", markersize=3.5,
            label=_WAYS.get(how, how),
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = sorted(set(table["N"]))
    axes.set_xticks(ticks, [str(tick) for tick in ticks], fontsize=8)
    axes.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.tick_params(axis="x", colors=MUTED)
    axes.set_xlabel("points")
    axes.set_ylabel("error of the overall performance")
    figure.legend(loc="outside upper left", ncols=2 if narrow else 4, fontsize=8)
    return figure


@styled_figure
def accuracy_by_method(table: pd.DataFrame, narrow: bool = False) -> Figure:
    """What fewer points tell of each method less what all tell, a panel a way to choose them (figures 7, 16 to 19).

    Args:
        table: `method`, `how`, `N`, and the `bias` and `spread` over repeated choices.
        narrow: draw for a phone's width.
    """
    ways = list(dict.fromkeys(table["how"]))
    columns = 2 if narrow else len(ways)
    rows = -(-len(ways) // columns)
    figure = new_figure(4.4 if narrow else 9.0, 0.8 + 1.9 * rows)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    styles = dict(_styles(list(dict.fromkeys(table["method"]))))
    for axes, how in zip(panels, ways, strict=False):
        axes.axhline(0, color=MUTED, linewidth=0.8)
        for method, mine in table[table["how"] == how].groupby("method", sort=False):
            colour, dashes = styles[method]
            axes.plot(mine["N"], mine["bias"], color=colour, linestyle=dashes, label=short_name(method, 24))
            axes.fill_between(
                mine["N"], mine["bias"] - mine["spread"], mine["bias"] + mine["spread"], color=colour, alpha=0.15,
                linewidth=0,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.minorticks_off()
        ticks = sorted(set(table["N"]))[:: 2 if len(set(table["N"])) > 5 else 1]
        axes.set_xticks(ticks, [str(tick) for tick in ticks], fontsize=7)
        axes.set_title(_WAYS.get(how, how), loc="left", fontsize=9)
        axes.tick_params(axis="y", labelsize=7.5)
    for axes in panels[len(ways) :]:
        axes.set_axis_off()
    figure.supxlabel("points", fontsize=9)
    figure.supylabel("told less overall", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=2 if narrow else 4, fontsize=8)
    return figure


@styled_figure
def accuracy_by_case(table: pd.DataFrame, narrow: bool = False) -> Figure:
    """The same errors, a panel a distribution over the points (figures 20 to 22)."""
    cases = list(dict.fromkeys(table["failures"]))
    columns = 2 if narrow else len(cases)
    rows = -(-len(cases) // columns)
    figure = new_figure(4.4 if narrow else 9.0, 0.8 + 1.9 * rows)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, case in zip(panels, cases, strict=False):
        mine = table[table["failures"] == case]
        for (how, points), (colour, dashes) in zip(mine.groupby("how", sort=False), SET_STYLES, strict=False):
            axes.plot(
                points["N"], points["error"], color=colour, linestyle=dashes, marker="o", markersize=3,
                label=_WAYS.get(how, how),
            )  # fmt: skip
        axes.set_xscale("log")
        axes.minorticks_off()
        ticks = sorted(set(table["N"]))
        axes.set_xticks(ticks, [str(tick) for tick in ticks], fontsize=7)
        axes.set_title(case, loc="left", fontsize=9)
        axes.tick_params(axis="y", labelsize=7.5)
    for axes in panels[len(cases) :]:
        axes.set_axis_off()
    figure.supxlabel("points", fontsize=9)
    figure.supylabel("error of the overall performance", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=2 if narrow else 4, fontsize=8)
    return figure


def _styles(methods: list[str]) -> list[tuple[str, tuple]]:
    return [(method, SET_STYLES[place % len(SET_STYLES)]) for place, method in enumerate(methods)]
