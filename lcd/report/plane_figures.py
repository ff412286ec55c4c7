"""The φ-ψ plane: what makes each task hard."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from lcd.envs.errors import InputError
from lcd.report.figures import INK, MUTED, new_figure, short_name, styled_figure
from lcd.scores.challenge_table import GROUP
from lcd.scores.diagnosis import Diagnosis
from lcd.scores.hard import FROM_HALF, HardFrom
from lcd.scores.validity import withheld

POINT = "#0072b2"
SHORTEST_AXIS = 0.1


def planes(diagnosis: Diagnosis, narrow: bool = False, threshold: HardFrom = FROM_HALF) -> Iterator[tuple[str, Figure]]:
    """What `challenge_plane` draws of every group, by a name fit for a file; `narrow` draws for a phone's width."""
    for place, (_, group) in enumerate(diagnosis.table.groupby(list(GROUP), sort=False)):
        # What has neither score (a front-end on pixels, a sweep) has no place on the plane.
        if group[["phi_raw", "psi_raw"]].notna().any(axis=None):
            yield f"challenge-{place}", challenge_plane(group, narrow, threshold)


def is_placed(table: pd.DataFrame) -> pd.Series:
    """Which tasks have both scores on a scale, and so a place on the plane."""
    return table["phi"].notna() & table["psi"].notna()


@styled_figure
def challenge_plane(table: pd.DataFrame, narrow: bool = False, threshold: HardFrom = FROM_HALF) -> Figure:
    """Tasks by φ (perception) and ψ (reward), with intervals; tasks without both are listed under it.

    Where no task has a place on the plane, the raw scores that there are are drawn as bars.

    Args:
        table: rows of a diagnosis' table, of one (benchmark, agent, front-end, shaping) group.
        narrow: draw for a phone's width.
        threshold: from where on scaled scores are hard.

    Raises:
        InputError: where no task has any score.
    """
    placed = table[is_placed(table)]
    if placed.empty:
        return _bars(table, narrow)
    listed = [_unplaced(row) for _, row in table.drop(placed.index).iterrows()]
    size = (4.4, 4.3) if narrow else (7.4, 5.2)
    figure = new_figure(size[0], size[1] + 0.17 * len(listed))
    axes = figure.subplots()
    limits = [_limits(placed, "phi"), _limits(placed, "psi")]
    axes.set(xlim=limits[0], ylim=limits[1])
    axes.set_xlabel("φ  perceptual challenge  →", loc="right")
    axes.set_ylabel("ψ  reinforcement-learning challenge  →", loc="top")
    for line, number in zip((axes.axvline, axes.axhline), threshold.of(table).values(), strict=True):
        line(number, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    if not placed["validity"].map(withheld).all():
        _name_quadrants(axes)
    for _, row in placed.iterrows():
        _point(axes, row, limits)
    if placed["validity"].map(withheld).any():
        axes.plot([], [], "o", color=MUTED, mfc="white", label="class withheld")
    if (placed["status"] == "ceiling").any():
        axes.plot([], [], "^", color=POINT, mfc="white", label="solved at once (ceiling)")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0, fontsize=8.5, ncols=2)
    if listed:
        figure.supxlabel("\n".join(listed), x=0.02, ha="left", fontsize=8, color=MUTED)
    _label_points(figure, axes, placed)
    return figure


