"""What the environments of families share: copies of many points and seeds, stepped together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from lcd.envs.checks import checked_actions, require_one_of
from lcd.envs.errors import InputError
from lcd.envs.families.features import Feature, checked_columns
from lcd.envs.native import NativeVectorEnv

VIEWS = ("state",)
UNBOUNDED = float(np.finfo(np.float32).max)
"""What Gymnasium, which warns of infinite bounds, takes for the bound of a quantity that has none."""


class FamilyVectorEnv(NativeVectorEnv):
    """Copies of one point of a family, or of another point for every seed of a population.

    A copy's random numbers depend on its seed and its place among the seed's copies, never on its point: each gets what
    it would get alone. What a copy's future depends on is `_state`, one row of numbers for each of its quantities.
    """

    streams = ("dynamics",)
    kept: ClassVar[tuple[str, ...]] = ("state", "steps")
    features: ClassVar[tuple[Feature, ...]]
    horizon: ClassVar[int]
    """Steps after which an episode is cut off."""
    state_type: ClassVar[type] = np.float64
    _state: np.ndarray

    def __init__(
        self,
        num_envs: int = 1,
        view: str = "state",
        split: str = "train",
        seed: int | Sequence[int] = 0,
        render_mode: str | None = None,
        **features: Any,
    ) -> None:
        """Make the copies.

        Args:
            num_envs: number of copies, over all seeds.
            view: "state".
            split: "train" or "eval": the same MDP under other random streams.
            seed: a seed, or the seeds of a population, whose copies lie side by side in this order; of several points
                the seeds of the first come first, and so on.
            render_mode: None or "rgb_array".
            features: those of the context, each a number, or one for each seed.
        """
        require_one_of("view", view, VIEWS)
        self._populate(num_envs, view, split, seed, render_mode)
        columns = checked_columns(self.features, features, self.num_seeds)
        self.context = {name: column[self.group] for name, column in columns.items()}
        """Each feature's value in every copy."""
        self._start_streams()
        self._make()
        self._steps = np.zeros(num_envs, dtype=np.int64)
        self._make_ready()

    # What a family has to say

    def _make(self) -> None:
        """Make `_state`, what is computed of the context, and the single spaces."""
        raise NotImplementedError

    def _start(self, copies: np.ndarray) -> np.ndarray:
        """The first states (a row a quantity) of these copies' next episodes."""
        raise NotImplementedError

    def _move(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Move every copy; returns rewards, and whether each episode ended by where it is."""
        raise NotImplementedError

    # What they share

    @property
    def states(self) -> np.ndarray:
        """(quantities, copies): where every copy is."""
        return self._state.copy()

    @states.setter
    def states(self, states: np.ndarray) -> None:
        if np.shape(states) != self._state.shape:
            raise InputError(f"states have the shape {np.shape(states)}, but {self._state.shape} numbers are needed.")
        self._state = np.array(states, dtype=self.state_type)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step of every copy; a copy whose episode ends shows the next one's first observation."""
        self._require_episode("step")
        rewards, terminations = self._move(self._checked(actions))
        self._steps += 1
        truncations = self._steps >= self.horizon
        truncations &= ~terminations
        observations = self._observe()
        ended = terminations | truncations
        if not ended.any():
            return observations, rewards, terminations, truncations, {}
        infos = {"final_obs": observations, "_final_obs": ended}
        return self._begin_again(np.flatnonzero(ended), observations), rewards, terminations, truncations, infos

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        if isinstance(self.single_action_space, spaces.Discrete):
            return checked_actions(actions, self.num_envs, int(self.single_action_space.n))
        actions = np.asarray(actions)
        if actions.shape != self.action_space.shape or actions.dtype.kind not in "fiu":
            raise InputError(
                f"actions have the shape {actions.shape} and type {actions.dtype}, but {self.num_envs} copies need "
                f"{self.action_space.shape} numbers."
            )
        if not np.isfinite(actions).all():
            raise InputError("actions are not all finite, but each must be a number.")
        return actions.astype(np.float32, copy=False)

    def _begin(self, index: np.ndarray | None) -> None:
        copies = np.arange(self.num_envs) if index is None else index
        self._state[:, copies] = self._start(copies)
        self._steps[copies] = 0

    def _uniform(self, copies: np.ndarray, low: float, high: float, count: int) -> np.ndarray:
        """(count, copies): fresh numbers of these copies."""
        drawn = self._streams["dynamics"].uniform(copies, count)
        return low + (high - low) * drawn.T

    def _observe(self, index: np.ndarray | None = None) -> np.ndarray:
        state = self._state if index is None else self._state[:, index]
        return as_rows(state)

    def pictures(self) -> np.ndarray:
        """A drawing of every copy, its context included."""
        self._require_episode("pictures")
        return self._pictures()


def as_rows(columns: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """Quantities of all copies as one row of float32 a copy."""
    rows = np.empty((len(columns[0]), len(columns)), dtype=np.float32)
    for number, column in enumerate(columns):
        rows[:, number] = column
    return rows
