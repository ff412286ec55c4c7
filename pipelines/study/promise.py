"""What a run's config promises of its curve, and what of that a `curve.csv` does not keep."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcd.curves.names import evaluated_name
from lcd.files.reading import Unreadable, read_bytes

MOST = 10**6
"""Evaluations that a config is believed to ask for."""

MOST_NAMED = 4
"""Values that a column may have which are told one by one."""

Row = Mapping[str, str]
Task = tuple[str, str]
"""What was trained, and what is evaluated."""


@dataclass(frozen=True)
class Promise:
    """What a curve will hold.

    Attributes:
        steps: at which it has an evaluation; the last of them is the least at which it may end.
        tasks: what is evaluated: what was trained for it (empty where no column says so), and its `evaluated_name`.
        seeds, splits: of which each of the tasks has one there.
        elsewhere: of the tasks, those that are not what is trained, and have the first split alone.
        numbers: columns that are finite in every row.
        may_lack: of these, those that are empty where the benchmark does not know them.
        shared: columns that are the same in all rows, with their values.
        varying: columns that are not, with the values that they may have.
    """

    steps: Sequence[int]
    tasks: Sequence[Task]
    seeds: Sequence[int]
    splits: Sequence[str] = ("eval",)
    elsewhere: Collection[Task] = ()
    numbers: Collection[str] = ()
    may_lack: Collection[str] = ()
    shared: Mapping[str, Any] = field(default_factory=dict)
    varying: Mapping[str, Collection[str]] = field(default_factory=dict)


def evaluation_steps(ends: Sequence[int], every: int, each: int) -> list[int]:
    """The steps of evaluations: after the iteration that reaches a multiple of `every`, and the last of each stage.

    Args:
        ends: where stages end.
        every: steps between two evaluations.
        each: steps of an iteration.

    Raises:
        ValueError: where no curve holds so many.
    """
    if ends[-1] // max(every, each) > MOST:
        raise ValueError("no curve holds so many evaluations")
    reached = {math.ceil(multiple / each) * each for multiple in range(0, ends[-1], every)}
    return sorted(step for step in {0, *reached, *ends} if step <= ends[-1])


def broken_promise(
    path: Path,
    promise: Callable[[Any], Promise],
    config: Any,
    upto: float = math.inf,
    lost: Collection[str] = (),
) -> str:
    """What is wrong with a curve, in words that follow "its curve"; nothing where it is as promised.

    Args:
        path: of the `curve.csv`.
        promise: what a config promises.
        config: the run's.
        upto: the step that the run has come to, if that is not the last; what lies beyond it is not looked at.
        lost: what was trained and diverged: its rows may end anywhere.
    """
    if not path.exists():
        return "is missing"
    try:
        text = read_bytes(path).decode("utf-8")
        whole = text if upto == math.inf else text[: text.rfind("\n") + 1]
        rows = list(csv.DictReader(io.StringIO(whole), strict=True))
        return wrong_in([row for row in rows if float(row["step"]) <= upto], promise(config), upto, lost)
    except (Unreadable, UnicodeDecodeError, csv.Error) as error:
        return f"cannot be read ({' '.join(str(error).split())})"
    except (KeyError, ValueError, TypeError, AttributeError, ArithmeticError):
        # Of a stranger's run the config may be to blame, too.
        return "lacks a column, or has a row that is cut off or holds words in place of numbers"


def wrong_in(rows: Sequence[Row], promise: Promise, upto: float = math.inf, lost: Collection[str] = ()) -> str:
    """As `broken_promise`, of a curve's rows."""
    return _wrong_value(rows, promise) or _missing(rows, promise, upto, lost)


def _wrong_value(rows: Sequence[Row], promise: Promise) -> str:
    """The first value that the run cannot have written."""
    tasks = set(promise.tasks)
    for row in rows:
        where = f"of seed {row['seed']} at step {row['step']}"
        if int(row["seed"]) not in promise.seeds:
            return f"has rows {where}, which is none of the run's"
        for name in promise.numbers:
            if not (name in promise.may_lack and row[name] == "") and not math.isfinite(float(row[name])):
                return f"has {name}={row[name]} {where}"
        for name, values in promise.varying.items():
            if row[name] not in values:
                return f"has {name}={row[name]} {where}, where the run's is {_any_of(values)}"
        for name, value in promise.shared.items():
            if row[name] != value and not (isinstance(value, float) and float(row[name]) == value):
                return f"has {name}={row[name]} {where}, where the run's is {value}"
        if "trained_on" in promise.varying and _task(row) not in tasks:
            return f"has {_task(row)[1]} {where}, on which what was trained on {_task(row)[0]} is not evaluated"
    return ""


def _any_of(values: Collection[str]) -> str:
    named = list(values)[:MOST_NAMED]
    others = len(values) - len(named)
    return " or ".join(named) + (f", or one of {others} others" if others else "")


def _task(row: Row) -> Task:
    return row.get("trained_on") or "", evaluated_name(row["task"], row.get("context") or "")


def _missing(rows: Sequence[Row], promise: Promise, upto: float, lost: Collection[str]) -> str:
    """The first evaluation that is not there."""
    found: dict[tuple[Task, int, str], set[int]] = {}
    for row in rows:
        found.setdefault((_task(row), int(row["seed"]), row["split"]), set()).add(int(float(row["step"])))
    *inner, end = promise.steps
    for task in (each for each in promise.tasks if each[0] not in lost):
        for seed in promise.seeds:
            for split in promise.splits[:1] if task in promise.elsewhere else promise.splits:
                steps = found.get((task, seed, split), set())
                lacking = [step for step in inner if step <= upto and step not in steps]
                lacking += [end] if end <= upto and max(steps, default=-1) < end else []
                if lacking:
                    return f"lacks the evaluation of seed {seed} at step {lacking[0]} ({task[1]}, {split})"
    return ""
