"""What `lcd check` says: rows of pass, not judged, warn or fail, each with what was found and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["pass", "not judged", "warn", "fail"]
VERDICTS: tuple[Verdict, ...] = ("pass", "not judged", "warn", "fail")


@dataclass(frozen=True)
class Row:
    """One thing that was looked at.

    Attributes:
        check: what was looked at, in a word or two.
        verdict: `pass`, `not judged` (what was seen does not say), `warn` (works, with something to know) or `fail`
            (scores would be wrong, or nothing trains).
        found: what was found, in a sentence.
        fix: what to do about it; empty where nothing is to be done.
        task: of which task; empty: of the benchmark.
    """

    check: str
    verdict: Verdict
    found: str
    fix: str = ""
    task: str = ""


@dataclass(frozen=True)
class Summary:
    """What the tasks' rows of one check come to: those of the worst verdict, with the tasks that they are of."""

    check: str
    verdict: Verdict
    found: tuple[str, ...]
    fixes: tuple[str, ...]


CONTRACT = "contract"
MOST_TOLD = 3
"""Tasks whose findings are told in full, so that a benchmark of many still has one page."""
SETS_A_NUMBER = re.compile(r"(?P<key>[a-z_.]+)=(?P<number>\d+(\.\d+)?)(?P<rest>\D.*)?", re.DOTALL)
"""A fix that begins with a key and its number."""


def summed_up(rows: Sequence[Row]) -> list[Summary]:
    """One line a check, in the order in which they first came."""
    found, tasks = [], {row.task for row in rows if row.task}
    for check in dict.fromkeys(row.check for row in rows):
        mine = [row for row in rows if row.check == check]
        worst = worst_of(row.verdict for row in mine)
        told: dict[str, list[str]] = {}
        for row in (row for row in mine if row.verdict == worst):
            told.setdefault(row.found, []).append(row.task)
        lines = [_line(what, mine, tasks) for what, mine in told.items()]
        if len(lines) > MOST_TOLD:
            lines = [*lines[:MOST_TOLD], f"({len(lines) - MOST_TOLD} more: format=json)"]
        fixes = _with_one_number([row.fix for row in mine if row.verdict == worst and row.fix])
        found.append(Summary(check, worst, tuple(lines), tuple(fixes)[:MOST_TOLD]))
    return found


def _with_one_number(fixes: Sequence[str]) -> list[str]:
    """Each fix once, and of those that set one key, which all tasks share, the one with the largest number."""
    found: dict[str, tuple[float, str]] = {}
    for fix in fixes:
        number = SETS_A_NUMBER.fullmatch(fix)
        key, value = (number["key"], float(number["number"])) if number else (fix, 0.0)
        if key not in found or value > found[key][0]:
            found[key] = value, fix
    return [fix for _, fix in found.values()]


def _line(what: str, mine: Sequence[str], tasks: set[str]) -> str:
    """A finding with the tasks that it is of, where it is not of all."""
    if set(mine) in ({""}, tasks):
        return what
    return f"{', '.join(mine[:MOST_TOLD])}{' …' if len(mine) > MOST_TOLD else ''}: {what}"


def judged(rows: Iterable[Row]) -> list[Row]:
    """The rows that judge."""
    return [row for row in rows if row.verdict != "not judged"]


def not_judged(rows: Sequence[Row]) -> list[str]:
    """The checks of which nothing worse is known than that some task could not be judged."""
    return [line.check for line in summed_up(rows) if line.verdict == "not judged"]


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts; `pass` where there is none."""
    return max(verdicts, key=VERDICTS.index, default="pass")