def _bars(table: pd.DataFrame, narrow: bool) -> Figure:
    """A panel for each score that some task has: a bar a task, its raw score, with its interval."""
    signs = {name: sign for name, sign in (("phi", "φ"), ("psi", "ψ")) if table[f"{name}_raw"].notna().any()}
    if not signs:
        raise InputError("no task has a score, so that there is no plane: plot('curves') draws what was learned.")
    scored = table[table[[f"{name}_raw" for name in signs]].notna().any(axis=1)]
    across = 1 if narrow else len(signs)
    down = -(-len(signs) // across)
    figure = new_figure(4.4 if narrow else 7.4, down * (0.9 + 0.32 * len(scored)))
    panels = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    places = range(len(scored))
    for axes, (name, sign) in zip(panels, signs.items(), strict=True):
        column = f"{name}_raw"
        axes.barh(places, scored[column], 0.6, color=POINT, alpha=0.35)
        axes.hlines(places, scored[f"{column}_low"], scored[f"{column}_high"], color=POINT, linewidth=1.6)
        axes.axvline(0, color=MUTED, linewidth=0.9)
        # What is next to nothing shall not look large.
        axes.update_datalim([(0, 0), (SHORTEST_AXIS, 0)])
        axes.autoscale_view()
        names = [short_name(row["task"].removeprefix(f"{row['benchmark']}/"), 26) for _, row in scored.iterrows()]
        axes.set_yticks(places, names, fontsize=8.5)
        axes.set_ylim(len(scored) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        axes.set_xlabel(f"{sign}, raw  →", loc="right")
    return figure


COLOURS = ("#0072b2", "#d55e00")


@styled_figure
def shared_map(table: pd.DataFrame, narrow: bool = False) -> Figure:
    """Tasks of two studies by raw φ and ψ with their intervals, a colour each.

    Args:
        table: of `lcd.analyses.against.on_one_map`.
        narrow: draw for a phone's width.
    """
    scores = {f"{name}_raw{end}": f"{name}{end}" for name in ("phi", "psi") for end in ("", "_low", "_high")}
    placed = table.dropna(subset=["phi_raw", "psi_raw"]).rename(columns=scores)
    figure = new_figure(*((4.4, 4.6) if narrow else (7.4, 5.6)))
    axes = figure.subplots()
    ends = {score: placed[[score, f"{score}_low", f"{score}_high"]].to_numpy() for score in ("phi", "psi")}
    limits = [_frame(ends[score]) for score in ("phi", "psi")]
    axes.set(xlim=limits[0], ylim=limits[1])
    axes.set_xlabel("φ, raw  →", loc="right")
    axes.set_ylabel("ψ, raw  →", loc="top")
    for (name, rows), colour in zip(placed.groupby("study", sort=False), COLOURS, strict=False):
        axes.plot([], [], "o", color=colour, label=short_name(name))
        for _, row in rows.iterrows():
            _point(axes, row, limits, colour)
    if placed.empty:
        axes.text(0.5, 0.5, "No task has both scores", transform=axes.transAxes, ha="center", color=MUTED)
    else:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0, fontsize=8.5, ncols=2)
    _label_points(figure, axes, placed)
    return figure


def _frame(ends: np.ndarray) -> tuple[float, float]:
    """Room for points and intervals, without those that are absurdly wide."""
    if not len(ends):
        return 0.0, 1.0
    low, high = min(0.0, float(ends[:, 0].min())), float(ends[:, 0].max())
    room = max(high - low, 0.1)
    low, high = max(np.nanmin(ends), low - room), min(np.nanmax(ends), high + room)
    return low - 0.05 * room, high + 0.08 * room


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


def _point(axes: Axes, row: pd.Series, limits: list[tuple[float, float]], point: str = POINT) -> None:
    at = (row["phi"], row["psi"])
    bars = {"color": point, "alpha": 0.55, "linewidth": 1.6, "solid_capstyle": "butt", "zorder": 2}
    axes.plot([row["phi_low"], row["phi_high"]], [at[1]] * 2, **bars)
    axes.plot([at[0]] * 2, [row["psi_low"], row["psi_high"]], **bars)
    # An arrow head at the frame says that the interval goes on beyond it.
    for axis, score, marks in ((0, "phi", "<>"), (1, "psi", "v^")):
        for side, end, mark in ((0, "_low", marks[0]), (1, "_high", marks[1])):
            limit, bound = limits[axis][side], row[score + end]
            if (bound < limit) if side == 0 else (bound > limit):
                place = (limit, at[1]) if axis == 0 else (at[0], limit)
                axes.plot(*place, mark, color=point, alpha=0.8, markersize=6, clip_on=False, zorder=3)
    ceiling = row["status"] == "ceiling"
    unsure = withheld(row["validity"])
    colour, face = MUTED if unsure else point, "white" if ceiling or unsure else point
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
        costs = _costs(boxes, frame, hard, soft) + 4 * (np.arange(len(boxes)) // 8)
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


def _costs(boxes: list[Bbox], frame: Bbox, hard: list[Bbox], soft: list[Bbox]) -> np.ndarray:
    """What each box would hide, and by how much it would be outside of the frame."""
    corners = np.array([box.extents for box in boxes])
    hits = 1000 * _overlaps(corners, hard) + 10 * _overlaps(corners, soft)
    low, high = np.array(frame.extents[:2]), np.array(frame.extents[2:])
    outside = np.maximum(low - corners[:, :2], 0) + np.maximum(corners[:, 2:] - high, 0)
    return hits + 20 * outside.sum(axis=1)


def _overlaps(corners: np.ndarray, others: list[Bbox]) -> np.ndarray:
    """How many of the others each box overlaps."""
    there = np.array([(box.xmin, box.ymin, box.xmax, box.ymax) for box in others])
    apart = (corners[:, None, :2] > there[None, :, 2:]) | (corners[:, None, 2:] < there[None, :, :2])
    return (~apart.any(axis=2)).sum(axis=1)
