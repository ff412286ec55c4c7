"""Mountain car: an engine too weak for the hill, as Gymnasium's `MountainCarContinuous-v0` simulates it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from lcd.envs.families.drawing import BLUE, GREEN, GREY, Canvas
from lcd.envs.families.family import grid_family
from lcd.envs.families.features import Feature, defaults
from lcd.envs.families.point_vector import FamilyVectorEnv
from lcd.envs.single import SingleCopy

FEATURES = (
    Feature("max_speed", 0.07, 0.001, 1.0),
    Feature("goal_position", 0.45, -0.3, 0.6),
    Feature("power", 0.0015, 0.0, 1.0),
)

FAMILY = grid_family(
    {
        "max_speed": (0.05, 0.07, 0.1),
        "goal_position": (0.35, 0.45, 0.55),
        "power": (0.001, 0.0015, 0.002, 0.003),
    },
    defaults(FEATURES),
)
"""The paper on underspecified tasks names these three features (appendix G), but not their values: these are ours."""

LEFT, RIGHT = -1.2, 0.6
SLOPE = 0.0025
REACHED = 100.0
EFFORT = 0.1


class MountainCarVectorEnv(FamilyVectorEnv):
    """Copies of the car; the state is position and speed, of 32 bits as in Gymnasium."""

    features = FEATURES
    horizon = 999
    state_type = np.float32

    def _make(self) -> None:
        self._most, self._goal, self._power = (
            self.context[name].astype(np.float32) for name in ("max_speed", "goal_position", "power")
        )
        self._state = np.zeros((2, self.num_envs), np.float32)
        most = next(feature.high for feature in FEATURES if feature.name == "max_speed")
        low, high = np.array([[LEFT, -most], [RIGHT, most]], np.float32)
        self.single_observation_space = spaces.Box(low, high, dtype=np.float32)
        self.single_action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def _start(self, copies: np.ndarray) -> np.ndarray:
        return np.stack([self._uniform(copies, -0.6, -0.4, 1)[0], np.zeros(len(copies))])

    def _move(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        position, speed = self._state
        pulled = (SLOPE * np.cos((3 * position).astype(np.float64))).astype(np.float32)
        speed += actions[:, 0].clip(-1.0, 1.0) * self._power - pulled
        np.clip(speed, -self._most, self._most, out=speed)
        position += speed
        np.clip(position, np.float32(LEFT), np.float32(RIGHT), out=position)
        speed[(position == np.float32(LEFT)) & (speed < 0)] = 0
        reached = (position >= self._goal) & (speed >= 0)
        return REACHED * reached - EFFORT * actions[:, 0].astype(np.float64) ** 2, reached

    def _pictures(self) -> np.ndarray:
        position, goal = self._state[0], self._goal
        canvas = Canvas(self.num_envs, LEFT, RIGHT, -0.05, 1.25)
        canvas.below(height, GREY)
        canvas.rod((goal, height(goal)), (goal, height(goal) + 0.2), 0.01, GREEN)
        canvas.disc((position, height(position) + 0.05), 0.05, BLUE)
        return canvas.pictures


def height(position: np.ndarray) -> np.ndarray:
    """How high the hill is, for pictures."""
    return np.sin(3 * position) * 0.45 + 0.55


class MountainCarEnv(SingleCopy):
    """One car."""

    vector_class = MountainCarVectorEnv
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 30}
