"""The effective horizons of tasks: from a file that `lcd horizon` wrote, or what their benchmark knows."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from lcd.envs.errors import InputError, nearest
from lcd.envs.protocols import KnownHorizons, offers
from lcd.files.reading import Unreadable, read_bytes, require_columns

Span = tuple[float, float, float]
"""H, and between what it lies; NaN where nothing is known."""
LONG = 8.0
"""H from which on the Effective Horizon Challenge (2025) calls an effective horizon long."""
UNKNOWN: Span = (math.nan, math.nan, math.nan)
COLUMNS = ("H", "H_low", "H_high")
NEEDED = ("task", "h", "h_low", "h_high")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SHOWN = 3
"""How many of the tasks that do not fit are named."""


def horizons_of(evaluated: Iterable[tuple[str, str]], given: Mapping[str, Span]) -> dict[str, Span]:
    """Task to its H, as far as it is known: what is given, else what its benchmark knows.

    Args:
        evaluated: benchmark and task, with its knobs as curves call it.
        given: what `read_horizons` found.
    """
    found = {task: given.get(task) or _known(benchmark, task) for benchmark, task in evaluated}
    return {task: span for task, span in found.items() if not all(map(math.isnan, span))}


def _known(benchmark: str, task: str) -> Span:
    from lcd.envs.benchmarks import registered_benchmark

    found = registered_benchmark(benchmark)
    if not offers(found, KnownHorizons) or task not in found.horizons:
        return UNKNOWN
    row = found.horizons[task]
    return float(row.h), float(row.low), float(row.high)


def read_horizons(path: str | Path) -> dict[str, Span]:
    """Task to H and its bounds, from a table that `lcd horizon BENCHMARK out=…` wrote, or one with its columns."""
    found: dict[str, Span] = {}
    for number, row in _rows(path):
        task, where = row["task"], f"horizons={path}, line {number},"
        if not task:
            raise InputError(f"{where} names no task: give its name in the column 'task'.")
        if task in found:
            raise InputError(f"horizons={path} has the task '{task}' twice: give it once.")
        h, low, high = (_number(where, column, row[column]) for column in NEEDED[1:])
        if low > h or low > high:
            raise InputError(f"{where} has h_low {low:g} above h or h_high: it is what H is at least.")
        if h > high:
            raise InputError(f"{where} has h {h:g} above h_high {high:g}: that is what H is at most.")
        found[task] = h, low, high
    if not found:
        raise InputError(f"horizons={path} has no task: give a row for each.")
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


def _rows(path: str | Path) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a CSV file with the columns that are needed, as texts, and the lines in which they end."""
    try:
        text = io.StringIO(read_bytes(path).decode("utf-8-sig"), newline="")
        rows = csv.DictReader(text, strict=True)
        require_columns(rows.fieldnames or [], NEEDED, f"horizons={path}", f"give a CSV file of {', '.join(NEEDED)}")
        if twice := [column for column in NEEDED if (rows.fieldnames or []).count(column) > 1]:
            raise InputError(f"horizons={path} has two columns '{twice[0]}': give each once.")
        for row in rows:
            if None in row or None in row.values():
                raise InputError(f"horizons={path} has other cells than columns in line {rows.line_num}: give as many.")
            yield rows.line_num, row
    except (Unreadable, csv.Error, UnicodeDecodeError) as why:
        raise InputError(f"horizons={path} cannot be read ({why}): give a CSV file of {', '.join(NEEDED)}.") from None


def _number(where: str, column: str, text: str) -> float:
    """The number in a cell, NaN where it is empty."""
    value = math.nan if not text.strip() else float(text) if _NUMBER.fullmatch(text.strip()) else math.inf
    if math.isinf(value) or value < 0:
        raise InputError(f"{where} has {text!r} for {column}, but it must be a number of at least 0, or empty.")
    return value
