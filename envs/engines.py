"""Copies of other people's single environments, each seeded for itself, as one vector environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation, TransformObservation

from lcd.envs.spaces import STACKED_FRAMES
from lcd.envs.streams import seed_sequence

FRAMES_A_STEP = 4
"""Frames of an Atari game that an action lasts."""
FRAMES_SHOWN = 4
"""Those that are seen at once, one a channel."""


def seeds_of_copies(seeds: Sequence[int], copies: int, split: str) -> list[int]:
    """What each copy of each seed is reset with at first."""
    return [
        int(number)
        for seed in seeds
        for number in seed_sequence(seed, "environment", "train" if split == "train" else "eval").generate_state(copies)
    ]


class SeededCopies(VectorWrapper):
    """Single environments stepped one after the other; the first reset seeds every copy for itself."""

    def __init__(self, makers: Sequence[Callable[[], gymnasium.Env]], seeds: Sequence[int]) -> None:
        """Make the copies.

        Args:
            makers: what makes each copy.
            seeds: one for each copy.
        """
        super().__init__(SyncVectorEnv(list(makers), autoreset_mode=AutoresetMode.SAME_STEP))
        self._first_seeds: list[int] | None = list(seeds)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset; one seed a group of copies becomes one a copy."""
        self.env.envs = [env.env if isinstance(env, Resting) else env for env in self.env.envs]
        if seed is None:
            seed, self._first_seeds = self._first_seeds, None
        elif not isinstance(seed, int) and len(seed) < self.num_envs:
            each = self.num_envs // len(seed)
            seed = [int(n) for s in seed for n in seed_sequence(int(s)).generate_state(each)]
        self._observations, infos = self.env.reset(seed=seed, options=options)
        return self._observations, infos

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all that do not rest."""
        self._observations, *told = self.env.step(actions)
        return self._observations, *told

    def rest(self, copies: np.ndarray) -> None:
        """Leave out these copies until the next reset."""
        for copy in np.flatnonzero(copies).tolist():
            if not isinstance(self.env.envs[copy], Resting):
                self.env.envs[copy] = Resting(self.env.envs[copy], self._observations[copy])


class Resting(gymnasium.Wrapper):
    """A single environment in which nothing happens."""

    def __init__(self, env: gymnasium.Env, observation: Any) -> None:
        """Let it go on showing an observation."""
        super().__init__(env)
        self.observation = observation

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Nothing."""
        return self.observation, 0.0, False, False, {}


def atari(game: str) -> gymnasium.Env:
    """A game of Atari's as it is usually learned: 84 × 84 grey pixels, four frames as channels, four skipped."""
    env = gymnasium.make(f"ale_py:ALE/{game}-v5", frameskip=1, repeat_action_probability=0.0)
    stacked = FrameStackObservation(AtariPreprocessing(env, noop_max=1, frame_skip=FRAMES_A_STEP), FRAMES_SHOWN)
    last = gymnasium.spaces.Box(0, 255, (84, 84, FRAMES_SHOWN), np.uint8)
    game_in_stacks = TransformObservation(stacked, lambda frames: np.moveaxis(np.asarray(frames), 0, -1), last)
    game_in_stacks.metadata = {**game_in_stacks.metadata, STACKED_FRAMES: FRAMES_SHOWN}
    return game_in_stacks
