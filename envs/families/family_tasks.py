"""The tasks that ship with a family: what simulates each, and the best return there is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lcd.envs.families import cartpole, half_cheetah, mountain_car, pendulum, quad, swimmer
from lcd.envs.families.family import Family
from lcd.envs.families.mujoco_vector import MujocoFamilyVectorEnv
from lcd.envs.families.point_vector import FamilyVectorEnv


@dataclass(frozen=True)
class Task:
    """A task with its family.

    Attributes:
        environment: what simulates it.
        family: the points of which it is one.
        best: the best mean return there is, or a bound of it that holds at every point; NaN where nobody knows one.
    """

    environment: type[FamilyVectorEnv]
    family: Family
    best: float

    @property
    def quick(self) -> bool:
        """Is a point measured in less than a second?"""
        return not issubclass(self.environment, MujocoFamilyVectorEnv)


TASKS: dict[str, Task] = {
    "families/cartpole": Task(cartpole.CartpoleVectorEnv, cartpole.FAMILY, 500.0),
    "families/cartpole-carl": Task(cartpole.CarlCartpoleVectorEnv, cartpole.FAMILY, 500.0),
    "families/pendulum": Task(pendulum.PendulumVectorEnv, pendulum.FAMILY, 0.0),
    "families/pendulum-five": Task(pendulum.SwingUpVectorEnv, pendulum.FIVE, 0.0),
    "families/mountain-car": Task(mountain_car.MountainCarVectorEnv, mountain_car.FAMILY, mountain_car.REACHED),
    "families/quad": Task(quad.QuadVectorEnv, quad.FAMILY, 1.0),
    "families/half-cheetah": Task(half_cheetah.HalfCheetahVectorEnv, half_cheetah.FAMILY, math.nan),
    "families/swimmer": Task(swimmer.SwimmerVectorEnv, swimmer.FAMILY, 0.0),
}
