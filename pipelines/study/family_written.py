"""The family of a task: as its benchmark has it, or as a study writes it (`study.family`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from lcd.config.keys import show
from lcd.config.nested import flatten
from lcd.config.values import check_knob
from lcd.envs.benchmarks import Benchmark
from lcd.envs.errors import InputError, nearest
from lcd.envs.families.family import Family, Point, grid_family, point_name
from lcd.envs.protocols import Families, KnowsFeatures, offers

FAMILY = "study.family"
MOST_POINTS = 100_000
"""Points that a study writes: of a grid, or of a file."""
MOST_EXACT = 2.0**53
"""Whole numbers below are all numbers with a point, too."""
FAMILY_KEYS = ("env", "task", "contexts", "default")
BENCHMARK, CARL = "families/", "carl:"
GYMNASIUM = f"{BENCHMARK}gym:"
"""What a task of the benchmark `families` is called that is anybody's Gymnasium environment; CARL's say so."""


def family_of(benchmark: Benchmark, task: str, asked: Mapping[str, Any] | None = None) -> Family | None:
    """The family of a task: the one that a study writes (`study.family`), else the benchmark's; None without any."""
    own = benchmark.family(task) if offers(benchmark, Families) else None
    if asked is None:
        return own
    try:
        features = benchmark.features_of(task) if offers(benchmark, KnowsFeatures) else {}
    except InputError as why:
        raise InputError(f"{FAMILY}.{named_by(asked)[0]}: {why}") from None
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
    named = named_by(asked)
    if len(named) != 1 or not isinstance(asked[named[0]], str) or not asked[named[0]]:
        raise InputError(f"{FAMILY} must name one env of Gymnasium's or one task: {{env: CartPole-v1, contexts: …}}.")
    task = asked[named[0]]
    if named == ["env"]:
        task = BENCHMARK + task if task.startswith(CARL) else GYMNASIUM + task
    if task.startswith(GYMNASIUM) and ":" in task.removeprefix(GYMNASIUM):
        raise InputError(
            f"{FAMILY}.{named[0]}={show(asked[named[0]])} must name an environment that is registered, and no module."
        )
    return task


def check_written(asked: Mapping[str, Any], family: Family, check: Callable[[Point], None]) -> None:
    """Refuse values that the task cannot have, by the keys of the study that say them.

    Args:
        asked: what the study says.
        family: what it makes.
        check: refuses a point that cannot be made.
    """
    default = asked.get("default")
    _refuse(f"{FAMILY}.default={show(default)}" if default else FAMILY, family.default, check)
    for name, values in flatten(asked["contexts"]).items():
        for value in values:
            _refuse(f"{FAMILY}.contexts.{name}={show(values)}", {**family.default, name: value}, check)


def _refuse(where: str, point: Point, check: Callable[[Point], None]) -> None:
    try:
        check(plain_point(point))
    except InputError as why:
        raise InputError(f"{where}: {why}") from None


def plain_point(point: Point) -> dict[str, float]:
    """A point as run configs have it: whole numbers without a point, because some knobs take no others."""
    return {
        name: int(value) if float(value).is_integer() and abs(value) < MOST_EXACT else float(value)
        for name, value in point.items()
    }


def named_by(asked: Mapping[str, Any]) -> list[str]:
    """The keys of a study's family that say what its environment is: one, if all is well."""
    return [key for key in ("env", "task") if asked.get(key) is not None]


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
    contexts, default = flatten(contexts), flatten(default)
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
            raise InputError(f"{FAMILY}.contexts.{name} is no feature of the task: {nearest(name, features)}")
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
