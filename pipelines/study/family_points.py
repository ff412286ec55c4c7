"""Which points of a task's family a study trains: the family, as a benchmark or a study has it, and a choice of it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lcd.config.keys import show
from lcd.config.values import check_knob
from lcd.envs.benchmarks import Benchmark
from lcd.envs.errors import InputError, nearest
from lcd.envs.families.family import Family, Point, grid_family, parse_point, point_name
from lcd.envs.protocols import Families, KnowsFeatures, offers
from lcd.files.reading import Unreadable, read_bytes

ALL = "all"
POINTS, FAMILY = "study.points", "study.family"
MOST_POINTS = 100_000
"""Points of a grid that a study writes."""
LARGEST_FILE = 64_000_000
"""Bytes of a file of points."""
FEW = 20
"""Points that a reader is told the names of."""
FAMILY_KEYS = ("env", "task", "contexts", "default")
GYMNASIUM = "families/gym:"
"""What a task of the benchmark `families` is called that is anybody's Gymnasium environment."""

Points = dict[str, dict[str, float]]
"""What curves call a point → the point; the task itself is called by an empty text."""


def family_of(benchmark: Benchmark, task: str, asked: Mapping[str, Any] | None = None) -> Family | None:
    """The family of a task: the one that a study writes (`study.family`), else the benchmark's; None without any."""
    own = benchmark.family(task) if offers(benchmark, Families) else None
    if asked is None:
        return own
    features = benchmark.features_of(task) if offers(benchmark, KnowsFeatures) else {}
    return _written(asked, {} if own is None else own.default, features)


def task_of_family(asked: Any) -> str:
    """The task whose family a study writes, checked to be one."""
    if not isinstance(asked, Mapping) or not {"contexts"} <= set(asked) <= {*FAMILY_KEYS}:
        wrong = [key for key in asked if key not in FAMILY_KEYS] if isinstance(asked, Mapping) else []
        told = f"'{wrong[0]}' is no part of a family: {nearest(str(wrong[0]), FAMILY_KEYS)}" if wrong else None
        raise InputError(
            f"{FAMILY}: {told}"
            if told
            else f"{FAMILY}={show(asked)} must have env or task, and contexts: {{env: CartPole-v1, contexts: "
            "{length: [0.5, 1]}}."
        )
    named = [key for key in ("env", "task") if asked.get(key) is not None]
    if len(named) != 1 or not isinstance(asked[named[0]], str) or not asked[named[0]]:
        raise InputError(f"{FAMILY} must name one env of Gymnasium's or one task: {{env: CartPole-v1, contexts: …}}.")
    task = GYMNASIUM + asked["env"] if named == ["env"] else asked["task"]
    if task.startswith(GYMNASIUM) and ":" in task.removeprefix(GYMNASIUM):
        raise InputError(
            f"{FAMILY}.{named[0]}={show(asked[named[0]])} must name an environment that is registered, and no module."
        )
    return task


def _written(asked: Mapping[str, Any], own: Point, features: Mapping[str, float]) -> Family:
    """The grid of a study's contexts around the task's own point.

    Args:
        asked: what the study says.
        own: the task's point in the benchmark's own family, all of whose features the points have; empty without one.
        features: what the task has where nobody says anything, as far as it is known.
    """
    contexts, default = asked["contexts"], {} if asked.get("default") is None else asked["default"]
    if not isinstance(contexts, Mapping) or not contexts:
        raise InputError(f"{FAMILY}.contexts={show(contexts)} must be a set of features, each with a list of values.")
    if not isinstance(default, Mapping):
        raise InputError(f"{FAMILY}.default={show(default)} must be a set of features, each with its value.")
    for name, values in contexts.items():
        where = f"{FAMILY}.contexts.{name}"
        check_knob(where, str(name))
        if not isinstance(values, list) or not values or not all(map(_is_number, values)) or _repeated(values):
            raise InputError(f"{where}={show(values)} must be a list of different numbers.")
    if math.prod(map(len, contexts.values())) > MOST_POINTS:
        raise InputError(f"{FAMILY}.contexts has more than {MOST_POINTS:,} combinations: give fewer values.")
    usual = {**own, **{name: features[name] for name in contexts if name in features}}
    for name, value in default.items():
        if name not in contexts or not _is_number(value):
            raise InputError(f"{FAMILY}.default.{name}={show(value)} must be a number for a feature of contexts.")
    for name in contexts:
        if features and name not in features:
            raise InputError(f"{FAMILY}.contexts: '{name}' is no feature of the task: {nearest(name, features)}")
        if name not in default and name not in usual:
            raise InputError(
                f"{FAMILY}.default has no {name}, and the task does not say its own: give {FAMILY}.default.{name}."
            )
    usual = {name: float(value) for name, value in {**usual, **default}.items()}
    values = {name: [float(value) for value in contexts.get(name, [usual[name]])] for name in usual}
    return grid_family(values, usual)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _repeated(values: list[Any]) -> bool:
    return len({float(value) for value in values}) < len(values)


