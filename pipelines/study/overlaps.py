"""What a study refuses to train beside what it holds: the same condition and seed twice, but for more steps."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lcd.envs.errors import InputError
from lcd.files.reading import open_regular
from lcd.pipelines.kinds.kind import CURVE_FILE
from lcd.pipelines.study import sources
from lcd.pipelines.study.configs import canonical, difference
from lcd.pipelines.study.longer import is_longer
from lcd.pipelines.study.members import ITSELF

if TYPE_CHECKING:
    from lcd.pipelines.study.configs import RunConfig
    from lcd.pipelines.study.store import Run


def refuse_overlaps(study: Path, new: Iterable[Run], every: Iterable[Run]) -> None:
    """As `refuse_overlap`, of new runs beside all: each is compared with those alone that are of its condition."""
    alike: dict[str, list[Run]] = {}
    for run in every:
        alike.setdefault(_likeness(run), []).append(run)
    for run in new:
        refuse_overlap(study, run, alike[_likeness(run)])


def _likeness(run: Run) -> str:
    """What runs have in common that might overlap: all of a condition but the name of its benchmark."""
    condition = run.kind.condition
    if condition is None:
        return run.path.name
    return canonical([run.config["kind"], {**condition(run.config), "benchmark": None}])


def refuse_overlap(study: Path, run: Run, others: Iterable[Run]) -> None:
    """The same (condition, seed) twice would be counted as two seeds, or mix two protocols in one curve."""
    condition, asked = run.kind.condition, cast("Mapping[str, Any]", run.config)
    if condition is None:
        return
    for other in others:
        if other.config["kind"] != run.config["kind"]:
            continue
        shared = _shared_seeds(run, other)
        if condition(other.config) == condition(run.config) and _curriculum(other) != _curriculum(run):
            raise InputError(
                f"The study {study} already has another curriculum called '{asked['task']}' (run "
                f"{other.path.name}): give this one a name of its own, or train it into another folder with out=."
            )
        if shared and _differ_in_benchmark_alone(condition(other.config), condition(run.config)):
            _refuse_namesake(study, run, other, shared)
        if is_longer(asked, other.config):
            continue
        if other.path != run.path and shared and condition(other.config) == condition(run.config):
            if told := sources.difference(other.config, run.config):
                raise InputError(
                    f"{told} since run {other.path.name} of the study {study} was trained: put the source back "
                    "as it was, or train the new one into another folder with out=."
                )
            raise InputError(
                f"The study {study} already has seeds {shared} of ({run.label}), trained otherwise (run "
                f"{other.path.name}): {difference(other.config, run.config)}. Give the study's own, seeds that it "
                "does not have, or another folder with out=."
            )


def _shared_seeds(run: Run, other: Run) -> list[int]:
    """The seeds that two runs train on a point of both; a run without points trains the task as it is."""
    mine, others = (set(cast("RunConfig", each.config).get("points", ITSELF)) for each in (run, other))
    if not mine & others:
        return []
    return sorted({*other.config["seeds"]} & {*run.config["seeds"]})


def _refuse_namesake(study: Path, run: Run, other: Run, shared: list[int]) -> None:
    """Curves know a benchmark by what it calls itself: two of one name would be counted as one."""
    from lcd.envs.benchmarks import get_benchmark

    asked, there = (cast("Mapping[str, Any]", each.config)["benchmark"] for each in (run, other))
    name = get_benchmark(asked).name
    if _benchmark_told(other) in (name, None):
        raise InputError(
            f"The study {study} already has seeds {shared} of ({other.label}), trained with benchmark={there} "
            f"(run {other.path.name}), and benchmark={asked} calls itself '{name}' as that does: give benchmark="
            f"{there}, or train the new one into another folder with out=."
        )


def _curriculum(run: Run) -> Any:
    return run.config.get("curriculum")


def _differ_in_benchmark_alone(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    differing = [key for key in {*one, *other} if one.get(key) != other.get(key)]
    return differing == ["benchmark"]


def _benchmark_told(run: Run) -> str | None:
    """What a run's curve calls its benchmark; None where it has no rows yet."""
    with contextlib.suppress(OSError, ValueError, csv.Error):
        with open_regular(run.path / CURVE_FILE) as file:
            row = next(csv.DictReader(io.TextIOWrapper(file, "utf-8", newline="")), {})
        return row.get("benchmark")
    return None
