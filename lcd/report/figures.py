"""Figures of a diagnosis: the φ-ψ plane, and each task's learning curves."""

import base64
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.ticker import EngFormatter
from matplotlib.transforms import Bbox

from lcd.curves.index import Curve
from lcd.files.atomic import write_atomic
from lcd.scores.contrasts import HEADLINE, Contrast
from lcd.scores.diagnosis import GROUP, Diagnosis
from lcd.scores.judging import NO_RANGE
from lcd.scores.validity import withheld
from lcd.statistics.intervals import mean_interval

INK, MUTED, GRID = "#1f2933", "#64707d", "#d9dee4"
# Okabe and Ito's colours for a set of values, one hue from dark to light for amounts; dashes tell the lines apart
# without colour.
SET_STYLES = (
    ("#d55e00", "-"),
    ("#009e73", (0, (5, 1.5))),
    ("#0072b2", (0, (1.2, 1.2))),
    ("#cc79a7", (0, (3, 1.2, 1, 1.2))),
    ("#56b4e9", (0, (8, 2))),
    ("#e69f00", (0, (8, 1.5, 1.2, 1.5))),
)
ORDER_STYLES = (
    ("#08306b", "-"),
    ("#2171b5", (0, (5, 1.5))),
    ("#5a9fd4", (0, (3, 1.2, 1, 1.2))),
    ("#8fb8dd", (0, (1.2, 1.2))),
)
POINT = "#0072b2"
POINTS = 100
"""So many points of a curve are drawn at most: more cannot be told apart on a page."""
PATH, CURVED, FINER = re.compile(rb' d="[^"]*"'), re.compile(rb"[QCHV]"), re.compile(rb"(\.\d)\d+")
SUPERFLUOUS = re.compile(rb'<metadata>.*?</metadata>| transform="rotate\(-0 [^"]*"|(?<=\n) +', re.DOTALL)
PANEL = (4.8, 3.5)
"""Width and height of a panel of learning curves, in inches."""
# Names come from files: nothing in them may be taken for mathematics or TeX.
LOOKS = {
    "text.parse_math": False,
    "text.usetex": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "lcd",
}


def styled_figure(draw: Callable) -> Callable:
    @wraps(draw)
    def styled(*args, **kwargs):
        with mpl.rc_context(LOOKS):
            return draw(*args, **kwargs)

    return styled


def all_figures(diagnosis: Diagnosis, narrow: bool = False, threshold: float = 0.5) -> Iterator[tuple[str, Figure]]:
    """Every figure of a diagnosis by a name fit for a file.

    Args:
        diagnosis: what to draw; learning curves are drawn if it has its curves.
        narrow: draw for a phone's width: all but learning curves, whose drawing `one_below_the_other` rearranges.
    """
    for place, (_, group) in enumerate(diagnosis.table.groupby(list(GROUP), sort=False)):
        # Groups of one condition alone (a front-end on pixels) are parts of comparisons, and have no plane.
        if group[["phi_raw", "psi_raw"]].notna().any(axis=None) or len(diagnosis.table) == len(group):
            yield f"challenge-{place}", challenge_plane(group, narrow, threshold)
    if diagnosis.curves.empty or narrow:
        return
    for index, row in diagnosis.table.iterrows():
        # Of a task whose runs are all left out there is none.
        if any(diagnosis.curves_under(row, each) for each in diagnosis.conditions(row["benchmark"]).values()):
            yield f"curves-{index}", learning_curves(diagnosis, row)


def styles(contrast: Contrast) -> list[tuple]:
    """The (colour, dashes) of each of a contrast's values, in order."""
    given = ORDER_STYLES if contrast.ordered else SET_STYLES
    return [given[place % len(given)] for place in range(len(contrast.values))]


