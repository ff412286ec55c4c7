"""The benchmark `families`: tasks that are one point each of a family of MDPs; features of the context are knobs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from lcd.envs.benchmarks import NativeBenchmark, check_task, check_view
from lcd.envs.errors import InputError
from lcd.envs.families import attributes, carl_contexts
from lcd.envs.families.family import Family, Point
from lcd.envs.families.family_tasks import TASKS
from lcd.envs.families.features import checked_point
from lcd.envs.families.mujoco_vector import MISSING
from lcd.envs.families.point_vector import VIEWS
from lcd.envs.families.random_returns import random_return

UNKNOWN = (math.nan, math.nan)


class TaskNames(Sequence[str]):
    """The tasks that ship with a family; but every environment of Gymnasium's and of CARL's is one, too."""

    def __getitem__(self, number: Any) -> Any:
        return tuple(TASKS)[number]

    def __len__(self) -> int:
        return len(TASKS)

    def __iter__(self) -> Iterator[str]:
        return iter(TASKS)

    def __contains__(self, name: object) -> bool:
        return name in TASKS or attributes.is_well_formed(str(name)) or carl_contexts.is_well_formed(str(name))


def _others(task: str) -> ModuleType:
    """What makes a task that is not ours."""
    return carl_contexts if carl_contexts.is_well_formed(task) else attributes


class FamiliesBenchmark(NativeBenchmark):
    """Tasks with the points of the paper on underspecified tasks; a task's own name is its default point.

    `families/gym:<id>` is any environment of Gymnasium's, whose knobs are numbers among its attributes, and
    `families/carl:<class>` one of CARL's, where CARL is installed, whose knobs are its context's features.
    """

    name = "families"
    tasks: Sequence[str] = TaskNames()
    views: Sequence[str] = VIEWS

    @property
    def about(self) -> Mapping[str, str]:
        """What there is to do, and how many points it is trained on."""
        return {name: f"{task.about}; {len(task.family.points)} points" for name, task in TASKS.items()}

    def family(self, task: str) -> Family | None:
        """The family of a task; None where only a study says what it is."""
        check_task(self, task)
        return TASKS[task].family if task in TASKS else None

    def features_of(self, task: str) -> Mapping[str, float]:
        """What a task's context may have other values of, each with the task's own."""
        check_task(self, task)
        return dict(TASKS[task].family.default) if task in TASKS else _others(task).numbers_of(task)

    def known_of_points(self, task: str, points: Sequence[Point]) -> np.ndarray:
        """(points, 1): what a random agent returns at each point; NaN of tasks that are not ours."""
        return np.array([self.reward_range(task, 0, **point)[:1] for point in points])

    def check_installed(self, task: str) -> None:
        """Refuse robots without MuJoCo."""
        if task in TASKS and not TASKS[task].quick and find_spec("mujoco") is None:
            raise InputError(MISSING)

    def check_knobs(self, task: str, knobs: Mapping[str, Any]) -> None:
        """Refuse features that the task does not have, or values that they cannot have."""
        check_task(self, task)
        if task in TASKS:
            checked_point(TASKS[task].environment.features, knobs)
        else:
            _others(task).check(task, knobs)

    def reward_range(self, task: str, seed: int, **knobs: Any) -> tuple[float, float]:
        """The mean return of a random agent at a point, and the best there is, or a bound of it; NaN where unknown."""
        self.check_knobs(task, knobs)
        if task not in TASKS:
            return UNKNOWN
        return random_return(task, checked_point(TASKS[task].environment.features, knobs)), TASKS[task].best

    def make_population(
        self, task: str, *, seeds: Sequence[int], copies: int, view: str, split: str, **knobs: Any
    ) -> VectorEnv:
        """Copies of one point for several seeds, in one environment."""
        return self.make_points(task, points=[{}], seeds=seeds, copies=copies, view=view, split=split, **knobs)

    def make_points(
        self,
        task: str,
        *,
        points: Sequence[Point],
        seeds: Sequence[int],
        copies: int,
        view: str,
        split: str,
        **knobs: Any,
    ) -> VectorEnv:
        """Copies of each seed of each point: points first, then seeds, then copies; features of a point beat knobs."""
        check_task(self, task)
        check_view(self, task, view)
        given = [{**knobs, **point} for point in points]
        if task not in TASKS:
            return _others(task).make(task, given, seeds, copies, split)
        environment = TASKS[task].environment
        whole = [checked_point(environment.features, point) for point in given]
        columns: dict[str, Any] = {name: np.repeat([point[name] for point in whole], len(seeds)) for name in whole[0]}
        population = list(seeds) * len(whole)
        return environment(len(population) * copies, view=view, split=split, seed=population, **columns)


FAMILIES = FamiliesBenchmark()
"""Classic control and more under many contexts: does what holds at one point hold of the family?"""
