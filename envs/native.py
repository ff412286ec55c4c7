"""What our natively vectorised environments share: copies of one seed or of a population, and their streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from lcd.envs.checks import require_one_of, require_whole_number, seed_list
from lcd.envs.errors import InputError
from lcd.envs.state import State, nest, unnest
from lcd.envs.streams import Streams, group_seeds, seed_sequence

if TYPE_CHECKING:
    from lcd.envs.lone import LoneCopy

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
    kept: ClassVar[tuple[str, ...]]
    """The arrays, whose attributes begin with `_`, that the future depends on beside streams and other parts."""

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

    def _make_ready(self) -> None:
        """Make the spaces of all copies of the single ones; no episode runs yet."""
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._running = False
        self._shown: np.ndarray | None = None

    # What an environment has to say

    def _begin(self, index: np.ndarray | None) -> None:
        """Start a new episode in these copies; None: in all of them, as `reset` does."""
        raise NotImplementedError

    def _observe(self, index: np.ndarray | None = None) -> np.ndarray:
        """What these copies show; None: all."""
        raise NotImplementedError

    def _pictures(self) -> Any:
        """A picture a copy to render where the view is no image."""
        raise NotImplementedError

    def _parts(self) -> dict[str, Any]:
        """What has a state of its own, by name."""
        return dict(self._streams)

    def _read_options(self, options: dict[str, Any]) -> None:
        """Take in the options of `reset`; none are known."""

    def _infos(self) -> dict[str, Any]:
        """What `reset` tells beside the observations."""
        return {}

    def lone(self) -> LoneCopy | None:
        """The environment's only copy in plain numbers, where it can be stepped so; what is rendered cannot."""
        return None

    # What they share

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode in every copy.

        Args:
            seed: re-seeds the streams, never what the task is: one seed, or one for each seed of the population.
            options: those that the environment knows.
        """
        if seed is not None:
            self._seed_anew(seed)
        self._read_options(options or {})
        self._running = True
        self._begin(None)
        return self._show(self._observe()), self._infos()

    def _seed_anew(self, seed: int | Sequence[int]) -> None:
        self._seeds = group_seeds(seed, self.num_seeds)
        self._start_streams()

    def _require_episode(self, call: str) -> None:
        if not self._running:
            raise ResetNeeded(f"Call reset() before {call}(): no episode is running.")

    def _begin_again(self, index: np.ndarray, observations: np.ndarray) -> np.ndarray:
        """Start the next episodes of copies that ended theirs; returns the observations with their first ones."""
        self._begin(index)
        return self._observe_again(observations, index)

    def _observe_again(self, observations: np.ndarray, index: np.ndarray) -> np.ndarray:
        """What all copies show now that those in `index` show something else; the `observations` stay as they are."""
        observations = observations.copy()
        observations[index] = self._observe(index)
        return observations

    def _show(self, observations: np.ndarray) -> np.ndarray:
        if self.render_mode is not None and self.view in IMAGE_VIEWS:
            self._shown = observations.copy()
        return observations

    def render(self) -> tuple[np.ndarray, ...] | None:
        """The copies' last observations; in the view `state`, a picture of each state."""
        if self.render_mode is None:
            return None
        self._require_episode("render")
        return tuple(self._pictures() if self._shown is None else self._shown.copy())

    def get_state(self) -> State:
        """Everything that the future depends on."""
        state = {name: getattr(self, f"_{name}").copy() for name in self.kept} | {"running": np.array(self._running)}
        for name, part in self._parts().items():
            state |= nest(name, part.get_state())
        return state

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called (on an environment made with the same arguments)."""
        for name in self.kept:
            setattr(self, f"_{name}", state[name].copy())
        self._running = bool(state["running"])
        for name, part in self._parts().items():
            part.set_state(unnest(name, state))
