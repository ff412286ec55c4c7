"""The effective horizons of tasks: from a file that `lcd horizon` wrote, or what their benchmark knows."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from lcd.envs.errors import InputError, nearest
from lcd.envs.protocols import KnownHorizons, offers
from lcd.files.reading import Unreadable, read_bytes, require_columns

Span = tuple[float, float, float]
"""H, and between what it lies; NaN where nothing is known."""
LONG = 8.0
"""H from which on the Effective Horizon Challenge (2025) calls an effective horizon long."""
COLUMNS = ("H", "H_low", "H_high")
NEEDED = ("task", "h", "h_low", "h_high")
_SHOWN = 3
"""How many of the tasks that do not fit are named."""


def effective_horizon(benchmark: str, task: str, given: Mapping[str, Span]) -> dict[str, float]:
    """A task's H and its bounds, NaN where nobody says."""
    found = given.get(task) or _known(benchmark, task)
    return dict(zip(COLUMNS, found, strict=True))


def _known(benchmark: str, task: str) -> Span:
    from lcd.envs.benchmarks import registered_benchmark

    found = registered_benchmark(benchmark)
    if not offers(found, KnownHorizons) or task not in found.horizons:
        return math.nan, math.nan, math.nan
    row = found.horizons[task]
    return float(row.h), float(row.low), float(row.high)


def read_horizons(path: str | Path) -> dict[str, Span]:
    """Task to H and its bounds, from a table that `lcd horizon BENCHMARK out=…` wrote, or one with its columns."""
    found: dict[str, Span] = {}
    for number, row in enumerate(_rows(path), 2):
        task, where = row["task"], f"horizons={path}, line {number},"
        if not task:
            raise InputError(f"{where} names no task: give its name in the column 'task'.")
        if task in found:
            raise InputError(f"horizons={path} has the task '{task}' twice: give it once.")
        h, low, high = (_number(where, column, row[column]) for column in NEEDED[1:])
        if low > h or low > high:
            raise InputError(f"{where} has h_low {low:g} above h or h_high: it is what H is at least.")
        found[task] = h, low, high
    return found


def note_of_strangers(given: Mapping[str, Span], tasks: Collection[str]) -> str | None:
    """A sentence about those of the given tasks that are not evaluated, if there are any.

    Args:
        given: what `read_horizons` found.
        tasks: what the curves evaluate (`lcd.curves.table.evaluated_names`).

    Raises:
        InputError: where none of them is evaluated.
    """
    strangers = [task for task in given if task not in tasks]
    if not strangers:
        return None
    if len(strangers) == len(given):
        raise InputError(f"horizons: the curves have no task '{strangers[0]}': {nearest(strangers[0], tasks)}")
    without = [task for task in tasks if task not in given]
    missing = f"; the file has no {_some(without)}" if without else ""
    used = f"{len(given) - len(strangers)} of the {len(given)} tasks in horizons are used"
    return f"{used}: the curves have no {_some(strangers)}{missing}."


def _some(tasks: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = [f"'{task}'" for task in sorted(tasks)[:_SHOWN]]
    more = len(tasks) - len(shown)
    return f"{', '.join(shown)} and {more} more" if more else " or ".join(shown)


def _rows(path: str | Path) -> Iterator[dict[str, str]]:
    """The rows of a CSV file with the columns that are needed, as texts."""
    try:
        text = io.StringIO(read_bytes(path).decode("utf-8-sig"), newline="")
        rows = csv.DictReader(text, strict=True, restkey="more", restval="")
        require_columns(rows.fieldnames or [], NEEDED, f"horizons={path}", f"give a CSV file of {', '.join(NEEDED)}")
        if twice := [column for column in NEEDED if (rows.fieldnames or []).count(column) > 1]:
            raise InputError(f"horizons={path} has two columns '{twice[0]}': give each once.")
        for row in rows:
            if "more" in row:
                raise InputError(f"horizons={path} has more cells than columns in line {rows.line_num}: give as many.")
            yield row
    except (Unreadable, csv.Error, UnicodeDecodeError) as why:
        raise InputError(f"horizons={path} cannot be read ({why}): give a CSV file of {', '.join(NEEDED)}.") from None


def _number(where: str, column: str, text: str) -> float:
    """The number in a cell, NaN where it is empty."""
    try:
        value = float(text) if text.strip() else math.nan
    except ValueError:
        value = math.inf
    if math.isinf(value) or value < 0:
        raise InputError(f"{where} has {text!r} for {column}, but it must be a number of at least 0, or empty.")
    return value
