"""`lcd/hardness-continuous-v0`: a point mass to be steered, all copies stepped together."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from lcd.envs.errors import InputError
from lcd.envs.hardness.base import ToyVectorEnv
from lcd.envs.hardness.discs import DiscRenderer
from lcd.envs.hardness.point import ALONG_A_LINE, TO_A_POINT, PointKnobs
from lcd.envs.native import IMAGE_VIEWS
from lcd.envs.single import SingleCopy

_MOST_TRIALS = 1000


class HardnessContinuousVectorEnv(ToyVectorEnv):
    """Copies of one point mass; the knobs are those of `PointKnobs`.

    Observed is the position. With `augmented_state=True` every step's `infos["augmented_state"]` has its derivatives,
    position first, and `infos["pending_rewards"]` what is still due: together they are Markov.
    """

    kept = ("derivatives", "trail", "distance")
    knobs: PointKnobs

    def _read_knobs(self, knobs: dict[str, Any]) -> PointKnobs:
        found = PointKnobs.from_dict(knobs)
        if self.view in IMAGE_VIEWS:
            halves = (len(found.relevant_indices), len(found.irrelevant_indices))
            if halves not in ((2, 0), (2, 2)):
                raise InputError(
                    f"view is {self.view!r}, but an image shows 2 relevant and 0 or 2 irrelevant dimensions, not "
                    f"{halves[0]} and {halves[1]} (state_space_dim, relevant_indices): choose the view 'state'."
                )
        return found

    @property
    def positions(self) -> np.ndarray:
        """Every copy's present position."""
        return self._derivatives[:, 0].copy()

    def _make(self) -> None:
        knobs = self.knobs
        dim, order = knobs.state_space_dim, knobs.transition_dynamics_order
        self._motion, self._inertia = knobs.motion(), np.array(knobs.inertia)
        self._relevant = list(knobs.relevant_indices)
        self._target = np.array(knobs.target_point)
        self._centres = np.array(knobs.terminal_states).reshape(-1, len(self._relevant))
        self._derivatives = np.zeros((self.num_envs, order, dim))
        self._trail = np.zeros((self.num_envs, knobs.sequence_length + 1, dim))
        self._distance = np.zeros(self.num_envs)
        self._before_distance = np.zeros(self.num_envs)
        self._renderer = None
        self.single_observation_space = spaces.Box(-knobs.state_space_max, knobs.state_space_max, (dim,), np.float32)
        if self.view in IMAGE_VIEWS:
            self._renderer = DiscRenderer(knobs, self.view)
            self.single_observation_space = spaces.Box(0, 255, self._renderer.shape, np.uint8)
        self.single_action_space = spaces.Box(-knobs.action_space_max, knobs.action_space_max, (dim,), np.float32)

    def _uses_functions(self) -> bool:
        return super()._uses_functions() or self.knobs.init_state_dist is not None

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        actions = np.asarray(actions)
        if actions.shape != self.action_space.shape or actions.dtype.kind not in "fiu":
            raise InputError(
                f"actions have the shape {actions.shape} and type {actions.dtype}, but {self.num_envs} copies need "
                f"{self.action_space.shape} numbers."
            )
        if not np.isfinite(actions).all():
            raise InputError("actions are not all finite, but each must be a number.")
        return actions.astype(np.float64).clip(-self.knobs.action_space_max, self.knobs.action_space_max)

    def _move(self, actions: np.ndarray) -> np.ndarray:
        most = self.knobs.state_space_max
        forced = np.concatenate([self._derivatives, (actions / self._inertia)[:, None, :]], axis=1)
        self._derivatives = self._motion @ forced
        position = self._derivatives[:, 0]
        position += self._noise(actions)
        out = np.abs(position).max(axis=1) > most
        if out.any():
            position[out] = position[out].clip(-most, most)
            self._derivatives[out, 1:] = 0.0
        self._trail[:, :-1] = self._trail[:, 1:]
        self._trail[:, -1] = position
        self._before_distance, self._distance = self._distance, self._from_target(position)
        return self._ends(position, self._distance)

    def _noise(self, actions: np.ndarray) -> np.ndarray | float:
        noise = self.knobs.transition_noise
        if callable(noise):
            before = self._trail[:, -1]
            return np.array([noise(before[n], actions[n], self._generators[n]) for n in range(self.num_envs)])
        if noise == 0:
            return 0.0
        return noise * self._streams["dynamics"].normal(count=self.knobs.state_space_dim)

    def _from_target(self, positions: np.ndarray) -> np.ndarray:
        return np.linalg.norm(positions[:, self._relevant] - self._target, axis=1)

    def _ends(self, positions: np.ndarray, distances: np.ndarray) -> np.ndarray:
        """Are these positions at the target or in a terminal region?"""
        ended = np.zeros(len(positions), dtype=bool)
        if self.knobs.reward_function == TO_A_POINT:
            ended |= distances < self.knobs.target_radius
        if len(self._centres):
            apart = np.abs(positions[:, None, self._relevant] - self._centres).max(axis=2)
            ended |= (apart <= self.knobs.term_state_edge / 2).any(axis=1)
        return ended

    def _earned(self, actions: np.ndarray) -> np.ndarray:
        knobs = self.knobs
        if knobs.reward_function != TO_A_POINT:
            earned = -_deviation(self._trail[:, :, self._relevant])
        elif knobs.make_denser:
            earned = self._before_distance - self._distance
        else:
            earned = (self._distance < knobs.target_radius).astype(np.float64)
        if knobs.reward_every_n_steps > 1 or knobs.sequence_length > 1:
            earned = earned * ((self._steps % knobs.reward_every_n_steps == 0) & (self._steps >= knobs.sequence_length))
        return earned

    def _penalty(self, actions: np.ndarray) -> np.ndarray | None:
        if self.knobs.action_loss_weight == 0:
            return None
        return self.knobs.action_loss_weight * np.linalg.norm(actions, axis=1)

    def _noise_arguments(self, actions: np.ndarray) -> tuple[Any, Any]:
        return self._trail[:, -2], actions

    def _start(self, rows: slice | np.ndarray, index: np.ndarray | None) -> None:
        copies = np.arange(self.num_envs) if index is None else index
        if self.knobs.init_state_dist is not None:
            positions = np.array(
                [self.knobs.init_state_dist(self._generators[copy]) for copy in copies.tolist()], dtype=np.float64
            )
            if positions.shape != (len(copies), self.knobs.state_space_dim):
                raise InputError(f"init_state_dist must give {self.knobs.state_space_dim} numbers.")
            positions = positions.clip(-self.knobs.state_space_max, self.knobs.state_space_max)
        else:
            positions = self._free_positions(copies)
        self._derivatives[rows] = 0.0
        self._derivatives[rows, 0] = positions
        self._trail[rows] = positions[:, None, :]
        self._distance[rows] = self._from_target(positions)

    def _free_positions(self, copies: np.ndarray) -> np.ndarray:
        """Uniform where no episode ends, by trying again."""
        most, dim = self.knobs.state_space_max, self.knobs.state_space_dim
        positions = np.zeros((len(copies), dim))
        left = np.arange(len(copies))
        for _ in range(_MOST_TRIALS):
            positions[left] = most * (2 * self._streams["dynamics"].uniform(copies[left], dim) - 1)
            left = left[self._ends(positions[left], self._from_target(positions[left]))]
            if not left.size:
                return positions
        raise InputError(
            f"target_radius is {self.knobs.target_radius} and term_state_edge is {self.knobs.term_state_edge}, but "
            "that leaves (almost) nowhere to start from."
        )

    def _observe(self, index: np.ndarray | None = None) -> np.ndarray:
        positions = self._derivatives[:, 0] if index is None else self._derivatives[index, 0]
        if self._renderer is None:
            return positions.astype(np.float32)
        return self._renderer.draw(positions)

    def _markov(self) -> dict[str, np.ndarray]:
        markov = {"augmented_state": self._derivatives.copy()}
        if self.knobs.delay:
            markov["pending_rewards"] = self._payment.pending()
        return markov

    def _pictures(self) -> np.ndarray:
        knobs, positions = self.knobs, self._derivatives[:, 0]
        if len(self._relevant) != 2 or len(knobs.irrelevant_indices) not in (0, 2):
            # What has no picture of its own shows the point in its first two dimensions.
            plane = PointKnobs(reward_function=ALONG_A_LINE, state_space_max=knobs.state_space_max)
            return DiscRenderer(plane, "pixels").draw(np.pad(positions, [(0, 0), (0, 1)])[:, :2])
        return DiscRenderer(knobs, "pixels").draw(positions)


def _deviation(points: np.ndarray) -> np.ndarray:
    """(copies, points, dimensions) -> mean distance of the points from the line nearest to them."""
    centred = points - points.mean(axis=1, keepdims=True)
    along = np.linalg.svd(centred, full_matrices=False)[2][:, 0]
    off = centred - (centred @ along[:, :, None]) * along[:, None, :]
    return np.linalg.norm(off, axis=2).mean(axis=1)


class HardnessContinuousEnv(SingleCopy):
    """One copy of the point mass."""

    vector_class = HardnessContinuousVectorEnv
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 4}
