"""What a front-end sees: how well its maps show the objects of a benchmark's tasks, and a page that says so.

A table of objectness has a row a task, a way of finding objects (`by`) and a class: its IoU and adjusted Rand index
with the true masks, `share` (of a frame's pixels that are of the class) and `changes` (how many of those differ from
the frame before). `lcd.pipelines.jobs.objectness` measures it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from lcd.analyses.analysis import Analysis
from lcd.files.atomic import write_atomic
from lcd.report import html as pages
from lcd.report.analysis_figures import COLOURS, MARKERS
from lcd.report.figures import INK, data_uri, draw_svg, new_figure, save_figure, short_name, styled_figure

FIGURE = "objects"
"""All classes together: what the figure-ground view shows."""
OWN = "front-end"
UNTRAINED, COLOUR, DIFFERENCE = "untrained", "colour k-means", "frame differences"
MINUS = re.compile(r"-(?=\d)(?<![\w.]-)")
CHANGING, SMALL = 0.5, 0.01
"""A class is one that moves if this part of its pixels changes from frame to frame, and small below this share."""


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """A row a task and a way: mean IoU over classes, IoU and Rand index of all objects together."""
    single = _classes(table).groupby(["task", "by"], sort=False).iou.mean().rename("class IoU")
    both = table[table["class"] == FIGURE].set_index(["task", "by"])[["iou", "rand"]]
    both.columns = ["object IoU", "object Rand"]
    return pd.concat([single, both], axis=1).reset_index()


def verdict(table: pd.DataFrame) -> list[str]:
    """For each baseline a sentence: on how many tasks the front-end's mean IoU over classes is the greater one."""
    means = summary(table).pivot(index="task", columns="by", values="class IoU")
    lines = []
    for name in (by for by in means.columns if by != OWN):
        gap = means[OWN] - means[name]
        better = int((gap > 0).sum())
        worse = gap[gap < 0]
        if len(worse) == len(gap):
            lines.append(f"behind {name} on {len(gap)} of {len(gap)} tasks, by {-gap.mean():.3f} on average")
            continue
        behind = f"; it is behind by {-worse.mean():.3f} on the others" if len(worse) else ""
        lines.append(f"better than {name} on {better} of {len(gap)} tasks, by {gap.mean():+.3f} on average{behind}")
    return lines


def reasons(table: pd.DataFrame, explained: pd.Series | None = None) -> list[str]:
    """What the front-end finds and what it does not: by motion, by size, and by how much of the motion it explains.

    Args:
        explained: task → the part of the change between frames that pretraining learned to explain.
    """
    lines = []
    if explained is not None and len(explained):
        lines.append(
            f"Of the change between frames, pretraining explains {explained.median():.0%} in the median task "
            f"({explained.min():.0%} in {explained.idxmin()}, {explained.max():.0%} in {explained.idxmax()}): "
            "what it cannot predict it has no reason to draw."
        )
    classes = _classes(table)
    for column, limit, kinds in (
        ("changes", CHANGING, ("that mostly change from frame to frame", "that mostly stay as they are")),
        ("share", SMALL, ("that cover at least one pixel in a hundred", "that are smaller")),
    ):
        if column not in classes:
            continue
        parts = [(kind, classes[there]) for kind, there in zip(kinds, _split(classes[column], limit), strict=True)]
        told_of = [f"{_mean_ious(rows)} for the {_count(rows)} {kind}" for kind, rows in parts if len(rows)]
        lines.append("Mean IoU is " + ", and ".join(told_of) + ".")
    return lines


def _split(values: pd.Series, limit: float) -> tuple[pd.Series, pd.Series]:
    return values >= limit, ~(values >= limit)


def _count(rows: pd.DataFrame) -> str:
    count = len(rows.drop_duplicates(["task", "class"]))
    return f"{count} class{'es' if count != 1 else ''}"


def _mean_ious(rows: pd.DataFrame) -> str:
    means = rows.groupby("by", sort=False).iou.mean()
    others = ", ".join(f"{name} {value:.2f}" for name, value in means.items() if name != OWN)
    return f"{means.get(OWN, np.nan):.2f} ({others})"