def check_tasks(points: Any, tasks: Collection[str], where: str = POINTS) -> None:
    """Refuse points of tasks that are not trained.

    Args:
        points: a choice, or one for each task.
        tasks: those that are trained.
        where: the config key, for an error's sentence.
    """
    for name in points if isinstance(points, Mapping) else ():
        if name not in tasks:
            raise InputError(f"{where}.{name}: '{name}' is no task that is trained here: {nearest(str(name), tasks)}")


def points_asked(points: Any, task: str, family: Family | None, where: str = POINTS) -> Points | None:
    """What is trained of a task: the task itself and the points that are asked for; None: the task alone.

    Args:
        points: a choice, or one for each task.
        task: the task.
        family: the task's; None where it has none.
        where: the config key, for an error's sentence.
    """
    how = points
    if isinstance(points, Mapping):
        how, where = points.get(task), f"{where}.{task}"
    if how is None:
        return None
    if family is None:
        fix = f"give {FAMILY}, or null" if where.startswith(POINTS) else "give a task that is one, or null"
        raise InputError(f"{where}={show(how)}: the task '{task}' is no point of a family; {fix}.")
    chosen = [family.default, *choose_points(family, how, where)]
    return {family.context_of(point): {name: _plain(value) for name, value in point.items()} for point in chosen}


def _plain(value: float) -> float:
    """A number as run configs have it: whole ones without a point, because some knobs take no others."""
    return int(value) if float(value).is_integer() else float(value)


def choose_points(family: Family, how: Any, where: str = POINTS) -> list[Point]:
    """Some points of a family.

    Args:
        family: the family.
        how: `all`; a number of points, drawn by their distribution, the same ones whenever it is asked; a list of
            points by their names or marks; or a CSV file with a column for each feature, whose rows are points.
        where: the config key, for an error's sentence.
    """
    if how == ALL:
        return list(family.points)
    if isinstance(how, int) and not isinstance(how, bool) and how >= 1:
        return _drawn(family, how, where)
    if isinstance(how, str) and how.endswith(".csv"):
        return _of_file(family, Path(how).expanduser(), where)
    if isinstance(how, list) and how and all(isinstance(name, str) for name in how):
        return [_named(family, name, where) for name in how]
    raise InputError(
        f"{where}={show(how)} must be {ALL}, a number of points, a list of their names (['gravity=9.8,length=0.5']), "
        "or a CSV file."
    )


def _drawn(family: Family, count: int, where: str) -> list[Point]:
    possible = int(np.count_nonzero(family.distribution))
    if count > possible:
        raise InputError(f"{where}={count} is more than the {possible} points of the family: give {ALL}.")
    places = np.random.default_rng(0).choice(len(family.points), count, replace=False, p=family.distribution)
    return [family.points[place] for place in sorted(places)]


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
        rows = list(reader)
    except (Unreadable, UnicodeDecodeError, csv.Error) as why:
        raise InputError(f"{where}={file} cannot be read ({why}): give a CSV file of points.") from None
    if not rows or not set(family.features) <= set(rows[0]):
        raise InputError(f"{where}={file} must have rows, and the columns {', '.join(family.features)}.")
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
