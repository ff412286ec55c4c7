"""The only copy of an environment, stepped in plain numbers: arrays of one entry would cost ten times as much."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any, ClassVar

import numpy as np

from lcd.envs.checks import checked_actions
from lcd.envs.state import State, nest, unnest
from lcd.envs.streams import LoneStream, Streams


class LoneCopy:
    """What a vector environment of one copy does, to the last bit, and as fast as one copy can be.

    Each has the state of its vector environment (but for what that draws pictures by), so that either can go on where
    the other is. Pictures are the vector environment's.
    """

    kept: ClassVar[tuple[str, ...]]
    """The numbers, or lists of numbers, whose attributes begin with `_`, under which the state has them."""

    def __init__(self, actions: int, streams: Mapping[str, Streams], **parts: Any) -> None:
        """Begin where the environment is.

        Args:
            actions: how many there are.
            streams: those of the environment that are drawn from.
            parts: what else has a state of its own, under its name there.
        """
        self._actions = actions
        self._streams = {name: LoneStream(stream) for name, stream in streams.items()}
        self._parts = {**self._streams, **parts}

    # What an environment has to say

    def _move(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        """One step, but for what is then seen: reward, terminated, truncated, infos."""
        raise NotImplementedError

    def _begin(self) -> None:
        """Start an episode, as `reset` does."""
        raise NotImplementedError

    def _observe(self) -> Any:
        """What the copy shows, as a fresh array."""
        raise NotImplementedError

    def _begin_again(self) -> None:
        """Start the episode after one that ended."""
        self._begin()

    # What they share

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step. The next episode begins with the end of one, as a vector environment's does."""
        reward, terminated, truncated, infos = self._move(action)
        observation = self._observe()
        if terminated or truncated:
            self._begin_again()
            self._observe()
        return observation, reward, terminated, truncated, infos

    def reset(self) -> Any:
        """Start an episode; returns what the copy shows."""
        self._begin()
        return self._observe()

    def _checked(self, action: Any) -> int:
        """The action as a plain number; refused as one of many copies' would be."""
        try:
            number = index(action)
        except TypeError:
            number = -1
        if 0 <= number < self._actions and action is not True and action is not False:
            return number
        return int(checked_actions(np.asarray(action)[None], 1, self._actions)[0])

    def get_state(self) -> State:
        """Everything that the future depends on, in the layout of the vector environment."""
        state = {name: np.array([getattr(self, f"_{name}")]) for name in self.kept}
        for name, part in self._parts.items():
            state |= nest(name, part.get_state())
        return state

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called, of this or of the vector environment."""
        for name in self.kept:
            setattr(self, f"_{name}", state[name][0].tolist())
        for name, part in self._parts.items():
            part.set_state(unnest(name, state))
