"""The benchmark `families`: tasks that are one point each of a family of MDPs; features of the context are knobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from lcd.envs.benchmarks import NativeBenchmark, check_task
from lcd.envs.families import cartpole, half_cheetah, mountain_car, pendulum, quad, swimmer
from lcd.envs.families.family import Family, Point
from lcd.envs.families.features import checked_point
from lcd.envs.families.point_vector import VIEWS, FamilyVectorEnv

NAME = "families"


@dataclass(frozen=True)
class Task:
    """What simulates a task, the family that it is a point of, and the best return there is, or a bound of it."""

    environment: type[FamilyVectorEnv]
    family: Family
    best: float


TASKS: dict[str, Task] = {
    f"{NAME}/cartpole": Task(cartpole.CartpoleVectorEnv, cartpole.FAMILY, 500.0),
    f"{NAME}/cartpole-carl": Task(cartpole.CarlCartpoleVectorEnv, cartpole.FAMILY, 500.0),
    f"{NAME}/pendulum": Task(pendulum.PendulumVectorEnv, pendulum.FAMILY, 0.0),
    f"{NAME}/pendulum-five": Task(pendulum.SwingUpVectorEnv, pendulum.FIVE, 0.0),
    f"{NAME}/mountain-car": Task(mountain_car.MountainCarVectorEnv, mountain_car.FAMILY, mountain_car.REACHED),
    f"{NAME}/quad": Task(quad.QuadVectorEnv, quad.FAMILY, 1.0),
    f"{NAME}/half-cheetah": Task(half_cheetah.HalfCheetahVectorEnv, half_cheetah.FAMILY, math.nan),
    f"{NAME}/swimmer": Task(swimmer.SwimmerVectorEnv, swimmer.FAMILY, 0.0),
}


class FamiliesBenchmark(NativeBenchmark):
    """Tasks with the points of the paper on underspecified tasks; a task's own name is its default point."""

    name = NAME
    tasks: Sequence[str] = tuple(TASKS)
    views: Sequence[str] = VIEWS

    def family(self, task: str) -> Family | None:
        """The family of a task."""
        check_task(self, task)
        return TASKS[task].family

    def check_knobs(self, task: str, knobs: Mapping[str, Any]) -> None:
        """Refuse features that the task does not have, or values that they cannot have."""
        check_task(self, task)
        checked_point(TASKS[task].environment.features, knobs)

    def reward_range(self, task: str, seed: int, **knobs: Any) -> tuple[float, float]:
        """The mean return of a random agent at a point, and the best there is."""
        self.check_knobs(task, knobs)
        return math.nan, TASKS[task].best

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
        environment = TASKS[task].environment
        whole = [checked_point(environment.features, {**knobs, **point}) for point in points]
        columns: dict[str, Any] = {name: np.repeat([point[name] for point in whole], len(seeds)) for name in whole[0]}
        population = list(seeds) * len(whole)
        return environment(len(population) * copies, view=view, split=split, seed=population, **columns)


FAMILIES = FamiliesBenchmark()
"""Classic control and more under many contexts: does what holds at one point hold of the family?"""
