"""One copy of a natively vectorised environment, as an ordinary Gymnasium environment."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import VectorEnv

from lcd.envs.lone import LoneCopy
from lcd.envs.protocols import StepsAlone, offers
from lcd.envs.state import State


class SingleCopy(gymnasium.Env):
    """The single-environment face of `vector_class`; a subclass names the class and registers itself."""

    vector_class: ClassVar[type[VectorEnv]]

    def __init__(self, **knobs: Any) -> None:
        """Make one copy, with whatever else the vector environment takes."""
        self._vector = self.vector_class(num_envs=1, **knobs)
        self._lone: LoneCopy | None = self._vector.lone() if offers(self._vector, StepsAlone) else None
        self._lone_is_ahead = False
        self.render_mode = knobs.get("render_mode")
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space
        self._running = False

    @property
    def envs(self) -> Any:
        """The vector environment of this copy, which is where the copy is."""
        if self._lone is not None and self._lone_is_ahead:
            self._vector.set_state({**self._vector.get_state(), **self._lone.get_state()})
            self._lone_is_ahead = False
        return self._vector

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode, with `seed` on streams of that seed."""
        super().reset(seed=seed)
        if self._lone is not None and self._lone_is_ahead and seed is None and not options:
            self._running = True
            return self._lone.reset(), {}
        observations, infos = self.envs.reset(seed=seed, options=options)
        self._running = True
        return observations[0], _first(infos)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """One step; after the end of an episode `reset` has to come first."""
        if not self._running:
            raise ResetNeeded("Call reset() before step(): no episode is running.")
        if self._lone is not None:
            if not self._lone_is_ahead:
                self._lone.set_state(self._vector.get_state())
                self._lone_is_ahead = True
            outcome = self._lone.step(action)
            self._running = not (outcome[2] or outcome[3])
            return outcome
        observations, rewards, terminations, truncations, infos = self._vector.step(np.asarray(action)[None])
        terminated, truncated = bool(terminations[0]), bool(truncations[0])
        observation = observations[0]
        if terminated or truncated:
            observation = infos["final_obs"][0]
            infos = infos | {k.removeprefix("final_"): v for k, v in infos.items() if k.startswith("final_")}
            self._running = False
        return observation, float(rewards[0]), terminated, truncated, _first(infos)

    def render(self) -> Any:
        """The picture of the one copy."""
        frames = self.envs.render()
        return None if frames is None else frames[0]

    def close(self) -> None:
        """Close the vector environment."""
        self.envs.close()

    def get_state(self) -> State:
        """Everything that the future depends on."""
        return {**self.envs.get_state(), "running": np.array(self._running)}

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        self.envs.set_state(state)
        self._running = bool(state["running"])


def _first(infos: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in infos.items() if not key.startswith(("_", "final_")) and key != "obs"}
    return {key: value[0] for key, value in kept.items()}
