"""What the discrete and the continuous toy share: seeds and streams, episodes, rewards, restarts, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lcd.envs.errors import InputError
from lcd.envs.hardness.payment import Generators, Payment
from lcd.envs.native import VIEWS, NativeVectorEnv
from lcd.envs.state import State

__all__ = ["STREAMS", "VIEWS", "ToyVectorEnv"]

STREAMS = ("dynamics", "geometry", "appearance")


class ToyVectorEnv(NativeVectorEnv):
    """Copies of one toy, or of one a seed for a population of seeds, stepped together."""

    streams = STREAMS
    knobs: Any

    def __init__(
        self,
        num_envs: int = 1,
        view: str = "state",
        split: str = "train",
        seed: int | Sequence[int] = 0,
        render_mode: str | None = None,
        augmented_state: bool = False,
        **knobs: Any,
    ) -> None:
        """Make the copies of one toy, or of one a seed.

        Args:
            num_envs: number of copies, over all seeds.
            view: "pixels", "figure_ground", "semantic" (images), or "state" (a vector).
            split: "train" or "eval": the same MDP under other random streams.
            seed: a seed, or the seeds of a population, whose copies lie side by side in this order.
            render_mode: None or "rgb_array".
            augmented_state: whether infos tell what makes observations Markov, which takes half of the speed.
            knobs: those of the toy.
        """
        self._populate(num_envs, view, split, seed, render_mode)
        if not isinstance(augmented_state, bool):
            raise InputError(f"augmented_state is {augmented_state!r}, but it must be true or false.")
        self.augmented_state = augmented_state
        self.knobs = self._read_knobs(knobs)
        self._payment = self._make_payment()
        self._start_streams()
        self._make()
        self._steps = np.zeros(num_envs, dtype=np.int64)
        self._make_ready()

    # What a toy has to say

    def _read_knobs(self, knobs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _make(self) -> None:
        """Make tables, buffers, renderer and the single spaces."""
        raise NotImplementedError

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _move(self, actions: np.ndarray) -> np.ndarray:
        """Move every copy; returns whether its episode ended by where it is."""
        raise NotImplementedError

    def _earned(self, actions: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _penalty(self, actions: np.ndarray) -> np.ndarray | None:
        """What is taken from the reward at once, delay or not."""
        return None

    def _start(self, rows: slice | np.ndarray, index: np.ndarray | None) -> None:
        """Put these copies where their next episode starts."""
        raise NotImplementedError

    def _markov(self) -> dict[str, np.ndarray]:
        """What makes the observation Markov, as fresh arrays with a row a copy."""
        raise NotImplementedError

    def _noise_arguments(self, actions: np.ndarray) -> tuple[Sequence[Any], Sequence[Any]]:
        """The states before the step and the actions, as the user's reward noise function sees them."""
        raise NotImplementedError

    # What they share

    def _infos(self) -> dict[str, np.ndarray]:
        return self._markov() if self.augmented_state else {}

    def _make_payment(self) -> Payment:
        knobs = self.knobs
        return Payment(
            self.num_envs,
            knobs.delay,
            knobs.reward_noise,
            knobs.reward_scale,
            knobs.reward_shift,
            knobs.term_state_reward,
        )

    def _start_streams(self) -> None:
        super()._start_streams()
        self._generators = Generators(self._sequences() if self._uses_functions() else ())

    def _uses_functions(self) -> bool:
        return callable(self.knobs.transition_noise) or callable(self.knobs.reward_noise)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One step of every copy; a copy whose episode ends shows the next one's first observation."""
        self._require_episode("step")
        actions = self._checked(actions)
        self._steps += 1
        terminations = self._move(actions)
        rewards, infos = self._pay(actions, terminations)
        truncations = self._steps >= self.knobs.horizon
        truncations &= ~terminations
        observations = self._observe()
        ended = terminations | truncations
        infos |= self._infos()
        if ended.any():
            infos["final_obs"], infos["_final_obs"] = observations, ended
            observations = self._begin_again(np.flatnonzero(ended), observations)
            for name, later in self._infos().items():
                infos[f"final_{name}"], infos[name] = infos[name], later
        return self._show(observations), rewards, terminations, truncations, infos

    def wander(self, actions: np.ndarray) -> np.ndarray:
        """One step of every copy in which nothing is paid and no episode ends; returns the observations."""
        self._require_episode("wander")
        actions = self._checked(actions)
        self._steps += 1
        self._move(actions)
        return self._observe()

    def _pay(self, actions: np.ndarray, terminations: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
        payment = self._payment
        due = payment.due(self._earned(actions))
        penalty = self._penalty(actions)
        if penalty is not None:
            due = due - penalty
        if payment.plain:
            return due, {}
        noise = None
        if payment.noisy:
            noise = payment.drawn(self._streams["dynamics"], self._generators, *self._noise_arguments(actions))
        rewards, events = payment.paid(due, noise, terminations)
        return rewards, {} if rewards is events else {"event_reward": events}

    def _begin(self, index: np.ndarray | None) -> None:
        rows = slice(None) if index is None else index
        self._start(rows, index)
        self._steps[rows] = 0
        self._payment.begin(rows)
        if self._renderer is not None:
            self._renderer.begin(index)

    def restart(self, index: np.ndarray) -> np.ndarray:
        """Start new episodes in these copies (numbers); returns their observations."""
        self._begin(index)
        return self._observe(index)

    def get_state(self) -> State:
        """Everything that the future depends on."""
        return super().get_state() | {"steps": self._steps.copy()}

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called (on an environment made with the same arguments)."""
        super().set_state(state)
        self._steps = state["steps"].copy()

    def _parts(self) -> dict[str, Any]:
        parts = {**super()._parts(), "payment": self._payment}
        if self._generators.all:
            parts["generators"] = self._generators
        if self._renderer is not None:
            parts["renderer"] = self._renderer
        return parts