def _classes(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["class"] != FIGURE]


def analyses(table: pd.DataFrame, losses: pd.DataFrame | None = None) -> list[Analysis]:
    """What a front-end's page tells.

    Args:
        table: its objectness; the rows of its last step are told, those of all of them are drawn.
        losses: task, `loss` and `static_loss` of its pretraining.
    """
    found, explained = [], None
    if losses is not None and len(losses):
        explained = pd.Series((1 - losses["loss"] / losses["static_loss"]).to_numpy(), losses["task"]).dropna()
        found.append(_motion(losses))
    if len(table):
        last = _last(table)
        found.insert(0, _objectness(last, explained))
        found += [_together(last), _by_class(last)]
    return found


def _motion(losses: pd.DataFrame) -> Analysis:
    told_of = {
        "task": losses["task"],
        "loss of knowing nothing, × 1000": 1000 * losses["static_loss"],
        "loss, × 1000": 1000 * losses["loss"],
        "explained %": 100 * (1 - losses["loss"] / losses["static_loss"]),
    }
    others = {"motion, pixels": "speed", "lost, part of the pixels": "outside"}
    told_of |= {name: losses[column] for name, column in others.items() if column in losses}
    note = (
        "Pretraining's loss on held-out videos, and that of knowing nothing. Of networks that warp frames it is how "
        "far the warped frame is from the next one; an encoder of groups is asked which pixels move by themselves. "
        "Lost are pixels whose flow leaves the frame, or that are not found again in the later one."
    )
    return Analysis("motion", "What it learned of motion", pd.DataFrame(told_of), note=note)


def _last(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["step"] == table["step"].max()] if "step" in table else table


def _objectness(table: pd.DataFrame, explained: pd.Series | None) -> Analysis:
    told_of = [f"The front-end is {line}." for line in verdict(table)]
    return Analysis(
        "objectness",
        "Does it see objects?",
        _beside(with_intervals(table), ("iou", "iou_low", "iou_high")),
        [MINUS.sub("−", line) for line in (*told_of, *reasons(table, explained))],
        "Mean IoU over classes. For each class the map, side and threshold that agree best with the true mask on some "
        "videos are scored on others. Intervals (95 %) are from the spread between videos.",
    )


def _together(table: pd.DataFrame) -> Analysis:
    return Analysis(
        "together",
        "Objects and background",
        _beside(table[table["class"] == FIGURE], ("rand",)),
        note="Adjusted Rand index of the best map's two halves, with all classes together against the background: 1 is "
        "the truth, 0 is chance.",
    )


def with_intervals(table: pd.DataFrame) -> pd.DataFrame:
    """A row a task and a way: `iou`, the mean over classes, and its 95 % interval."""
    found = _classes(table).groupby(["task", "by"], sort=False)[["iou", "iou_error"]].mean().reset_index()
    videos = int(table["videos"].max()) if "videos" in table else 0
    # Classes are scored on the same videos, so that their errors do not average out.
    wide = found.pop("iou_error") * (stats.t.ppf(0.975, videos - 1) if videos > 1 else np.nan)
    return found.assign(iou_low=(found["iou"] - wide).clip(0, 1), iou_high=(found["iou"] + wide).clip(0, 1))


