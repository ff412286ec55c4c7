"""What our natively vectorised environments share: copies of one seed or of a population, and their streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from lcd.envs.checks import require_one_of, require_whole_number, seed_list
from lcd.envs.errors import InputError
from lcd.envs.streams import Streams, seed_sequence

IMAGE_VIEWS = ("pixels", "figure_ground", "semantic")
VIEWS = (*IMAGE_VIEWS, "state")
SPLITS = ("train", "eval")


class NativeVectorEnv(VectorEnv):
    """Copies of one environment, or of one a seed for a population of seeds, stepped together."""

    metadata: ClassVar[dict[str, Any]] = {
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": ["rgb_array"],
        "render_fps": 4,
    }
    streams: ClassVar[tuple[str, ...]]
    """The kinds of randomness of a copy: each has a stream of its own."""

    def _populate(
        self, num_envs: int, view: str, split: str, seed: int | Sequence[int], render_mode: str | None
    ) -> None:
        """Take in what every environment is made with, checked; `group` is each copy's place among the seeds."""
        require_one_of("view", view, VIEWS)
        require_one_of("split", split, SPLITS)
        if render_mode is not None:
            require_one_of("render_mode", render_mode, self.metadata["render_modes"])
        require_whole_number("num_envs", num_envs, 1)
        self._seeds = seed_list(seed)
        if num_envs % len(self._seeds):
            raise InputError(f"num_envs is {num_envs}, but it must be a multiple of the {len(self._seeds)} seeds.")
        self.num_envs, self.view, self.split, self.render_mode = num_envs, view, split, render_mode
        self.group = np.repeat(np.arange(self.num_seeds), num_envs // self.num_seeds)

    @property
    def num_seeds(self) -> int:
        """How many seeds the population has."""
        return len(self._seeds)

    def _sequences(self) -> list[np.random.SeedSequence]:
        """Each copy's branch of its seed."""
        copies = range(self.num_envs // self.num_seeds)
        return [seed_sequence(seed, self.split, copy) for seed in self._seeds for copy in copies]

    def _start_streams(self) -> None:
        """Start every copy's streams anew; whoever already holds them keeps the same objects."""
        fresh = dict(zip(self.streams, Streams.spawn(self._sequences(), len(self.streams)), strict=True))
        if not hasattr(self, "_streams"):
            self._streams = fresh
        for name, streams in fresh.items():
            self._streams[name].set_state(streams.get_state())
