"""MDPs of a benchmark as rows: their size, J*, k, m, H, what the filter says, and what it took to find out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from rich import box
from rich.table import Table
from rich.text import Text

from lcd.files.spreadsheets import csv_text
from lcd.horizon.analysis import Result, Settings
from lcd.horizon.tables import NONE, number
from lcd.process.exits import printable
from lcd.process.limits import readable_size
from lcd.scores.horizons import LONG

Row = Mapping[str, Any]
SURVIVES, UNKNOWN = "survives", "GORP not run"
COLUMNS = (
    "task", "states", "actions", "steps", "optimal_return", "random_return", "k", "gorp_k", "gorp_m", "h", "h_low",
    "h_high", "p_opt", "random_timesteps", "gorp_timesteps", "filter", "build_s", "analysis_s", "memory_mb", "digest",
)  # fmt: skip
MEASURED = ("build_s", "analysis_s", "memory_mb")
"""Columns that are not the same every time."""
TEXTS = ("task", "filter", "digest")
COUNTS = ("states", "actions", "steps", "k", "gorp_k", "gorp_m", "memory_mb")
ALWAYS = ("states", "actions", "steps", "optimal_return", "random_return", *MEASURED)
"""What is known of every MDP."""
HEADS = ("MDP", "S", "A", "T", "J*", "random", "k", "GORP's k, m", "H", "filter", "made in", "analysed in", "memory")

NARROW_HEADS = ("MDP", "S", "A", "T", "k", "H", "filter")
WIDE = 130
"""From so many columns on a terminal has room for all of them."""


def row_of(task: str, found: Result, settings: Settings, build_s: float, memory: int, digest: str) -> dict[str, Any]:
    """What was found of one MDP, flat; None where nothing is known."""
    horizon = found.horizon
    highs = [horizon.high if horizon else None, found.bound.h if found.bound else None]
    known = [high for high in highs if high is not None]
    row = {
        "task": task, "states": found.states, "actions": found.actions, "steps": found.steps,
        "optimal_return": found.optimal_return, "random_return": found.random_return, "k": found.solvable.k,
        "gorp_k": horizon.k if horizon else None, "gorp_m": horizon.m if horizon else None,
        "h": horizon.h if horizon else None, "h_low": horizon.low if horizon else None,
        "h_high": min(known) if known else None, "p_opt": found.p_opt, "random_timesteps": found.random_timesteps,
        "gorp_timesteps": found.gorp_timesteps, "filter": verdict(found, settings.timesteps),
        "build_s": round(build_s, 1), "analysis_s": round(found.seconds, 1), "memory_mb": memory >> 20,
        "digest": digest,
    }  # fmt: skip
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}


def is_row(row: Any, task: str, digest: str) -> bool:
    """Is this a row of that task and those tables, as `row_of` makes them?"""
    if not isinstance(row, dict) or tuple(row) != COLUMNS or (row["task"], row["digest"]) != (task, digest):
        return False
    numbers = {key: value for key, value in row.items() if key not in TEXTS and (value is not None or key in ALWAYS)}
    return isinstance(row["filter"], str) and all(
        isinstance(value, int if key in COUNTS else int | float) and not isinstance(value, bool)
        for key, value in numbers.items()
    )


def verdict(found: Result, limit: float) -> str:
    """Whether an MDP survives the paper's filter, or what removes it."""
    if not found.discount_agrees:
        return "discounting misleads"
    if found.random_timesteps is not None and found.random_timesteps < limit:
        return "random guessing solves it"
    if found.gorp_timesteps is not None and found.gorp_timesteps < limit:
        return "GORP solves it"
    return UNKNOWN if found.horizon is None else SURVIVES


def least_h(row: Row) -> float:
    """H, or the least that it can be where GORP did not succeed; NaN where nothing is known."""
    value = row["h"] if row["h"] is not None else row["h_low"]
    return math.nan if value is None else float(value)


def long_share(rows: Sequence[Row]) -> str:
    """A sentence on how many of those that survive have a long effective horizon."""
    kept = [row for row in rows if row["filter"] == SURVIVES]
    if not kept and any(row["filter"] == UNKNOWN for row in rows):
        return "Without GORP, which timesteps=0 leaves out, the filter cannot say which MDPs survive."
    if not kept:
        return f"None of {len(rows)} MDPs survives the filter."
    long = sum(least_h(row) >= LONG for row in kept)
    # Where GORP did not succeed, H may be greater than what was looked at.
    maybe = sum(row["h"] is None and not least_h(row) >= LONG for row in kept)
    open_ones = f", and of {maybe} it is not known" if maybe else ""
    return (
        f"{len(kept)} of {len(rows)} MDPs survive the filter; {long} of them ({long / len(kept):.0%}) have "
        f"H ≥ {LONG:g}{open_ones}."
    )


def csv_of(rows: Sequence[Row]) -> str:
    """The rows as CSV."""
    return csv_text(
        pd.DataFrame(rows, columns=list(COLUMNS)).astype({"k": "Int64", "gorp_k": "Int64", "gorp_m": "Int64"})
    )


def markdown_of(rows: Sequence[Row]) -> str:
    """The rows as a table in Markdown, and what they come to."""
    lines = [f"| {' | '.join(HEADS)} |", f"| {' | '.join(['---', *['---:'] * (len(HEADS) - 1)])} |"]
    lines += [f"| {' | '.join(_cells(row))} |" for row in rows]
    return "\n".join([*lines, "", long_share(rows), ""])


def table_of(rows: Sequence[Row], width: int) -> Table:
    """The rows for a terminal of so many columns; a narrow one gets the least that says how hard an MDP is."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    shown = [place for place, head in enumerate(HEADS) if width >= WIDE or head in NARROW_HEADS]
    for place in shown:
        table.add_column(HEADS[place], justify="right" if place else "left", overflow="fold")
    for row in rows:
        cells = _cells(row)
        table.add_row(*(Text(printable(cells[place])) for place in shown))
    return table


def _cells(row: Row) -> list[str]:
    pair = NONE if row["gorp_m"] is None else f"{row['gorp_k']}, {row['gorp_m']:,}"
    return [
        str(row["task"]), f"{row['states']:,}", str(row["actions"]), str(row["steps"]), number(row["optimal_return"]),
        number(row["random_return"]), NONE if row["k"] is None else str(row["k"]), pair, h_text(row), row["filter"],
        f"{row['build_s']:.1f} s", f"{row['analysis_s']:.0f} s", readable_size(row["memory_mb"] << 20),
    ]  # fmt: skip


def h_text(row: Row) -> str:
    """H, or from where on it must lie."""
    if row["h"] is not None:
        return f"{row['h']:.2f}"
    return NONE if row["h_low"] is None else f"≥ {row['h_low']:.2f}"
