"""Time unit and action range of MuJoCo environments."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import TimeLimit

from lcd.envs.checks import is_number
from lcd.envs.errors import InputError

MOST_SIMULATED = 100_000
"""Simulation steps of one action, which takes some seconds then."""


class MujocoHardness(gymnasium.Wrapper, RecordConstructorArgs):
    """Multiplies the time between two actions and the range of actions.

    The time unit is changed by the number of simulation steps between two actions, never by the simulation's own
    time step. The horizon is divided by it, and rewards, which are paid per action, are multiplied by it: an episode
    keeps its length in seconds and the scale of its return. Beyond the original action range the simulation would
    clamp the controls, so its limits are widened too.
    """

    def __init__(self, env: gymnasium.Env, time_unit: float = 1.0, action_space_max: float = 1.0) -> None:
        """Change an environment's time unit and action range.

        Args:
            env: a Gymnasium MuJoCo environment.
            time_unit: factor of the time between two actions; the number of simulation steps must stay whole.
            action_space_max: factor of the action range.
        """
        RecordConstructorArgs.__init__(self, time_unit=time_unit, action_space_max=action_space_max)
        gymnasium.Wrapper.__init__(self, env)
        inside = env.unwrapped
        for name, value in (("time_unit", time_unit), ("action_space_max", action_space_max)):
            if not is_number(value) or not 0 < value < np.inf:
                raise InputError(f"{name} is {value!r}, but it must be a number above 0.")
            if not hasattr(inside, "model") or not hasattr(inside, "frame_skip"):
                raise InputError(f"{name} is {value}, but {env} is no MuJoCo environment of Gymnasium's.")
        self.time_unit = float(time_unit)
        skip = inside.frame_skip * time_unit
        if skip > MOST_SIMULATED or abs(skip - round(skip)) > 1e-9 or round(skip) < 1:
            raise InputError(
                f"time_unit is {time_unit}, but times the {inside.frame_skip} simulation steps of an action that is "
                f"{skip:g}, which must be a whole number from 1 to {MOST_SIMULATED}."
            )
        self._stretch(inside, round(skip))
        if action_space_max != 1:
            self._widen(inside, float(action_space_max))

    def _stretch(self, inside: Any, skip: int) -> None:
        inside.frame_skip = skip
        layer = self.env
        while isinstance(layer, gymnasium.Wrapper):
            if isinstance(layer, TimeLimit):
                layer._max_episode_steps = max(1, round(layer._max_episode_steps / self.time_unit))
            layer = layer.env

    def _widen(self, inside: Any, factor: float) -> None:
        own = self.env.action_space
        self.action_space = spaces.Box(own.low * factor, own.high * factor, dtype=own.dtype)
        if factor > 1:
            inside.model.actuator_ctrlrange[:] = inside.model.actuator_ctrlrange * factor

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step, with the reward of the time that has passed."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward) * self.time_unit, terminated, truncated, info


def jolt_state(inside: Any, jolts: np.ndarray) -> np.ndarray:
    """Add noise to a MuJoCo environment's positions and velocities; returns what is then observed."""
    positions = inside.data.qpos + jolts[: inside.model.nq]
    inside.set_state(positions, inside.data.qvel + jolts[inside.model.nq :])
    return inside._get_obs()
