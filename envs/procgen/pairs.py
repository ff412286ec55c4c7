"""Paired views: the same moments as pixels and as masks, one engine a view in lockstep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from lcd.envs.procgen.knobs import VIEWS
from lcd.envs.procgen.vector import ProcgenVectorEnv
from lcd.envs.state import State


class PairedViews(VectorEnv):
    """Copies of one game whose observations are a dictionary from view to frames.

    All else is as in `ProcgenVectorEnv`. The views' engines have the same seed and get the same actions; should they
    ever disagree about rewards, ends or levels, `step` raises a RuntimeError.
    """

    metadata = ProcgenVectorEnv.metadata

    def __init__(
        self, num_envs: int = 1, seed: int | Sequence[int] = 0, views: Sequence[str] = VIEWS, **knobs: Any
    ) -> None:
        """Make the same copies once for either view.

        Args:
            num_envs: copies.
            seed: as for `ProcgenVectorEnv`.
            views: the views, all different.
            knobs: the rest of `ProcgenKnobs`.
        """
        self.envs = {view: ProcgenVectorEnv(num_envs, seed, view=view, **knobs) for view in views}
        self.num_envs = num_envs
        self._first = next(iter(self.envs.values()))
        self.render_mode = self._first.render_mode
        self.single_action_space, self.action_space = self._first.single_action_space, self._first.action_space
        spaces = {view: env.single_observation_space for view, env in self.envs.items()}
        self.single_observation_space = gymnasium.spaces.Dict(spaces)
        self.observation_space = batch_space(self.single_observation_space, num_envs)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Reset every view."""
        results = {view: env.reset(seed=seed, options=options) for view, env in self.envs.items()}
        self._check([infos["level_seed"] for _, infos in results.values()])
        observations = {view: observations for view, (observations, _) in results.items()}
        return observations, next(iter(results.values()))[1]

    def step(
        self, actions: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step every view with the same actions."""
        for env in self.envs.values():
            env.step_async(actions)
        results: dict[str, tuple[Any, ...]] = {view: env.step_wait() for view, env in self.envs.items()}
        for part in (1, 2):
            self._check([result[part] for result in results.values()])
        self._check([result[4]["level_seed"] for result in results.values()])
        observations = {view: result[0] for view, result in results.items()}
        return (observations, *next(iter(results.values()))[1:])

    def _check(self, told: Sequence[np.ndarray]) -> None:
        if not all(np.array_equal(told[0], other) for other in told[1:]):
            raise RuntimeError(f"The views {', '.join(self.envs)} have drifted apart: {told}.")

    def render(self) -> tuple[np.ndarray, ...] | None:
        """The frames of the first view."""
        return self._first.render()

    def close_extras(self, **kwargs: Any) -> None:
        """Close every view."""
        for env in self.envs.values():
            env.close(**kwargs)

    def get_state(self) -> State:
        """Where every copy is: any view's state, since they are all the same."""
        return self._first.get_state()

    def set_state(self, state: State) -> None:
        """Continue every view exactly where `get_state` was called."""
        for env in self.envs.values():
            env.set_state(state)
