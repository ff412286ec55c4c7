"""Ranges of returns as a user gives them on the command line: task to (R_min, R_max), one by one or in a file."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from lcd.curves.table import Range
from lcd.envs.errors import InputError, nearest
from lcd.files.reading import Unreadable, not_plain, read_yaml


def ranges_from(given: str | Mapping[str, Any] | None, tasks: Collection[str]) -> dict[str, Range]:
    """The ranges that `ranges=FILE` or `ranges.TASK=[lo,hi]` give.

    Args:
        given: the file's path, or task to pair.
        tasks: what the curves evaluate (`lcd.curves.table.evaluated_names`), one of which each given range must be for;
            a file may have more.
    """
    content = _content(Path(given).expanduser()) if isinstance(given, str) else dict(given or {})
    unknown = [task for task in content if task not in tasks]
    if unknown and (not isinstance(given, str) or len(unknown) == len(content)):
        raise InputError(f"ranges: the curves have no task '{unknown[0]}': {nearest(str(unknown[0]), tasks)}")
    return {task: _pair(task, pair) for task, pair in content.items() if task in tasks}


def _content(file: Path) -> Mapping[str, Any]:
    try:
        content = read_yaml(file)
    except Unreadable as why:
        raise InputError(f"ranges={file} cannot be read ({why}): give a YAML or JSON file.") from None
    if not isinstance(content, Mapping) or not content:
        raise InputError(
            f"ranges={file} holds no ranges: give a YAML or JSON file with a line 'task: [lo, hi]' for each."
        )
    return content


def _pair(task: Any, pair: Any) -> Range:
    numbers = isinstance(pair, list | tuple) and all(type(bound) in (int, float) for bound in pair)
    if not numbers or len(pair) != 2 or not_plain(list(pair)) is not None:
        raise InputError(
            f"ranges.{task}={pair} must be two numbers: the returns of a random and of a perfect agent, [lo,hi]."
        )
    return float(pair[0]), float(pair[1])
