"""A toy beside an environment: the irrelevant part of what is seen and done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from lcd.envs.errors import InputError
from lcd.envs.hardness.continuous import HardnessContinuousVectorEnv
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.spaces import is_image
from lcd.envs.state import State

_WITHOUT_END = {"terminal_state_density": 0.0}


class SideToy:
    """Appends a toy's observations and actions to those of an environment; it pays nothing and never ends."""

    def __init__(
        self,
        knobs: bool | Mapping[str, Any],
        observations: spaces.Space,
        actions: spaces.Space,
        copies: int,
        seed: int | Sequence[int],
    ) -> None:
        """Put a toy beside every copy of an environment.

        Args:
            knobs: the toy's own, or true for its defaults.
            observations: the environment's single observation space.
            actions: its single action space.
            copies: how many copies there are.
            seed: one seed, or one for each group of copies.
        """
        self._observations, self._actions = observations, actions
        own = dict(knobs) if isinstance(knobs, Mapping) else {}
        discrete = isinstance(actions, spaces.Discrete | spaces.MultiDiscrete)
        if not discrete and not (isinstance(actions, spaces.Box) and len(actions.shape) == 1):
            raise InputError(f"irrelevant_features cannot be added to the actions {actions}: a vector is needed.")
        view = "state"
        if is_image(observations):
            view, own["image_size"] = "semantic", observations.shape[0]
        kind = HardnessDiscreteVectorEnv if discrete else HardnessContinuousVectorEnv
        self.toy = kind(copies, view=view, seed=seed, **(_WITHOUT_END | own if discrete else own))
        self._width = 1 if isinstance(actions, spaces.Discrete) else len(actions.nvec if discrete else actions.low)
        self.observation_space, self.action_space = self._seen(), self._done()

    def _seen(self) -> spaces.Space:
        own, toy = self._observations, self.toy.single_observation_space
        if is_image(own):
            return spaces.Box(0, 255, (own.shape[0], own.shape[1] + toy.shape[1], *own.shape[2:]), np.uint8)
        if isinstance(own, spaces.Box) and len(own.shape) == 1:
            low, high = (np.concatenate([getattr(space, end) for space in (own, toy)]) for end in ("low", "high"))
            return spaces.Box(low.astype(own.dtype), high.astype(own.dtype), dtype=own.dtype)
        if isinstance(own, spaces.Discrete | spaces.MultiDiscrete) and isinstance(self.toy, HardnessDiscreteVectorEnv):
            return spaces.MultiDiscrete([*_sizes(own), self.toy.knobs.state_space_size])
        raise InputError(f"irrelevant_features cannot be added to the observations {own}: a vector or image is needed.")

    def _done(self) -> spaces.Space:
        own, toy = self._actions, self.toy.single_action_space
        if isinstance(toy, spaces.Box):
            low, high = (np.concatenate([getattr(space, end) for space in (own, toy)]) for end in ("low", "high"))
            return spaces.Box(low, high, dtype=own.dtype)
        return spaces.MultiDiscrete([*_sizes(own), *_sizes(toy)])

    def split(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The environment's part of the actions (copies, …) and the toy's."""
        own, toy = actions[:, : self._width], actions[:, self._width :]
        if isinstance(self._actions, spaces.Discrete):
            own = own[:, 0] + self._actions.start
        return own, toy[:, 0] if isinstance(self.toy.single_action_space, spaces.Discrete) else toy

    def join(self, observations: np.ndarray, toys: np.ndarray) -> np.ndarray:
        """Observations with the toys' appended."""
        if is_image(self._observations):
            channels = observations.shape[3:] or (1,)
            if channels != (3,):
                toys = np.repeat(toys.mean(axis=3, keepdims=True), channels[0], axis=3)
            return np.concatenate(
                [observations, toys.reshape(*toys.shape[:3], *observations.shape[3:])], axis=2
            ).astype(np.uint8)
        if isinstance(self._observations, spaces.Box):
            return np.concatenate([observations, toys], axis=1).astype(self._observations.dtype)
        if isinstance(self._observations, spaces.Discrete):
            observations = observations[:, None] - self._observations.start
        return np.concatenate([observations, toys.argmax(axis=1)[:, None]], axis=1)

    def get_state(self) -> State:
        """That of the toy."""
        return self.toy.get_state()

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        self.toy.set_state(state)


def _sizes(space: spaces.Discrete | spaces.MultiDiscrete) -> list[int]:
    return [int(space.n)] if isinstance(space, spaces.Discrete) else [int(n) for n in space.nvec]
