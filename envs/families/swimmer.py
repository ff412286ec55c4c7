"""Swimmer: Gymnasium's `Swimmer-v5` with segments of other sizes, which is to reach a goal as soon as it can."""

from __future__ import annotations

from typing import Any, ClassVar
from xml.etree import ElementTree

import numpy as np

from lcd.envs.families.family import GENERIC, SIMPLIFIED, Family
from lcd.envs.families.features import Feature, defaults
from lcd.envs.families.mujoco_vector import MujocoFamilyVectorEnv
from lcd.envs.single import SingleCopy

FEATURES = tuple(Feature(segment, 0.1, 0.01, 0.45) for segment in ("a", "b", "c"))
"""The radii of the front, the middle and the back segment, in m; each segment is 1 m long."""

FAMILY = Family(
    tuple(
        dict(zip("abc", sizes, strict=True))
        for sizes in (
            (0.10, 0.10, 0.10),
            (0.15, 0.15, 0.15),
            (0.10, 0.15, 0.10),
            (0.05, 0.05, 0.05),
            (0.10, 0.1125, 0.10),
        )
    ),
    defaults(FEATURES),
    marks={SIMPLIFIED: 3, GENERIC: 4},
)
"""Table 3 of the paper on underspecified tasks; the default is Gymnasium's robot, its MDP 1."""

GOAL = 5.0
"""How far the robot's front is to come, in m. The paper does not tell its own distance."""


class SwimmerVectorEnv(MujocoFamilyVectorEnv):
    """Copies of the robot: −1 a step until it has come far enough, so that the return is minus the time it took."""

    features = FEATURES
    horizon = 5000
    model_file = "swimmer.xml"
    hidden = 2
    frame_skip = 4
    seen_from = (0, 1)

    def _describe(self, robot: ElementTree.Element, point: dict[str, float]) -> None:
        segments = [geom for geom in robot.iter("geom") if geom.get("type") == "capsule"]
        for segment, size in zip(segments, point.values(), strict=True):
            segment.set("size", repr(float(size)))

    def _first_speeds(self, copies: np.ndarray, count: int) -> np.ndarray:
        return self._uniform(copies, -0.1, 0.1, count)

    def _paid(self, before: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(self.num_envs, -1.0), self._rows[:, 0] >= GOAL


class SwimmerEnv(SingleCopy):
    """One robot."""

    vector_class = SwimmerVectorEnv
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 25}
