"""Each task's learning curves, drawn from plain numbers (`curve_lines`), so that any process can do it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from lcd.report.figures import INK, MUTED, new_figure, short_name, styled_figure

PANEL = (4.8, 3.5)
"""Width and height of a panel of learning curves, in inches."""
LEFT, RIGHT = 0.74, 0.52
"""Of that, what labels take on either side: numbers of two decimals and their axis' name; what lines stand for."""


@dataclass(frozen=True)
class Line:
    """The mean of a condition's curves over seeds, with its 95 % interval where there are several.

    Attributes:
        style: colour and dashes.
    """

    label: str
    style: tuple[Any, ...]
    steps: np.ndarray
    mean: np.ndarray
    interval: tuple[np.ndarray, np.ndarray] | None


@dataclass(frozen=True)
class Panel:
    """What one contrast's conditions have reached."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class TaskCurves:
    """The panels of one task, and whether its returns are normalised."""

    task: str
    panels: tuple[Panel, ...]
    ranged: bool


@styled_figure
def draw_curves(curves: TaskCurves) -> Figure:
    """Panels of one size side by side, each complete, so that `one_below_the_other` may take them apart."""
    # One alone has the size of one of two, and nothing beside it.
    count, (width, height) = max(2, len(curves.panels)), PANEL
    figure = new_figure(width * count, height)
    # The same margins for every task: finding the best ones takes longer than drawing.
    figure.set_layout_engine(None)
    panels = figure.subplots(1, count, sharex=True, sharey=True)
    between = LEFT + RIGHT
    figure.subplots_adjust(LEFT / (width * count), 0.14, 1 - RIGHT / (width * count), 0.78, between / (width - between))
    place = {"ha": "left", "va": "top", "fontsize": 10.5, "fontweight": "bold"}
    figure.text(0.1 / (width * count), 0.985, short_name(curves.task), **place)
    for axes in panels[len(curves.panels) :]:
        axes.remove()
    panels = panels[: len(curves.panels)]
    for axes, panel in zip(panels, curves.panels, strict=True):
        _draw_panel(axes, panel)
    if curves.ranged:
        _mark_range(panels)
    for axes in panels:
        axes.tick_params(labelleft=True)
        axes.set_xlabel("environment steps", fontsize=9)
        axes.set_ylabel("held-out return, normalised" if curves.ranged else "return", fontsize=9)
    return figure


def _draw_panel(axes: Axes, panel: Panel) -> None:
    for line in panel.lines:
        draw_line(axes, line)
    axes.set_title(panel.title, loc="left", fontsize=9, color=MUTED, pad=21)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    place = {"loc": "lower left", "bbox_to_anchor": (-0.02, 0.985), "borderaxespad": 0}
    axes.legend(ncols=4, fontsize=8, handlelength=2.2, columnspacing=1.0, **place)


def draw_line(axes: Axes, line: Line) -> None:
    """A mean with its interval."""
    colour, dashes = line.style
    axes.plot(line.steps, line.mean, color=colour, linestyle=dashes, linewidth=2, label=line.label, zorder=3)
    if line.interval is not None:
        axes.fill_between(line.steps, *line.interval, color=colour, alpha=0.16, linewidth=0, zorder=2)


def _mark_range(panels: Sequence[Axes]) -> None:
    """Lines, and what they stand for: 1 is the best possible return, 0 a random agent's."""
    for axes in panels:
        axes.axhline(1, color=INK, linewidth=0.9, zorder=1)
        axes.axhline(0, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(max(low, -0.6), min(max(high, 1.08), 1.6))
    for axes in panels:
        for value, words in ((1, "R_max"), (0, "random")):
            axes.annotate(words, (1, value), (3, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                          va="center", fontsize=7.5, color=MUTED)  # fmt: skip


def one_below_the_other(drawing: bytes) -> bytes:
    """Rearrange the panels of `draw_curves` for a phone's width.

    Args:
        drawing: The content of its SVG file.
    """
    width, height = (72 * inches for inches in PANEL)
    start = drawing.index(b"<svg ")
    head, content = drawing[:start], drawing[drawing.index(b">", start) + 1 : drawing.rindex(b"</svg>")]
    count = len(re.findall(rb'<g id="axes_\d+">', drawing))
    panel = f'width="{width:g}" height="{height:g}"'
    panels = "".join(
        f'<svg y="{place * height:g}" {panel} viewBox="{place * width:g} 0 {width:g} {height:g}">'
        '<use xlink:href="#whole"/></svg>'
        for place in range(count)
    )
    opening = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" version="1.1" '
        f'width="{width:g}pt" height="{height * count:g}pt" viewBox="0 0 {width:g} {height * count:g}">'
        '<defs><g id="whole">'
    )
    return head + opening.encode() + content + f"</g></defs>{panels}</svg>".encode()
