"""Which points of a task's family a study trains: the family, as a benchmark or a study has it, and a choice of it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lcd.config.keys import show
from lcd.config.values import check_knob
from lcd.envs.benchmarks import Benchmark
from lcd.envs.errors import InputError, nearest
from lcd.envs.families.family import Family, Point, grid_family, parse_point, point_name
from lcd.envs.protocols import Families, KnowsFeatures, offers
from lcd.files.reading import Unreadable, read_bytes
from lcd.pipelines.study.point_choices import Chosen, choice_asked, choose, is_choice

ALL = "all"
POINTS, FAMILY = "study.points", "study.family"
MOST_POINTS = 100_000
"""Points of a grid that a study writes."""
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


def default_as_point(asked: Any, task: str, default: Point) -> str:
    """What curves would call a task's default if they did not call it the task itself; empty if it is no point.

    Args:
        asked: `study.family`, as a study's record has it.
        task: the task.
        default: its own point, as it was trained.
    """
    try:
        if task_of_family(asked) != task:
            return ""
        family = _written(asked, default, {})
    except InputError:
        return ""
    return point_name(default) if any(not family.context_of(point) for point in family.points) else ""


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
    return GYMNASIUM + asked["env"] if named == ["env"] else asked["task"]


def _written(asked: Mapping[str, Any], own: Point, features: Mapping[str, float]) -> Family:
    """The grid of a study's contexts around the task's own point.

    Args:
        asked: what the study says.
        own: the task's point in the benchmark's own family, all of whose features the points have; empty without one.
        features: what the task has where nobody says anything, as far as it is known.
    """
    contexts, default = asked["contexts"], asked.get("default") or {}
    if not isinstance(contexts, Mapping) or not contexts or not isinstance(default, Mapping):
        raise InputError(f"{FAMILY}.contexts={show(contexts)} must be a set of features, each with a list of values.")
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


def how_asked(points: Any, task: str) -> tuple[Any, str]:
    """What a study says of one task's points (a choice, or one for each task), and the config key that says it."""
    if isinstance(points, Mapping) and not is_choice(points):
        return points.get(task), f"{POINTS}.{task}"
    return points, POINTS


def points_asked(points: Any, task: str, family: Family | None, chosen: Chosen | None = None) -> list[Points] | None:
    """What a study trains of a task: the task itself and the points that it asks for; None: the task alone.

    Args:
        points: `study.points`: a choice, or one for each task.
        task: the task.
        family: the task's; None where it has none.
        chosen: what was chosen under a budget, where a budget is asked for.

    Returns:
        Points by round: those of one may share a run.
    """
    how, where = how_asked(points, task)
    if how is None:
        return None
    if family is None:
        raise InputError(f"{where}={show(how)}: the task '{task}' is no point of a family; give {FAMILY}, or null.")
    if (asked := choice_asked(how, where)) is not None:
        rounds = (chosen or choose(family, asked, where)).points
    else:
        rounds = [listed_points(family, how, where)]
    rounds[0] = [family.default, *rounds[0]]
    found: list[Points] = []
    for some in rounds:
        named = {family.context_of(point): {name: _plain(value) for name, value in point.items()} for point in some}
        found.append({name: point for name, point in named.items() if not any(name in each for each in found)})
    return [each for each in found if each]


def _plain(value: float) -> float:
    """A number as run configs have it: whole ones without a point, because some knobs take no others."""
    return int(value) if float(value).is_integer() else float(value)


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
        rows = list(csv.DictReader(io.StringIO(read_bytes(file).decode("utf-8-sig")), strict=True))
    except (Unreadable, UnicodeDecodeError, csv.Error) as why:
        raise InputError(f"{where}={file} cannot be read ({why}): give a CSV file of points.") from None
    if not rows or not set(family.features) <= set(rows[0]):
        raise InputError(f"{where}={file} must have rows, and the columns {', '.join(family.features)}.")
    found: list[Point] = []
    for number, row in enumerate(rows, start=1):
        try:
            point = {name: float(row[name]) for name in family.features}
        except (TypeError, ValueError):
            point = {}
        if not point or not all(map(math.isfinite, point.values())):
            raise InputError(f"{where}={file}: row {number} has a feature that is no number.")
        found.append(point)
    return found
