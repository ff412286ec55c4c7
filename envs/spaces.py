"""What spaces are of, and other ones for agents that know only one discrete action, or only numbered states."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from lcd.envs.errors import InputError
from lcd.envs.protocols import KnowsItsSeeds, OneHotStates, offers
from lcd.envs.state import keeps_state

STACKED_FRAMES = "stacked_frames"


def is_image(space: spaces.Space) -> bool:
    """Are observations bytes of (height, width) or (height, width, channels)?"""
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3)


def number_of_actions(space: spaces.Space) -> int:
    """How many elements a Discrete or MultiDiscrete space has."""
    return int(space.n) if isinstance(space, spaces.Discrete) else int(np.prod(space.nvec))


def is_one_hot(env: VectorEnv) -> bool:
    """Are observations one-hot vectors, one of each?"""
    inside, shape = env.unwrapped, env.single_observation_space.shape
    sizes = inside.one_hot_sizes if offers(inside, OneHotStates) else None
    return sizes is not None and tuple(sizes) == shape


def stacked_frames(env: VectorEnv) -> int:
    """Of how many frames of an episode an image is made, one a channel; 1 where the environment does not say so.

    It says so by `metadata["stacked_frames"]`: the newest frame is the last channel, and where an episode begins all
    of them are its first frame.
    """
    space, stacked = env.single_observation_space, env.metadata.get(STACKED_FRAMES, 1)
    return int(stacked) if is_image(space) and space.shape[2:] == (stacked,) else 1


class _Passing(VectorWrapper):
    """A wrapper without a state of its own."""

    def __init__(self, env: VectorEnv) -> None:
        super().__init__(env)
        self.num_seeds = env.num_seeds if offers(env, KnowsItsSeeds) else 1
        if keeps_state([env]):
            self.get_state, self.set_state = env.get_state, env.set_state


class FlatActions(_Passing):
    """MultiDiscrete actions as one Discrete space: action n stands for the n-th combination."""

    def __init__(self, env: VectorEnv) -> None:
        """Wrap a vector environment with MultiDiscrete actions."""
        super().__init__(env)
        if not isinstance(env.single_action_space, spaces.MultiDiscrete):
            raise InputError(f"The actions {env.single_action_space} are not several discrete ones.")
        self._sizes = tuple(int(n) for n in env.single_action_space.nvec)
        self.single_action_space = spaces.Discrete(int(np.prod(self._sizes)))
        self.action_space = batch_space(self.single_action_space, env.num_envs)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step by the combinations with these numbers."""
        return self.env.step(np.stack(np.unravel_index(np.asarray(actions), self._sizes), axis=1))


class NumberedStates(_Passing):
    """Observations as numbers, where they are numbers in disguise: the toy's one-hot vectors, or MultiDiscrete."""

    def __init__(self, env: VectorEnv) -> None:
        """Wrap Discrete or MultiDiscrete observations, or the discrete toy as `state`."""
        super().__init__(env)
        own = env.single_observation_space
        self._one_hot: tuple[int, ...] | None = None
        if isinstance(own, spaces.Discrete):
            self._sizes: tuple[int, ...] = (int(own.n),)
        elif isinstance(own, spaces.MultiDiscrete):
            self._sizes = tuple(int(n) for n in own.nvec)
        else:
            inside = env.unwrapped
            self._sizes = self._one_hot = (inside.one_hot_sizes if offers(inside, OneHotStates) else None) or ()
            if sum(self._sizes) != np.prod(own.shape):
                raise InputError(f"The observations {own} are not numbered states, which a tabular agent needs.")
        self.single_observation_space = spaces.Discrete(int(np.prod(self._sizes)))
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def reset(self, **arguments: Any) -> tuple[np.ndarray, dict[str, Any]]:
        """Reset."""
        observations, infos = self.env.reset(**arguments)
        return self._numbers(observations), infos

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        if "final_obs" in infos:
            final = infos["final_obs"]
            if final.dtype == object:
                final = np.stack(
                    [shown if last is None else last for last, shown in zip(final, observations, strict=True)]
                )
            infos = {**infos, "final_obs": self._numbers(final)}
        return self._numbers(observations), rewards, terminated, truncated, infos

    def _numbers(self, observations: np.ndarray) -> np.ndarray:
        if self._one_hot is not None:
            ends = np.cumsum(self._one_hot)[:-1]
            parts = [part.argmax(axis=1) for part in np.split(observations, ends, axis=1)]
        elif isinstance(self.env.single_observation_space, spaces.Discrete):
            return np.asarray(observations, dtype=np.int64) - int(self.env.single_observation_space.start)
        else:
            parts = list(np.asarray(observations).T)
        return np.ravel_multi_index(parts, self._sizes).astype(np.int64)
