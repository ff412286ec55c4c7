"""Pendulums: Gymnasium's `Pendulum-v1` in other contexts, and one that is to be swung up as soon as it can."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from lcd.envs.families.drawing import GREY, INK, RED, Canvas
from lcd.envs.families.family import GENERIC, SIMPLIFIED, Family, grid_family
from lcd.envs.families.features import Feature, defaults
from lcd.envs.families.point_vector import FamilyVectorEnv, as_rows
from lcd.envs.single import SingleCopy

FEATURES = (
    Feature("mass", 1.0, 0.001, 1000.0),
    Feature("length", 1.0, 0.01, 1000.0),
    Feature("gravity", 10.0, 0.0, 1000.0),
)
"""In kg, m, m/s²."""

FAMILY = grid_family(
    {"mass": (0.4, 1, 1.5, 2, 3, 4), "length": (0.5, 1, 2, 4, 7, 10), "gravity": (2, 5, 10, 12, 15)},
    defaults(FEATURES),
)
"""Table 5 of the paper on underspecified tasks."""

FIVE = Family(
    tuple(
        {"mass": mass, "length": length}
        for mass, length in ((1.0, 1.0), (1.5, 4.0), (1.875, 5.25), (2.0, 6.0), (3.0, 10.0))
    ),
    {"mass": 1.0, "length": 1.0},
    marks={SIMPLIFIED: 0, GENERIC: 2},
)
"""Table 3 of the paper on underspecified tasks."""

TIME_STEP = 0.05
MOST_SPEED = 8.0
MOST_TORQUE = 2.0


class PendulumVectorEnv(FamilyVectorEnv):
    """Copies of the pendulum; the state is its angle (0 is upright) and its angular speed."""

    features = FEATURES
    horizon = 200

    def _make(self) -> None:
        mass, length, gravity = (self.context[name] for name in ("mass", "length", "gravity"))
        self._fall = 3 * gravity / (2 * length)
        # Gymnasium multiplies a Python number by a torque of 32 bits, and NumPy 2 rounds the product to those.
        self._turn = (3.0 / (mass * length**2)).astype(np.float32)
        self._state = np.zeros((2, self.num_envs))
        high = np.array([1.0, 1.0, MOST_SPEED], np.float32)
        self.single_observation_space = spaces.Box(-high, high, dtype=np.float32)
        self.single_action_space = spaces.Box(-MOST_TORQUE, MOST_TORQUE, (1,), np.float32)

    def _start(self, copies: np.ndarray) -> np.ndarray:
        return np.array([[np.pi], [1.0]]) * self._uniform(copies, -1.0, 1.0, 2)

    def _move(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        torque = actions[:, 0].clip(-MOST_TORQUE, MOST_TORQUE)
        angle, speed = self._state
        costs = from_upright(angle) ** 2 + 0.1 * speed**2 + 0.001 * torque**2
        self._swing(torque)
        return -costs, np.zeros(self.num_envs, dtype=bool)

    def _swing(self, torque: np.ndarray) -> None:
        angle, speed = self._state[:2]
        speed += (self._fall * np.sin(angle) + self._turn * torque) * TIME_STEP
        np.clip(speed, -MOST_SPEED, MOST_SPEED, out=speed)
        angle += speed * TIME_STEP

    def _observe(self, index: np.ndarray | None = None) -> np.ndarray:
        angle, speed = self._state[:2] if index is None else self._state[:2, index]
        return as_rows((np.cos(angle), np.sin(angle), speed))

    def _pictures(self) -> np.ndarray:
        angle, length = self._state[0], self.context["length"]
        # Longer pendulums are drawn longer, but all fit into a picture.
        canvas = Canvas(self.num_envs, -1.1, 1.1, -1.1, 1.1)
        reach = 1.1 * length / (length + 1.0)
        canvas.disc((0.0, 0.0), reach, GREY)
        canvas.disc((0.0, 0.0), reach - 0.02, (245, 245, 245))
        canvas.rod((0.0, 0.0), (-reach * np.sin(angle), reach * np.cos(angle)), 0.05, RED)
        canvas.disc((0.0, 0.0), 0.03, INK)
        return canvas.pictures


def from_upright(angle: np.ndarray) -> np.ndarray:
    """The same angle between −π and π."""
    return ((angle + np.pi) % (2 * np.pi)) - np.pi


class SwingUpVectorEnv(PendulumVectorEnv):
    """Copies of a pendulum that hangs at first and is to be held upright: −1 a step until it has been for long enough.

    The return is minus the number of steps until then. An action is a share of the greatest torque. The third quantity
    of the state is for how many steps the pendulum has been upright.
    """

    TORQUE: ClassVar[float] = 80.0
    """In N m: it lifts four of the five pendulums at once, and swings up the longest within 200 steps."""
    WITHIN: ClassVar[float] = 0.25
    """Radians from upright that count as upright."""
    HELD: ClassVar[int] = 10
    """Steps for which the pendulum has to be upright, half a second."""

    def _make(self) -> None:
        super()._make()
        self._state = np.zeros((3, self.num_envs))
        self.single_action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def _start(self, copies: np.ndarray) -> np.ndarray:
        offsets = self._uniform(copies, -0.1, 0.1, 2)
        return np.stack([np.pi + offsets[0], offsets[1], np.zeros(len(copies))])

    def _move(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self._swing(np.float32(self.TORQUE) * actions[:, 0].clip(-1.0, 1.0))
        angle, _, held = self._state
        held[:] = np.where(np.abs(from_upright(angle)) <= self.WITHIN, held + 1, 0)
        return np.full(self.num_envs, -1.0), held >= self.HELD


class PendulumEnv(SingleCopy):
    """One pendulum."""

    vector_class = PendulumVectorEnv
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 20}


class SwingUpEnv(SingleCopy):
    """One pendulum that is to be swung up."""

    vector_class = SwingUpVectorEnv
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 20}
