"""Cartpole: a pole on a cart that is pushed left or right, as Gymnasium's `CartPole-v1` simulates it."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from lcd.envs.families.drawing import GREY, INK, RED, Canvas
from lcd.envs.families.family import grid_family
from lcd.envs.families.features import Feature, defaults
from lcd.envs.families.point_vector import UNBOUNDED, FamilyVectorEnv
from lcd.envs.single import SingleCopy

FEATURES = (
    Feature("length", 0.5, 0.001, 1000.0),
    Feature("masscart", 1.0, 0.001, 1000.0),
    Feature("masspole", 0.1, 0.001, 1000.0),
    Feature("force_mag", 10.0, 0.0, 10_000.0),
    Feature("gravity", 9.8, 0.0, 1000.0),
)
"""Half the pole's length in m, masses in kg, the force of a push in N, m/s²."""

FAMILY = grid_family(
    {
        "length": (0.05, 0.5, 3, 5),
        "masscart": (0.1, 1, 6, 10),
        "masspole": (0.01, 0.1, 0.5, 1),
        "force_mag": (1, 50, 100),
        "gravity": (0.1, 9.8, 19.6),
    },
    defaults(FEATURES),
)
"""Table 5 of the paper on underspecified tasks; its forces leave out the default's 10."""

TIME_STEP = 0.02
MOST_POSITION = 2.4
MOST_ANGLE = 12 * 2 * math.pi / 360
START = 0.05


class CartpoleVectorEnv(FamilyVectorEnv):
    """Copies of the cart and its pole; the state is position, speed, angle, angular speed.

    Observations have no bounds: a light cart that is pushed hard leaves Gymnasium's within one step.
    """

    features = FEATURES
    horizon = 500

    def _make(self) -> None:
        context = self.context
        self._total_mass, self._pole_moment = self._derived()
        self._forces = np.stack([-context["force_mag"], context["force_mag"]])
        self._copies = np.arange(self.num_envs)
        self._state = np.zeros((4, self.num_envs))
        self.single_observation_space = spaces.Box(-UNBOUNDED, UNBOUNDED, (4,), np.float32)
        self.single_action_space = spaces.Discrete(2)

    def _derived(self) -> tuple[np.ndarray, np.ndarray]:
        """The mass of cart and pole, and the pole's mass times its length."""
        context = self.context
        return context["masspole"] + context["masscart"], context["masspole"] * context["length"]

    def _start(self, copies: np.ndarray) -> np.ndarray:
        return self._uniform(copies, -START, START, 4)

    def _move(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        position, speed, angle, turning = self._state
        context, total, moment = self.context, self._total_mass, self._pole_moment
        cosine, sine = np.cos(angle), np.sin(angle)
        push = (self._forces[actions, self._copies] + moment * np.square(turning) * sine) / total
        inertia = context["length"] * (4.0 / 3.0 - context["masspole"] * np.square(cosine) / total)
        turning_change = (context["gravity"] * sine - cosine * push) / inertia
        speed_change = push - moment * turning_change * cosine / total
        # Each quantity moves by the other's value before the step, as in Gymnasium.
        position += TIME_STEP * speed
        speed += TIME_STEP * speed_change
        angle += TIME_STEP * turning
        turning += TIME_STEP * turning_change
        fallen = (np.abs(position) > MOST_POSITION) | (np.abs(angle) > MOST_ANGLE)
        return np.ones(self.num_envs), fallen

    def _pictures(self) -> np.ndarray:
        position, _, angle, _ = self._state
        pole = 2 * self.context["length"]
        # A pole that is longer than the track is drawn shorter, and thinner, than it is.
        drawn = np.minimum(pole, 2.0)
        canvas = Canvas(self.num_envs, -MOST_POSITION, MOST_POSITION, -0.6, 2.4)
        canvas.box(-MOST_POSITION, MOST_POSITION, -0.2, -0.17, GREY)
        canvas.box(position - 0.35, position + 0.35, -0.18, 0.1, INK)
        tip = position + drawn * np.sin(angle), drawn * np.cos(angle)
        canvas.rod((position, 0.0), tip, 0.08 * drawn / pole.clip(1.0), RED)
        return canvas.pictures


class CarlCartpoleVectorEnv(CartpoleVectorEnv):
    """Cartpoles as the CARL suite makes them: what Gymnasium derives of masses and length stays at the default's.

    There the cart's mass changes nothing, and of every four points that differ in it alone three are the same MDP.
    """

    def _derived(self) -> tuple[np.ndarray, np.ndarray]:
        own = defaults(FEATURES)
        total, moment = own["masspole"] + own["masscart"], own["masspole"] * own["length"]
        return np.full(self.num_envs, total), np.full(self.num_envs, moment)


class CartpoleEnv(SingleCopy):
    """One cart with its pole."""

    vector_class = CartpoleVectorEnv
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 50}


class CarlCartpoleEnv(SingleCopy):
    """One cart with its pole, as the CARL suite makes it."""

    vector_class = CarlCartpoleVectorEnv
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 50}
