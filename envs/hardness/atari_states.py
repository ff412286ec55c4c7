"""Copies of an Atari game that can be put back to any moment, for who looks ahead: the emulator keeps its state."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lcd.envs.engines import FRAMES_A_STEP, atari
from lcd.envs.state import State

_RAM = gymnasium.spaces.Box(0, 255, (128,), np.uint8)


class AtariStates(VectorEnv):
    """Copies that are all in the same episode, as `engines.atari` plays it; they show their memory, 128 bytes."""

    metadata = {"autoreset_mode": AutoresetMode.DISABLED}

    def __init__(self, game: str, copies: int, seed: int) -> None:
        """Start the emulators.

        Args:
            game: as the Arcade Learning Environment calls it (`Breakout`).
            copies: how many.
            seed: of the emulators.
        """
        self._games = [atari(game) for _ in range(copies)]
        self.num_envs, self._seed = copies, seed
        self.single_action_space, self.single_observation_space = self._games[0].action_space, _RAM
        self.action_space, self.observation_space = (
            batch_space(space, copies) for space in (self.single_action_space, _RAM)
        )
        self._emulators: list[Any] = [game.get_wrapper_attr("ale") for game in self._games]
        self._actions = self._emulators[0].getMinimalActionSet()

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Put all copies at the beginning of the same episode."""
        for game in self._games:
            game.reset(seed=self._seed)
        return self._memories(), {}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play an action of each copy for as many frames as agents do; a game that is over pays nothing more."""
        paid = np.zeros(self.num_envs)
        for copy, (emulator, action) in enumerate(zip(self._emulators, np.asarray(actions).tolist(), strict=True)):
            for _ in range(FRAMES_A_STEP):
                if not emulator.game_over():
                    paid[copy] += emulator.act(self._actions[action])
        over = np.array([each.game_over(with_truncation=False) for each in self._emulators], dtype=bool)
        cut = np.array([each.game_truncated() for each in self._emulators], dtype=bool)
        return self._memories(), paid, over, cut, {}

    def get_state(self) -> State:
        """Where every emulator is."""
        states: list[Any] = [each.cloneState(include_rng=True).__getstate__() for each in self._emulators]
        return {"emulators": np.array([np.frombuffer(state, np.uint8) for state in states])}

    def set_state(self, state: State) -> None:
        """Put every emulator back."""
        for emulator, content in zip(self._emulators, state["emulators"], strict=True):
            kind: Any = type(emulator.cloneState())
            found = kind.__new__(kind)
            found.__setstate__(content.tobytes())
            emulator.restoreState(found)

    def _memories(self) -> np.ndarray:
        return np.array([emulator.getRAM() for emulator in self._emulators])

    def close_extras(self, **how: Any) -> None:
        """Stop the emulators."""
        for game in self._games:
            game.close()
