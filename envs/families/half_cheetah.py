"""Half-cheetah: Gymnasium's `HalfCheetah-v5` under other gravities, torso masses and frictions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from lcd.envs.families.family import grid_family
from lcd.envs.families.features import Feature, defaults
from lcd.envs.families.mujoco_vector import MujocoFamilyVectorEnv
from lcd.envs.single import SingleCopy

FEATURES = (
    Feature("gravity", -9.8, -100.0, 0.0),
    Feature("torso_mass", 9.457, 0.01, 1000.0),
    Feature("friction", 0.6, 0.0, 10.0),
)

FAMILY = grid_family(
    {
        "gravity": (-2, -5, -9.8, -12, -15),
        "torso_mass": (0.5, 2, 5, 9.457, 12, 15),
        "friction": (0.1, 0.3, 0.6, 1.0),
    },
    defaults(FEATURES),
)
"""Table 5 of the paper on underspecified tasks; the default is Brax's, of which the paper speaks, not Gymnasium's."""

EFFORT = 0.1


class HalfCheetahVectorEnv(MujocoFamilyVectorEnv):
    """Copies of the robot; a torso of another mass is one of another density, and friction is that of all surfaces."""

    features = FEATURES
    horizon = 1000
    model_file = "half_cheetah.xml"
    hidden = 1
    frame_skip = 5
    seen_from = (0, 2)

    def _adjust(self, model: Any, point: dict[str, float]) -> None:
        model.opt.gravity[2] = point["gravity"]
        torso = model.body("torso").id
        model.body_inertia[torso] *= point["torso_mass"] / model.body_mass[torso]
        model.body_mass[torso] = point["torso_mass"]
        model.geom_friction[:, 0] = point["friction"]

    def _first_speeds(self, copies: np.ndarray, count: int) -> np.ndarray:
        return 0.1 * self._streams["dynamics"].normal(copies, count).T

    def _paid(self, before: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        speeds = (self._rows[:, 0] - before[:, 0]) / self._seconds
        efforts = EFFORT * np.square(actions).sum(axis=1)
        return speeds - efforts, np.zeros(self.num_envs, dtype=bool)


class HalfCheetahEnv(SingleCopy):
    """One robot."""

    vector_class = HalfCheetahVectorEnv
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 20}
