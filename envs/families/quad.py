"""The quadcopter: it flies on at a constant speed, and is to rise over one obstacle and sink below another.

The paper on underspecified tasks says what the task is and names five points, not the course; this one is ours.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from lcd.envs.families.drawing import BLUE, GREEN, GREY, INK, Canvas
from lcd.envs.families.family import GENERIC, SIMPLIFIED, Family
from lcd.envs.families.features import Feature, defaults
from lcd.envs.families.point_vector import FamilyVectorEnv
from lcd.envs.single import SingleCopy

FEATURES = (Feature("upper", 0.625, 0.0, 10.0), Feature("lower", 4.0, 0.0, 8.0))
"""How long each obstacle is along the course, in m; one of length 0 is not there."""

FAMILY = Family(
    tuple(
        {"upper": upper, "lower": lower}
        for upper, lower in ((0.0, 6.0), (0.5, 3.0), (0.625, 4.0), (1.0, 2.0), (1.0, 5.0))
    ),
    defaults(FEATURES),
    marks={SIMPLIFIED: 0, GENERIC: 2},
)
"""Table 3 of the paper on underspecified tasks; the default is the generic point."""

TIME_STEP = 0.05
FORWARD = 4.0
"""Speed along the course, m/s."""
STEPS = 150
COURSE = STEPS * TIME_STEP * FORWARD
"""Its length: 30 m."""
CEILING = 10.0
ACCELERATION = 10.0
"""The greatest vertical one, gravity taken off, m/s²."""
LOWER_AT, LOWER_TOP = 10.0, 6.0
"""Where the lower obstacle begins, and how high it is."""
UPPER_AT, UPPER_BOTTOM = 18.0, 4.0
"""Where the upper obstacle begins, and how far down it hangs."""


class QuadVectorEnv(FamilyVectorEnv):
    """Copies of the quadcopter; the state is the distance flown, the height and the vertical speed.

    The return is the share of the course that was flown before a crash: with an obstacle, the floor or the ceiling.
    Observed are all three as shares of the course, of the ceiling's height and of 10 m/s.
    """

    features = FEATURES
    horizon = STEPS

    def _make(self) -> None:
        self._lower_end = LOWER_AT + self.context["lower"]
        self._upper_end = UPPER_AT + self.context["upper"]
        self._state = np.zeros((3, self.num_envs))
        most = ACCELERATION * STEPS * TIME_STEP
        low, high = np.array([[0.0, -1.0, -most / 10], [1.0, 2.0, most / 10]], np.float32)
        self._scale = np.array([[COURSE], [CEILING], [10.0]])
        self.single_observation_space = spaces.Box(low, high, dtype=np.float32)
        self.single_action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def _start(self, copies: np.ndarray) -> np.ndarray:
        offset = self._uniform(copies, -0.25, 0.25, 1)[0]
        return np.stack([np.zeros(len(copies)), CEILING / 2 + offset, np.zeros(len(copies))])

    def _move(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        distance, height, speed = self._state
        speed += ACCELERATION * TIME_STEP * actions[:, 0].clip(-1.0, 1.0).astype(np.float64)
        height += TIME_STEP * speed
        distance[:] = COURSE / STEPS * (self._steps + 1)
        in_lower = (distance >= LOWER_AT) & (distance < self._lower_end) & (height < LOWER_TOP)
        in_upper = (distance >= UPPER_AT) & (distance < self._upper_end) & (height > UPPER_BOTTOM)
        crashed = in_lower | in_upper | (height < 0) | (height > CEILING)
        arrived = self._steps + 1 >= STEPS
        return np.where(crashed, 0.0, 1.0 / STEPS), crashed | arrived

    def _observe(self, index: np.ndarray | None = None) -> np.ndarray:
        state = self._state if index is None else self._state[:, index]
        return np.ascontiguousarray((state / self._scale).T, dtype=np.float32)

    def _pictures(self) -> np.ndarray:
        distance, height, _ = self._state
        canvas = Canvas(self.num_envs, -0.5, COURSE + 0.5, -0.5, CEILING + 0.5)
        canvas.box(-0.5, COURSE + 0.5, -0.5, 0.0, INK)
        canvas.box(-0.5, COURSE + 0.5, CEILING, CEILING + 0.5, INK)
        canvas.box(LOWER_AT, self._lower_end, 0.0, LOWER_TOP * (self.context["lower"] > 0), GREY)
        canvas.box(UPPER_AT, self._upper_end, UPPER_BOTTOM, np.where(self.context["upper"] > 0, CEILING, 0.0), GREY)
        canvas.rod((COURSE, 0.0), (COURSE, CEILING), 0.1, GREEN)
        canvas.rod((distance - 0.8, height), (distance + 0.8, height), 0.3, BLUE)
        return canvas.pictures


class QuadEnv(SingleCopy):
    """One quadcopter."""

    vector_class = QuadVectorEnv
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 20}