@styled_figure
def challenge_plane(table: pd.DataFrame, narrow: bool = False, threshold: float = 0.5) -> Figure:
    """Tasks by φ (perception) and ψ (reward), with intervals; tasks without both are listed under it.

    Args:
        table: rows of a diagnosis' table, of one (benchmark, agent, front-end, shaping) group.
        narrow: draw for a phone's width.
        threshold: from where on a score counts as hard.
    """
    placed = table[table["phi"].notna() & table["psi"].notna()]
    listed = [_unplaced(row) for _, row in table.drop(placed.index).iterrows()]
    size = (4.4, 4.3) if narrow else (7.4, 5.2)
    figure = new_figure(size[0], size[1] + 0.17 * len(listed))
    axes = figure.subplots()
    limits = [_limits(placed, "phi"), _limits(placed, "psi")]
    axes.set(xlim=limits[0], ylim=limits[1])
    axes.set_xlabel("φ  perceptual challenge  →", loc="right")
    axes.set_ylabel("ψ  reinforcement-learning challenge  →", loc="top")
    for line in (axes.axvline, axes.axhline):
        line(threshold, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    if placed.empty or not placed["validity"].map(withheld).all():
        _name_quadrants(axes)
    for _, row in placed.iterrows():
        _point(axes, row, limits)
    if placed["validity"].map(withheld).any():
        axes.plot([], [], "o", color=MUTED, mfc="white", label="class withheld")
    if placed.empty:
        axes.text(0.5, 0.5, "No task has both scores", transform=axes.transAxes, ha="center", color=MUTED)
    if (placed["status"] == "ceiling").any():
        axes.plot([], [], "^", color=POINT, mfc="white", label="solved at once (ceiling)")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0, fontsize=8.5, ncols=2)
    if listed:
        figure.supxlabel("\n".join(listed), x=0.02, ha="left", fontsize=8, color=MUTED)
    _label_points(figure, axes, placed)
    return figure


@styled_figure
def learning_curves(diagnosis: Diagnosis, row: pd.Series) -> Figure:
    """Held-out learning curves of one task, a panel for each contrast: the mean over seeds with its 95 % interval.

    Args:
        diagnosis: With its curves.
        row: A row of its table.

    Returns:
        Panels of one size side by side, each complete, so that `one_below_the_other` may take them apart.
    """
    asked = [each for each in diagnosis.contrasts if _has_lines(diagnosis, row, each)] or list(diagnosis.contrasts[:1])
    count = max(len(asked), 2)
    width, height = PANEL
    figure = new_figure(width * count, height)
    # The same margins for every task: finding the best ones takes longer than drawing.
    figure.set_layout_engine(None)
    panels = figure.subplots(1, count, sharex=True, sharey=True)
    figure.subplots_adjust(0.6 / (width * count), 0.14, 1 - 0.5 / (width * count), 0.78, 1.1 / (width - 1.1))
    figure.text(
        0.1 / (width * count),
        0.985,
        short_name(str(row["task"])),
        ha="left",
        va="top",
        fontsize=10.5,
        fontweight="bold",
    )
    for axes, contrast in zip(panels, [*asked, *[None] * (count - len(asked))], strict=True):
        _panel_of(axes, diagnosis, row, contrast)
    ranged = row["status"] != NO_RANGE
    if ranged:
        _mark_range(panels)
    for axes in panels:
        axes.tick_params(labelleft=True)
        axes.set_xlabel("environment steps", fontsize=9)
        axes.set_ylabel("held-out return, normalised" if ranged else "return", fontsize=9)
    return figure


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
    """Rearrange the panels of `learning_curves` for a phone's width.

    Args:
        drawing: The content of its SVG file.
    """
    width, height = (72 * inches for inches in PANEL)
    start = drawing.index(b"<svg ")
    head, content = drawing[:start], drawing[drawing.index(b">", start) + 1 : drawing.rindex(b"</svg>")]
    whole = next(re.finditer(rb'viewBox="0 0 ([\d.]+) ', drawing))
    count = round(float(whole[1]) / width)
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


def _has_lines(diagnosis: Diagnosis, row: pd.Series, contrast: Contrast) -> bool:
    conditions = diagnosis.conditions_of(contrast, row["benchmark"])
    return contrast in HEADLINE or any(diagnosis.curves_under(row, condition) for condition in conditions)


def _panel_of(axes: Axes, diagnosis: Diagnosis, row: pd.Series, contrast: Contrast | None) -> None:
    """The curves of one contrast's conditions; an empty panel without a contrast."""
    if contrast is not None:
        conditions = diagnosis.conditions_of(contrast, row["benchmark"])
        for condition, value, style in zip(conditions, contrast.values, styles(contrast), strict=True):
            mean_curve(axes, diagnosis.curves_under(row, condition), contrast.label(value), style)
        views = {condition.view for condition in conditions}
        where = f", {views.pop().replace('_', ' ')}" if len(views) == 1 else ""
        axis = contrast.axis.removeprefix("knobs.").replace("_", " ")
        axes.set_title(f"by {axis}{where}", loc="left", fontsize=9, color=MUTED, pad=21)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if axes.get_legend_handles_labels()[0]:
        place = {"loc": "lower left", "bbox_to_anchor": (-0.02, 0.985), "borderaxespad": 0}
        axes.legend(ncols=4, fontsize=8, handlelength=2.2, columnspacing=1.0, **place)
    else:
        axes.text(0.5, 0.5, "no such runs", transform=axes.transAxes, ha="center", color=MUTED)


