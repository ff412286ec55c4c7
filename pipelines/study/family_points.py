"""Which points of a task's family a study trains."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from lcd.config.keys import show
from lcd.envs.errors import InputError, nearest
from lcd.envs.families.family import Family, Point, parse_point, point_name
from lcd.files.reading import Unreadable, read_bytes
from lcd.pipelines.study.family_written import FAMILY, MOST_POINTS, plain_point
from lcd.pipelines.study.point_choices import Chosen, choice_asked, choose, is_choice

ALL = "all"
POINTS = "study.points"
LARGEST_FILE = 64_000_000
"""Bytes of a file of points."""
FEW = 20
"""Points that a reader is told the names of."""

Points = dict[str, dict[str, float]]
"""What curves call a point → the point; the task itself is called by an empty text."""


def check_tasks(points: Any, tasks: Collection[str], where: str = POINTS) -> None:
    """Refuse points of tasks that are not trained.

    Args:
        points: a choice, or one for each task.
        tasks: those that are trained.
        where: the config key, for an error's sentence.
    """
    for name in points if isinstance(points, Mapping) and not is_choice(points) else ():
        if name not in tasks:
            raise InputError(f"{where}.{name}: '{name}' is no task that is trained here: {nearest(str(name), tasks)}")


def how_asked(points: Any, task: str, where: str = POINTS) -> tuple[Any, str]:
    """What is asked of one task's points (a choice, or one for each task), and the config key that says it."""
    if isinstance(points, Mapping) and not is_choice(points):
        return points.get(task), f"{where}.{task}"
    return points, where


def points_asked(
    points: Any, task: str, family: Family | None, chosen: Chosen | None = None, where: str = POINTS
) -> list[Points] | None:
    """What is trained of a task: the task itself and the points that are asked for; None: the task alone.

    Args:
        points: a choice, or one for each task.
        task: the task.
        family: the task's; None where it has none.
        chosen: what was chosen under a budget, where a budget is asked for.
        where: the config key, for an error's sentence.

    Returns:
        Points by round: those of one may share a run.
    """
    how, where = how_asked(points, task, where)
    if how is None:
        return None
    if family is None:
        fix = f"give {FAMILY}, or null" if where.startswith(POINTS) else "give a task that is one, or null"
        raise InputError(f"{where}={show(how)}: the task '{task}' is no point of a family; {fix}.")
    asked = None if chosen is not None else choice_asked(how, where)
    if chosen is None and asked is not None:
        chosen = choose(family, asked, where)
    rounds = [listed_points(family, how, where)] if chosen is None else chosen.points
    rounds[0] = [family.default, *rounds[0]]
    found: list[Points] = []
    for some in rounds:
        named = {family.context_of(point): plain_point(point) for point in some}
        found.append({name: point for name, point in named.items() if not any(name in each for each in found)})
    return [each for each in found if each]


def listed_points(family: Family, how: Any, where: str = POINTS) -> list[Point]:
    """Points of a family that somebody names.

    Args:
        family: the family.
        how: `all`; a list of points by their names or marks; or a CSV file with a column for each feature, whose rows
            are points.
        where: the config key, for an error's sentence.
    """
    if how == ALL:
        return list(family.points)
    if isinstance(how, str) and how.endswith(".csv"):
        return _of_file(family, Path(how).expanduser(), where)
    if isinstance(how, list) and how and all(isinstance(name, str) for name in how):
        return [_named(family, name, where) for name in how]
    raise InputError(
        f"{where}={show(how)} must be {ALL}, a number of points, a choice ({{choose: kmeans, budget: 40}}), a list of "
        "their names (['gravity=9.8,length=0.5']), or a CSV file."
    )


def _named(family: Family, name: str, where: str) -> Point:
    if name in family.marks:
        return family.points[family.marks[name]]
    parsed = parse_point(name)
    names = {point_name(point): point for point in family.points}
    plain = name if parsed is None else point_name(parsed)
    if plain not in names:
        known = [*family.marks, *names]
        options = nearest(plain, known) if len(known) <= FEW else f"one is {known[0]}."
        raise InputError(f"{where}: '{name}' is no point of the family: {options}")
    return names[plain]


def _of_file(family: Family, file: Path, where: str) -> list[Point]:
    try:
        reader = csv.DictReader(io.StringIO(read_bytes(file, LARGEST_FILE).decode("utf-8-sig")), strict=True)
        rows = list(islice(reader, MOST_POINTS + 1))
    except (Unreadable, UnicodeDecodeError, csv.Error) as why:
        raise InputError(f"{where}={file} cannot be read ({why}): give a CSV file of points.") from None
    if not rows or not set(family.features) <= set(rows[0]):
        raise InputError(f"{where}={file} must have rows, and the columns {', '.join(family.features)}.")
    if len(rows) > MOST_POINTS:
        raise InputError(f"{where}={file} has more than {MOST_POINTS:,} rows: give fewer points.")
    if repeated := [name for name in family.features if list(reader.fieldnames or ()).count(name) > 1]:
        raise InputError(f"{where}={file} has the column {repeated[0]} twice: leave one of them out.")
    found: list[Point] = []
    for number, row in enumerate(rows, start=1):
        try:
            point = {name: float(row[name]) for name in family.features}
        except (TypeError, ValueError):
            point = {}
        if None in row:
            raise InputError(f"{where}={file}: row {number} has more cells than there are columns.")
        if not point or not all(map(math.isfinite, point.values())):
            raise InputError(f"{where}={file}: row {number} has a feature that is no number.")
        found.append(point)
    return found
