"""Figures of a grid: bars with intervals, heat maps with their deviations, curves seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

Places = Mapping[str, tuple[str, Mapping[str, str]]]
"""Task → its base, and knob → value as it is shown."""
METRICS = {
    "train": ("train", "return_mean"),
    "eval": ("eval", "return_mean"),
    "length": ("eval", "length_mean"),
    "noise_free": ("noise_free", "return_mean"),
}
"""Metric → (the curve's split, the column)."""
TITLES = {
    "train": "training return",
    "eval": "held-out return",
    "length": "held-out episode length",
    "noise_free": "noise-free return",
}
STAND_INS = {"a2c": "A3C", "qrdqn": "Rainbow"}
"""Agent → which of the paper's it stands in for, whatever its settings and whoever's it is."""
COLOUR = "#3b6ea5"


def named(agent: str) -> str:
    """An agent as figures name it: what stands in for one of the paper's agents says so."""
    kind = agent.partition("[")[0].rpartition("/")[2].partition("_")[0]
    return f"{agent} (for {STAND_INS[kind]})" if kind in STAND_INS else agent


def drawings(
    summary: pd.DataFrame, curves: pd.DataFrame, dimensions: Sequence[str], places: Places, title: str
) -> Iterator[tuple[str, str, Callable[[bool], Figure]]]:
    """All figures of a grid: name, caption, and what draws it, whether the page is narrow or not."""
    for base, of_base in summary.groupby("base", sort=False):
        stem = "grid-" + "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in str(base))
        head = f"{title}: {base}"
        for metric in (name for name in METRICS if name in set(of_base["metric"])):
            rows, what = of_base[of_base["metric"] == metric], TITLES[metric]
            if len(dimensions) == 1:
                yield f"{stem}-{metric}", f"{head}, {what}", partial(bars, rows, dimensions[0], head, what)
                continue
            for value, of in (("mean", ""), ("std", ", standard deviation")):
                figure = partial(heat_map, rows, dimensions, value, head, what + of)
                yield f"{stem}-{metric}-{value}", f"{head}, {what}{of}", figure
        if len(dimensions) == 1:
            plain = str(base).partition(", ")[0]
            mine = {task: point[dimensions[0]] for task, (found, point) in places.items() if found == plain}
            yield f"{stem}-curves", f"{head}, seed by seed", partial(seed_curves, curves, mine, dimensions[0], head)


def bars(rows: pd.DataFrame, dimension: str, title: str, what: str, narrow: bool = False) -> Figure:
    """Areas under the curve for every amount of a dimension, an axis an agent."""
    agents = list(dict.fromkeys(rows["agent"]))
    figure, axes = _figure(*((len(agents), 1) if narrow else (1, len(agents))), title, narrow)
    for axis, agent in zip(axes.ravel(), agents, strict=True):
        own = rows[rows["agent"] == agent]
        place = np.arange(len(own))
        reach = np.nan_to_num(np.abs(own[["low", "high"]].to_numpy(float).T - own["mean"].to_numpy(float)))
        axis.bar(place, own["mean"], yerr=reach, color=COLOUR, width=0.7, capsize=3, error_kw={"linewidth": 1})
        turned = 30 if max(map(len, own[dimension])) > 8 else 0
        axis.set_xticks(place, own[dimension], rotation=turned, fontsize=8)
        axis.set_title(named(agent), fontsize=9)
        axis.set_xlabel(f"{dimension}\n({100 * own['level'].iloc[0]:.3g} % intervals)", fontsize=8)
    axes[0][0].set_ylabel(f"AUC of {what}", fontsize=8)
    return figure


def heat_map(
    rows: pd.DataFrame, dimensions: Sequence[str], value: str, title: str, what: str, narrow: bool = False
) -> Figure:
    """A value for every pair of amounts of two dimensions, an axis an agent."""
    agents = list(dict.fromkeys(rows["agent"]))
    figure, axes = _figure(*((len(agents), 1) if narrow else (1, len(agents))), title, narrow)
    across, down = dimensions
    columns, lines = (list(dict.fromkeys(rows[name])) for name in (across, down))
    for axis, agent in zip(axes.ravel(), agents, strict=True):
        own = rows[rows["agent"] == agent].set_index([down, across])[value]
        grid = np.array([[own.get((line, column), np.nan) for column in columns] for line in lines], dtype=float)
        image = axis.imshow(grid, aspect="auto", origin="lower")
        for (line, column), number in np.ndenumerate(grid):
            bright = np.isfinite(number) and image.norm(number) > 0.6
            ink = "black" if bright else "white"
            axis.text(column, line, f"{number:.3g}", ha="center", va="center", fontsize=7, color=ink)
        axis.set_xticks(range(len(columns)), columns, fontsize=8)
        axis.set_yticks(range(len(lines)), lines, fontsize=8)
        axis.set(xlabel=across, ylabel=down)
        axis.set_title(named(agent), fontsize=9)
        figure.colorbar(image, ax=axis).set_label(f"AUC of {what}", fontsize=8)
    return figure


def seed_curves(
    curves: pd.DataFrame, mine: Mapping[str, str], dimension: str, title: str, narrow: bool = False
) -> Figure:
    """Curves of every seed, held-out ones where no training episode ended; an axis for each agent and amount."""
    own = curves[curves["task"].isin(mine)]
    split = "train" if (own["split"] == "train").any() else "eval"
    of_split = own[own["split"] == split].copy()
    of_split["amount"] = of_split["task"].map(mine)
    agents = list(dict.fromkeys(of_split["agent"]))
    amounts = [amount for amount in dict.fromkeys(mine.values()) if (of_split["amount"] == amount).any()]
    figure, axes = _figure(len(agents), len(amounts), title)
    for row, agent in enumerate(agents):
        for column, amount in enumerate(amounts):
            axis = axes[row][column]
            own = of_split[(of_split["agent"] == agent) & (of_split["amount"] == amount)]
            for _, of_seed in own.groupby("seed"):
                axis.plot(of_seed["step"], of_seed["return_mean"], linewidth=0.7)
            axis.set_title(f"{named(agent)}\n{dimension} = {amount}", fontsize=8)
            axis.tick_params(labelsize=7)
    for axis in axes[-1]:
        axis.set_xlabel("environment steps", fontsize=8)
    for row in axes:
        row[0].set_ylabel("held-out return" if split == "eval" else "training return", fontsize=8)
    return figure


def _figure(rows: int, columns: int, title: str, narrow: bool = False) -> tuple[Figure, np.ndarray]:
    # The page stretches figures to its width, so that narrower ones would have letters of another size.
    figure = Figure(figsize=(4 if narrow else max(2.2 * columns, 9.6), 2.8 * rows + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    return figure, figure.subplots(rows, columns, squeeze=False)