@styled_figure
def save_figure(figure: Figure, folder: str | Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG into a folder; return their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _lay_out(figure)
    paths = []
    for kind in ("png", "svg"):
        paths.append(folder / f"{name}.{kind}")
        write_atomic(paths[-1], _render(figure, kind))
    return paths


@styled_figure
def draw_svg(figure: Figure) -> bytes:
    """A figure as the content of an SVG file."""
    _lay_out(figure)
    return _render(figure, "svg")


def data_uri(svg: bytes) -> str:
    """An SVG file's content as an address, so that a page needs no other file."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()


def short_name(name: object, length: int = 44) -> str:
    """A name that fits into a figure: a task's without its benchmark, if that helps, and cut at its end."""
    name = str(name)
    if len(name) > length and "/" in name and "[" not in name:
        name = "…/" + name.rpartition("/")[2]
    return name if len(name) <= length else name[: length - 1] + "…"


def new_figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _lay_out(figure: Figure) -> None:
    """Find the places of everything once, not anew for every file."""
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine(None)


def _render(figure: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    if kind == "png":
        # Half of the time of a PNG would go into its last few per cent.
        figure.savefig(buffer, format=kind, dpi=160, pil_kwargs={"compress_level": 4})
        return buffer.getvalue()
    # Without a date, because the same curves should give the same file.
    figure.savefig(buffer, format=kind, metadata={"Date": None})
    return PATH.sub(_shorter, SUPERFLUOUS.sub(b"", buffer.getvalue()))


def _shorter(path: re.Match[bytes]) -> bytes:
    """A path of straight lines to a tenth of a point, finer than a pixel; pairs of numbers alone are lines."""
    if CURVED.search(path[0]):
        return path[0]
    return FINER.sub(rb"\1", path[0]).replace(b" \nL ", b" ")


def _unplaced(row: pd.Series) -> str:
    told = [f"{sign} {row[name]:.2f}" for name, sign in (("phi", "φ"), ("psi", "ψ")) if np.isfinite(row[name])]
    reason = row["status"] if row["status"] != "ok" else next(
        row[name] for name in ("phi_status", "psi_status") if row[name] != "ok"
    )  # fmt: skip
    return f"not placed: {short_name(row['task'])} ({', '.join([reason.replace('_', ' '), *told])})"


def _limits(placed: pd.DataFrame, score: str) -> tuple[float, float]:
    """Room for the points and for intervals that are not absurdly wide."""
    low, high = placed[f"{score}_low"].min(), placed[f"{score}_high"].max()
    return max(np.fmin(low, 0), -0.6) - 0.09, min(np.fmax(high, 1), 1.6) + 0.09


def _name_quadrants(axes: Axes) -> None:
    """What it means to lie in a corner, faintly."""
    corners = {
        (0.01, 0.99): "hard to learn from reward",
        (0.99, 0.99): "hard in both ways",
        (0.01, 0.01): "easy in both ways",
        (0.99, 0.01): "hard to see",
    }
    for (x, y), words in corners.items():
        sides = {"ha": "left" if x < 0.5 else "right", "va": "bottom" if y < 0.5 else "top"}
        axes.text(
            x, y, words, transform=axes.transAxes, fontsize=7.5, style="italic", color="#8a95a1", zorder=1, **sides
        )


def _point(axes: Axes, row: pd.Series, limits: list[tuple[float, float]]) -> None:
    at = (row["phi"], row["psi"])
    bars = {"color": POINT, "alpha": 0.55, "linewidth": 1.6, "solid_capstyle": "butt", "zorder": 2}
    axes.plot([row["phi_low"], row["phi_high"]], [at[1]] * 2, **bars)
    axes.plot([at[0]] * 2, [row["psi_low"], row["psi_high"]], **bars)
    # An arrow head at the frame says that the interval goes on beyond it.
    for axis, score, marks in ((0, "phi", "<>"), (1, "psi", "v^")):
        for side, end, mark in ((0, "_low", marks[0]), (1, "_high", marks[1])):
            limit, bound = limits[axis][side], row[score + end]
            if (bound < limit) if side == 0 else (bound > limit):
                place = (limit, at[1]) if axis == 0 else (at[0], limit)
                axes.plot(*place, mark, color=POINT, alpha=0.8, markersize=6, clip_on=False, zorder=3)
    ceiling = row["status"] == "ceiling"
    unsure = withheld(row["validity"])
    colour, face = MUTED if unsure else POINT, "white" if ceiling or unsure else POINT
    axes.plot(*at, "^" if ceiling else "o", color=colour, markerfacecolor=face, markersize=7.5, zorder=4)


def _label_points(figure: Figure, axes: Axes, placed: pd.DataFrame) -> None:
    """Write each task's name by its point: the nearest place where it hits no name, point, interval or line."""
    figure.draw_without_rendering()
    frame, unit = axes.get_window_extent(), figure.dpi / 72
    hard, soft = [], [_pixels(axes, (0.5, -9), (0.5, 9)), _pixels(axes, (-9, 0.5), (9, 0.5))]
    for _, row in placed.iterrows():
        hard.append(_pixels(axes, (row["phi"], row["psi"])).padded(5 * unit))
        for score, other in (("phi", "psi"), ("psi", "phi")):
            ends = [(row[score + end], row[other]) for end in ("_low", "_high")]
            soft.append(_pixels(axes, *(end if score == "phi" else end[::-1] for end in ends)))
    for (_, row), point in zip(placed.iterrows(), hard[: len(placed)], strict=True):
        line = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.7, "shrinkB": 5}
        halo = [withStroke(linewidth=2.5, foreground="white")]
        name = short_name(row["task"].removeprefix(f"{row['benchmark']}/"), 32)
        text = axes.annotate(name, (row["phi"], row["psi"]), (0, 0), textcoords="offset points",
                             fontsize=8.5, zorder=5, path_effects=halo, arrowprops=line)  # fmt: skip
        text.set_in_layout(False)
        size = Text.get_window_extent(text)
        centre = ((point.x0 + point.x1) / 2, (point.y0 + point.y1) / 2)
        boxes = [
            Bbox.from_bounds(centre[0] + x * unit, centre[1] + y * unit, size.width, size.height)
            for x, y in _offsets(size.width / unit, size.height / unit)
        ]
        # A place further off costs a little, so that a name stays by its point rather than off every interval.
        costs = [_cost(box, frame, hard, soft) + 4 * (place // 8) for place, box in enumerate(boxes)]
        box = boxes[int(np.argmin(costs))]
        text.set_position(((box.x0 - centre[0]) / unit, (box.y0 - centre[1]) / unit))
        gaps = (box.x0 - centre[0], centre[0] - box.x1, box.y0 - centre[1], centre[1] - box.y1)
        text.arrow_patch.set_visible(max(gaps) > 15 * unit)
        hard.append(box)


def _pixels(axes: Axes, *points: tuple[float, float]) -> Bbox:
    """Where points of the data lie on the canvas, as the box around them."""
    return Bbox(axes.transData.transform([points[0], points[-1]]))


def _offsets(width: float, height: float) -> Iterator[tuple[float, float]]:
    """Places of a label's lower left corner around a point, in points; nearest first."""
    for distance in (6, 13, 22, 34, 48, 64, 82, 102):
        across = {1: distance, 0: -width / 2, -1: -distance - width}
        up = {1: distance, 0: -height / 2, -1: -distance - height}
        for x, y in ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1)):
            yield across[x], up[y]


def _cost(box: Bbox, frame: Bbox, hard: list[Bbox], soft: list[Bbox]) -> float:
    gaps = (frame.x0 - box.x0, box.x1 - frame.x1, frame.y0 - box.y0, box.y1 - frame.y1)
    hits = 1000 * sum(box.overlaps(other) for other in hard) + 10 * sum(box.overlaps(other) for other in soft)
    return hits + 20 * sum(max(0.0, gap) for gap in gaps)


def thinned(grid: np.ndarray) -> np.ndarray:
    """At most `POINTS` steps of a curve, as evenly as they come, the first and the last among them."""
    return grid[np.unique(np.linspace(0, len(grid) - 1, POINTS).round().astype(int))] if len(grid) > POINTS else grid


def mean_curve(axes: Axes, curves: Mapping[int, Curve], label: str, style: tuple) -> None:
    """The mean over seeds of one condition's curves, with its 95 % interval."""
    if not curves:
        return
    seeds = list(curves.values())
    low, high = max(steps[0] for steps, _ in seeds), min(steps[-1] for steps, _ in seeds)
    grid = np.unique(np.concatenate([steps for steps, _ in seeds]))
    grid = thinned(grid[(grid >= low) & (grid <= high)])
    heights = np.array([np.interp(grid, *seed) for seed in seeds])
    colour, dashes = style
    axes.plot(grid, heights.mean(0), color=colour, linestyle=dashes, linewidth=2, label=label, zorder=3)
    if len(seeds) > 1:
        axes.fill_between(grid, *mean_interval(heights), color=colour, alpha=0.16, linewidth=0, zorder=2)
