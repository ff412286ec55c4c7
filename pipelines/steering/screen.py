"""A study on one screen: what `lcd status` shows to a reader, of three runs as of ten thousand."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.cells import cell_len, set_cell_size

from lcd.config.steering_schemas import STATES
from lcd.pipelines.steering.glance import CANCELLED, DAMAGED, DIVERGED, DONE, FAILED, RUNNING, WAITING, Seen
from lcd.pipelines.steering.summary import Summary
from lcd.pipelines.study.cost import HOUR, hours_text
from lcd.pipelines.study.lease import LOG_FILE
from lcd.pipelines.study.progress import clock
from lcd.process.exits import printable

LEAST_WIDTH, LEAST_HEIGHT = 40, 24
ENOUGH = 6
"""Letters of a run's id that commands are given."""
LABEL_PARTS = "  "
"""Between the parts of a run's label: its task, its view, …"""
SILENT_S = 120
"""Seconds after which it is worth saying that nothing was heard of a run."""
HOPELESS_S = 1000 * 24 * HOUR
ADVICE = {
    FAILED: "the same command tries it again",
    DIVERGED: "left out; lcd retry trains it anew",
    DAMAGED: "lcd verify says more",
}


def screen(study: Path, seen: Sequence[Seen], width: int, height: int, queued: int = 0) -> list[str]:
    """The lines of a screen; but for the paths of logs they are as wide as it is at most, and about as many.

    Args:
        study: the study's folder.
        seen: its runs.
        width: of the screen.
        height: of the screen.
        queued: how many of those that wait do so in a cluster's queue.
    """
    width, more = max(width, LEAST_WIDTH), max(0, height - LEAST_HEIGHT)
    summary = Summary(seen)
    lines = [*_head(study, summary, width, queued)]
    if len(seen) <= 5 + more // 3:
        lines += _runs(seen, width)
    else:
        lines += _groups(summary, width, 5 + more // 3)
    lines += _at_work(summary, width, 3 + more // 3)
    lines += _troubles(summary, width, 2 + more // 8)
    return lines


def _head(study: Path, summary: Summary, width: int, queued: int) -> Iterator[str]:
    cost, left, count = summary.cost, summary.left, len(summary.seen)
    agents = f", {cost['seeds']:,} agent{'s' * (cost['seeds'] != 1)}" if cost["seeds"] else ""
    yield fit(f"{count:,} run{'s' * (count != 1)}{agents} of {printable(study)}", width)
    filled = int((width - 8) * summary.share)
    yield f"{'█' * filled}{'░' * (width - 8 - filled)}  {100 * summary.share:>3.0f} %"
    told = [f"{summary.states[state]:,} {state}" for state in STATES if summary.states[state] or state == DONE]
    yield fit(", ".join(told), width)
    ends = "" if summary.seconds_left is None else f", {_until(summary.seconds_left)} left"
    yield fit(f"{_hours(cost['core_hours'], cost['gpu_hours'])} so far{ends}", width)
    if summary.states[RUNNING] + summary.states[WAITING]:
        going = "what is to go is not known yet"
        if left is not None:
            going = f"about {_hours(left.core / HOUR, left.gpu / HOUR)} to go"
        yield fit(going, width)
    if queued:
        yield fit(f"{queued:,} run{'s are' if queued > 1 else ' is'} in Slurm's queue.", width)
    elif summary.states[WAITING] and not summary.states[RUNNING]:
        yield fit("None is being trained now: the command that asked for them goes on with them.", width)


def _runs(seen: Sequence[Seen], width: int) -> list[str]:
    rows = [["run", "", "state", "step", "of"]] if seen else []
    labels = _told_apart([each.label for each in seen])
    for label, each in zip(labels, seen, strict=True):
        rows.append([label, each.name, each.state, f"{each.status['step']:,}", f"{each.status['steps']:,}"])
    return ["", *table(rows, width)] if rows else []


def _told_apart(labels: Sequence[str]) -> list[str]:
    """Labels without what all of them share: narrow screens cut the end, which may be all that two runs differ in."""
    parts = [label.split(LABEL_PARTS) for label in labels]
    shared = set.intersection(*map(set, parts)) if len(parts) > 1 else set()
    return [LABEL_PARTS.join([first, *(part for part in others if part not in shared)]) for first, *others in parts]


def _groups(summary: Summary, width: int, most: int) -> list[str]:
    groups = summary.groups(most)
    if not groups:
        return []
    shown = [state for state in STATES if summary.states[state] or state == DONE]
    # What is not finished is what one looks for.
    order = sorted(groups.items(), key=lambda pair: pair[1].states[DONE] == len(pair[1].seen))
    rows = [["", "runs", *shown, ""]]
    for name, each in order[:most]:
        counts = [f"{each.states[state]:,}" if each.states[state] else "·" for state in shown]
        rows.append([name, f"{len(each.seen):,}", *counts, f"{100 * each.share:.0f} %"])
    return ["", *table(rows, width), *_and_more(len(order) - most)]


def _at_work(summary: Summary, width: int, most: int) -> list[str]:
    at_work = sorted((each for each in summary.seen if each.state == RUNNING), key=lambda each: -each.share)
    if not at_work:
        return []
    rows = [["running", "run", "%", "steps/s", "left", "where"]]
    for each in at_work[:most]:
        rate = each.status["steps_per_s"]
        silent = time.time() - each.status["updated"]
        left = f"silent {clock(silent)}" if silent > SILENT_S else _until(each.seconds_left)
        where = (each.status["where"] or "").replace(", process ", ":").replace(", GPU ", " GPU ")
        rows.append(
            [each.label, each.name[:ENOUGH], f"{100 * each.share:.0f}", f"{rate:,.0f}" if rate else "", left, where]
        )
    return ["", *table(rows, width), *_and_more(len(at_work) - most)]


def _troubles(summary: Summary, width: int, most: int) -> list[str]:
    troubles = summary.troubles((FAILED, DIVERGED, DAMAGED))
    lines = [""] if troubles or summary.states[CANCELLED] else []
    for state, why, runs in troubles[:most]:
        first, times = runs[0], f"{len(runs):,} × " if len(runs) > 1 else ""
        lines.append(fit(f"{times}{state}: {printable(why)}", width))
        lines.append(f"  {fit(printable(first.label), width - len(ADVICE[state]) - 5)} ({ADVICE[state]})")
        place = first.folder / LOG_FILE if (first.folder / LOG_FILE).exists() else first.folder
        lines.append(f"  {printable(place)}")
    lines += _and_more(len(troubles) - most)
    if count := summary.states[CANCELLED]:
        lines.append(fit(f"{count:,} cancelled: lcd retry lets them go on.", width))
    return lines


def _and_more(count: int) -> list[str]:
    return [f"… and {count:,} more"] if count > 0 else []


def table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Rows as lines: the first column takes what the others leave, and these stand at the right; the last is cut."""
    cleaned = [[printable(cell) for cell in row] for row in rows]
    widths = [max(cell_len(row[column]) for row in cleaned) for column in range(len(cleaned[0]))]
    widths[-1] = min(widths[-1], max(8, width // 3))
    widths[0] = max(8, min(widths[0], width - sum(widths[1:]) - 2 * (len(widths) - 1)))
    lines = []
    for first, *others in cleaned:
        cells = [set_cell_size(fit(first, widths[0]), widths[0])]
        cells += [
            f"{' ' * (size - cell_len(cell))}{cell}"
            for cell, size in zip(map(fit, others, widths[1:]), widths[1:], strict=True)
        ]
        lines.append(fit("  ".join(cells).rstrip(), width))
    return lines


def fit(text: str, width: int) -> str:
    """A text in so many columns of a terminal, cut where it is longer."""
    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"


def _until(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return clock(seconds) if seconds < HOPELESS_S else "years"


def _hours(cores: float, gpus: float) -> str:
    return f"{hours_text(cores)} of a core" + (f" and {hours_text(gpus)} of a GPU" if gpus else "")