def _beside(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """A row a task, a column a way; bounds keep their endings."""
    first = columns[0]
    wide = rows.pivot(index="task", columns="by", values=list(columns))
    named = {(name, by): f"{by}{name.removeprefix(first)}" for name, by in wide.columns}
    wide.columns = [named[each] for each in wide.columns]
    ways = list(dict.fromkeys(rows["by"]))
    order = [f"{by}{name.removeprefix(first)}" for by in ways for name in columns]
    return wide.loc[list(dict.fromkeys(rows["task"])), order].reset_index()


def _by_class(table: pd.DataFrame) -> Analysis:
    of = ["task", "class"]
    shown = table.pivot_table(index=of, columns="by", values="iou", sort=False)
    first = table.drop_duplicates(of).set_index(of)
    for name, column in (("share of a frame %", "share"), ("pixels that change %", "changes")):
        if column in first:
            shown[name] = 100 * first[column]
    note = "IoU with the true mask, on the videos that score."
    return Analysis("classes", "Class by class", shown.reset_index(), note=note)


@styled_figure
def ious(table: pd.DataFrame, narrow: bool = False) -> Figure:
    """Mean IoU over classes: a row a task, a point with its interval for each way of finding objects."""
    table, tasks = with_intervals(table), list(dict.fromkeys(table["task"]))
    figure = new_figure(4.4 if narrow else 8.4, 1.3 + 0.34 * len(tasks))
    axes = figure.subplots()
    ways = list(dict.fromkeys(table["by"]))
    for place, (name, colour, marker) in enumerate(zip(ways, COLOURS, MARKERS, strict=False)):
        rows = table[table["by"] == name]
        at = np.array([tasks.index(task) for task in rows["task"]]) + 0.17 * (place - (len(ways) - 1) / 2)
        axes.hlines(at, rows["iou_low"], rows["iou_high"], colors=colour, alpha=0.6)
        axes.plot(rows["iou"], at, marker, color=colour, markersize=5.5, label=name)
    axes.set_yticks(range(len(tasks)), [short_name(task, 26 if narrow else 40) for task in tasks], fontsize=8.5)
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel("mean IoU over classes", loc="right")
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.legend(ncols=2 if narrow else 4, fontsize=8.5, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    return figure


@styled_figure
def learning(table: pd.DataFrame, narrow: bool = False) -> Figure:
    """Mean IoU over all tasks' classes against batches of pretraining, beside the baselines."""
    figure = new_figure(4.4 if narrow else 8.4, 2.8)
    axes = figure.subplots()
    means = _classes(table).groupby(["by", "step", "task"], sort=False).iou.mean().groupby(level=["by", "step"]).mean()
    for name, colour, marker in zip(dict.fromkeys(table["by"]), COLOURS, MARKERS, strict=False):
        line = means[name].sort_index()
        marks = {"marker": marker, "markersize": 4.5} if name == OWN else {"linestyle": (0, (5, 1.5))}
        axes.plot(line.index, line, color=colour, label=name, linewidth=1.6, **marks)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("batches", loc="right")
    axes.set_ylabel("mean IoU over classes")
    axes.legend(ncols=2 if narrow else 4, fontsize=8.5, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    return figure


def write_seeing(
    folder: str | Path,
    name: str,
    table: pd.DataFrame,
    losses: pd.DataFrame | None = None,
    pictures: Mapping[str, bytes] | None = None,
    facts: Mapping[str, str] | None = None,
) -> Path:
    """Write `report.html`, which needs no other file, and the figures (PNG and SVG) into `figures/` beside it.

    Args:
        folder: where to write.
        name: what is seen: a benchmark's name.
        table: the objectness; it may be empty, where nobody knows the true masks.
        losses: see `analyses`.
        pictures: what they show → the content of a PNG file.
        facts: how it was made.

    Returns:
        The page's.
    """
    folder = Path(folder)
    found = analyses(table, losses)
    figures: Sequence[tuple[str, Figure, Figure]] = []
    if len(table):
        last = _last(table)
        figures = [("objectness", ious(last), ious(last, narrow=True))]
        if "step" in table and table["step"].nunique() > 1:
            figures.append(("learning", learning(table), learning(table, narrow=True)))
    wide = {key: data_uri(save_figure(figure, folder / "figures", key)[1].read_bytes()) for key, figure, _ in figures}
    page = pages.render(
        "seeing.html.j2",
        name=name,
        found=found,
        wide=wide,
        narrow={key: data_uri(draw_svg(figure)) for key, _, figure in figures},
        pictures={words: pages.png_uri(content) for words, content in (pictures or {}).items()},
        facts=facts or {},
    )
    write_atomic(folder / "report.html", page)
    return folder / "report.html"
