"""Environments with DeepMind's interface (dm_env) as Gymnasium's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from lcd.envs.errors import InputError

NUMBERS = "fiub"
"""Kinds of dtypes that are numbers."""


class DmEnvironment(gymnasium.Env):
    """One environment of dm_env's: what it observes side by side in one vector, or an image as it is.

    An end with a discount above 0 is a time-out.
    """

    def __init__(self, make: Callable[[int], Any], seed_again: Callable[[Any, int], None] | None = None) -> None:
        """Make it.

        Args:
            make: from a seed to a dm_env.Environment.
            seed_again: gives one another seed; without it, a reset with a seed makes the environment anew.
        """
        self._make, self._seed_again = make, seed_again
        self.inside = make(0)
        self.action_space = space_of(self.inside.action_spec())
        self._observed = self.inside.observation_spec()
        self.observation_space = _whole(self._observed)
        self._image = self.observation_space.dtype == np.uint8

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        if seed is not None and self._seed_again is not None:
            self._seed_again(self.inside, seed)
        elif seed is not None:
            self.inside.close()
            self.inside = self._make(seed)
        return self._seen(self.inside.reset().observation), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step."""
        moment = self.inside.step(int(action) if isinstance(self.action_space, spaces.Discrete) else action)
        over, failed = moment.last(), moment.discount == 0
        reward = 0.0 if moment.reward is None else float(moment.reward)
        return self._seen(moment.observation), reward, bool(over and failed), bool(over and not failed), {}

    def close(self) -> None:
        """Close it."""
        self.inside.close()

    def _seen(self, observation: Any) -> np.ndarray:
        if self._image:
            return np.array(observation)
        return np.concatenate([np.ravel(np.asarray(part, np.float32)) for part in _parts(observation)])


def _parts(observed: Any) -> list[Any]:
    """Arrays, or specs of these, in a fixed order."""
    if isinstance(observed, Mapping):
        return [part for each in observed.values() for part in _parts(each)]
    if isinstance(observed, tuple | list):
        return [part for each in observed for part in _parts(each)]
    return [observed]


def _whole(spec: Any) -> spaces.Box:
    parts = _parts(spec)
    if len(parts) == 1 and parts[0].dtype == np.uint8 and len(parts[0].shape) == 3:
        return spaces.Box(0, 255, parts[0].shape, np.uint8)
    for part in parts:
        if np.dtype(part.dtype).kind not in NUMBERS:
            raise InputError(f"It observes '{part.name}' of {part.dtype}, which is no number.")
    low, high = ([np.ravel(end) for end in ends] for ends in zip(*(_bounds(part) for part in parts), strict=True))
    return spaces.Box(np.concatenate(low).astype(np.float32), np.concatenate(high).astype(np.float32))


def _bounds(spec: Any) -> tuple[np.ndarray, np.ndarray]:
    from dm_env import specs

    bounded = isinstance(spec, specs.BoundedArray)
    ends = (spec.minimum, spec.maximum) if bounded else (-np.inf, np.inf)
    return np.broadcast_to(ends[0], spec.shape), np.broadcast_to(ends[1], spec.shape)


def space_of(spec: Any) -> spaces.Space:
    """The space of actions that a spec tells of."""
    from dm_env import specs

    if isinstance(spec, specs.DiscreteArray):
        return spaces.Discrete(int(spec.num_values))
    if isinstance(spec, specs.Array) and np.dtype(spec.dtype).kind == "f":
        low, high = _bounds(spec)
        return spaces.Box(low.astype(np.float32), high.astype(np.float32))
    raise InputError(f"Its actions are {spec}: one number of some, or numbers with bounds, are needed.")
