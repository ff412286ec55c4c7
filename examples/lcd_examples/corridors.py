"""A benchmark of two tasks: walk to the right end of a corridor, which is lit well or badly."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

SIZE = 32
DARKNESS = {"corridors/lit": 0.1, "corridors/dim": 0.8}


class Corridor(gymnasium.Env):
    """One corridor: action 1 goes right, action 0 left; the right end pays 1 and ends the episode."""

    def __init__(self, view: str, darkness: float, length: int, stream: np.random.SeedSequence) -> None:
        self.view, self.darkness, self.length = view, darkness, length
        self.observation_space = spaces.Box(0, 255, (SIZE, SIZE, 3), np.uint8)
        self.action_space = spaces.Discrete(2)
        self.rng = np.random.default_rng(stream)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Begin at the left end."""
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.place = self.steps = 0
        return self.seen(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Go one step; after four lengths it is over."""
        self.place = max(0, self.place + (1 if action == 1 else -1))
        self.steps += 1
        arrived = self.place == self.length
        return self.seen(), float(arrived), arrived, not arrived and self.steps >= 4 * self.length, {}

    def seen(self) -> np.ndarray:
        """The walker as a block: in pixels under noise, in figure_ground white, in semantic in a colour of its own."""
        image = np.zeros((SIZE, SIZE, 3), np.uint8)
        left = self.place * (SIZE - 4) // self.length
        image[14:18, left : left + 4] = (0, 255, 0) if self.view == "semantic" else 255
        if self.view == "pixels":
            noise = self.rng.integers(0, 256, image.shape)
            image = (image * (1 - self.darkness) + noise * self.darkness).astype(np.uint8)
        return image


class Corridors:
    """Walk to the right end of a corridor, which is lit well or badly."""

    name = "corridors"
    tasks = tuple(DARKNESS)
    views = ("pixels", "figure_ground", "semantic")
    # What a random walker earns on a corridor of four cells; knobs change it, so that `reward_range` is asked.
    r_min = dict.fromkeys(DARKNESS, 0.54)
    r_max = dict.fromkeys(DARKNESS, 1.0)

    def reward_range(self, task: str, seed: int, length: int = 4) -> tuple[float, float]:
        """The chance of a random walker to arrive in time, and 1."""
        places = np.eye(length + 1)[0]
        for _ in range(4 * length):
            walking = places[:-1] / 2
            places = np.concatenate([walking[1:], [0, places[-1]]]) + np.concatenate([[0], walking])
            places[0] += walking[0]
        return float(places[-1]), 1.0

    def make_vec(self, task: str, *, view: str, split: str, num_envs: int, seed: int, length: int = 4) -> VectorEnv:
        """Copies that differ in their noise, and so do training and evaluation."""
        streams = np.random.SeedSequence([seed, split == "eval"]).spawn(num_envs)
        made = [partial(Corridor, view, DARKNESS[task], length, stream) for stream in streams]
        return SyncVectorEnv(made, autoreset_mode=AutoresetMode.SAME_STEP)
