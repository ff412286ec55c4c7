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
        about: what there is to do, in a line.
        environment: what simulates it.
        family: the points of which it is one.
        best: the best mean return there is, or a bound of it that holds at every point; NaN where nobody knows one.
    """

    about: str
    environment: type[FamilyVectorEnv]
    family: Family
    best: float

    @property
    def quick(self) -> bool:
        """Is a point measured in less than a second?"""
        return not issubclass(self.environment, MujocoFamilyVectorEnv)


TASKS: dict[str, Task] = {
    "families/cartpole": Task("balance a pole on a cart", cartpole.CartpoleVectorEnv, cartpole.FAMILY, 500.0),
    "families/cartpole-carl": Task(
        "balance a pole on a cart, with the physics of CARL", cartpole.CarlCartpoleVectorEnv, cartpole.FAMILY, 500.0
    ),
    "families/pendulum": Task(
        "swing a pendulum up with a weak motor", pendulum.PendulumVectorEnv, pendulum.FAMILY, 0.0
    ),
    "families/pendulum-five": Task("swing a pendulum up from hanging", pendulum.SwingUpVectorEnv, pendulum.FIVE, 0.0),
    "families/mountain-car": Task(
        "drive out of a valley with a weak motor",
        mountain_car.MountainCarVectorEnv,
        mountain_car.FAMILY,
        mountain_car.REACHED,
    ),
    "families/quad": Task("fly over one obstacle and below another", quad.QuadVectorEnv, quad.FAMILY, 1.0),
    "families/half-cheetah": Task(
        "run forward on two legs in a plane", half_cheetah.HalfCheetahVectorEnv, half_cheetah.FAMILY, math.nan
    ),
    "families/swimmer": Task("swim forward with three links", swimmer.SwimmerVectorEnv, swimmer.FAMILY, 0.0),
}
