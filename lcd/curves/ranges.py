"""Ranges of returns as a user gives them: task to (R_min, R_max), one by one, in a file, or by a name."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from lcd.curves.reading import read_csv
from lcd.curves.table import Range
from lcd.envs.benchmarks import registered_benchmark
from lcd.envs.errors import InputError, nearest
from lcd.envs.protocols import RangeSets, offers
from lcd.files.reading import Unreadable, not_plain, read_yaml

Sets = Mapping[str, Mapping[str, Range]]
"""Name → task → range."""


def range_sets(curves: pd.DataFrame) -> Sets:
    """The named ranges that the registered benchmarks of some curves know of their tasks."""
    found: dict[str, dict[str, Range]] = {}
    for name, tasks in curves.groupby("benchmark", observed=True)["task"].unique().items():
        benchmark = registered_benchmark(str(name))
        for one, ranges in (benchmark.range_sets if offers(benchmark, RangeSets) else {}).items():
            found.setdefault(one, {}).update({task: ranges[task] for task in tasks if task in ranges})
    return {name: ranges for name, ranges in found.items() if ranges}


def ranges_from(
    given: str | Mapping[str, Any] | None, tasks: Collection[str], named: Sets | None = None
) -> dict[str, Range]:
    """The ranges that `ranges=NAME`, `ranges=FILE` or `ranges.TASK=[lo,hi]` give.

    Args:
        given: a name of `named`, the file's path, or task to pair.
        tasks: what the curves evaluate (`lcd.curves.table.evaluated_names`), one of which each given range must be for;
            a file may have more.
        named: see `range_sets`.
    """
    if isinstance(given, str) and given in (named or {}):
        return dict((named or {})[given])
    if given is not None and not isinstance(given, str | Mapping):
        raise InputError(f"ranges={given!r} must be task: [R_min,R_max], or a file of these.")
    content = _content(given, named or {}) if isinstance(given, str) else dict(given or {})
    unknown = [task for task in content if task not in tasks]
    if unknown and (not isinstance(given, str) or len(unknown) == len(content)):
        raise InputError(f"ranges: the curves have no task '{unknown[0]}': {nearest(str(unknown[0]), tasks)}")
    return {task: _pair(task, pair) for task, pair in content.items() if task in tasks}


def _content(given: str, named: Sets) -> Mapping[str, Any]:
    file = Path(given).expanduser()
    if file.suffix == ".csv":
        return _measured(file)
    names = f", or the name of ranges that are known of these tasks: {', '.join(named)}" if named else ""
    try:
        content = read_yaml(file)
    except Unreadable as why:
        raise InputError(f"ranges={file} cannot be read ({why}): give a YAML, JSON or CSV file{names}.") from None
    if not isinstance(content, Mapping) or not content:
        raise InputError(
            f"ranges={file} holds no ranges: give a YAML or JSON file with a line 'task: [lo, hi]' for each."
        )
    return content


def _measured(file: Path) -> Mapping[str, Any]:
    """The ranges of a table as `lcd measure out=` leaves it."""
    table = read_csv(file, ["task"], ["r_min", "r_max"])
    lacking = [name for name in ("task", "r_min", "r_max") if name not in table]
    if lacking or table.empty:
        why = f"it has no {' and '.join(lacking) or 'rows'}; give the ranges.csv of lcd measure"
        raise InputError(f"ranges={file} holds no ranges: {why}.")
    twice = table["task"][table["task"].duplicated()]
    if len(twice):
        raise InputError(f"ranges={file} has the task '{twice.iloc[0]}' twice: give one range of each.")
    numbers = zip(table["r_min"].tolist(), table["r_max"].tolist(), strict=True)
    return dict(zip(table["task"].astype(str), map(list, numbers), strict=True))


def _pair(task: Any, pair: Any) -> Range:
    numbers = isinstance(pair, list | tuple) and all(type(bound) in (int, float) for bound in pair)
    if not numbers or len(pair) != 2 or not_plain(list(pair)) is not None:
        raise InputError(
            f"ranges.{task}={pair} must be two numbers: the returns of a random and of a perfect agent, [lo,hi]."
        )
    return float(pair[0]), float(pair[1])
