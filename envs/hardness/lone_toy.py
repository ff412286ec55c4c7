"""The only copy of a discrete toy MDP, in plain numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from lcd.envs.hardness.images import LoneFigures, Renderer
from lcd.envs.hardness.mdp import DiscreteMDP
from lcd.envs.hardness.payment import LonePayment, Payment
from lcd.envs.hardness.sequences import LoneSequenceRewards
from lcd.envs.lone import LoneCopy
from lcd.envs.state import State
from lcd.envs.streams import Streams


class ByRenderer:
    """Images of an only copy by the environment's own renderer, in arrays of one."""

    def __init__(self, renderer: Renderer) -> None:
        """Draw by this renderer, whose state stays its own."""
        self._renderer = renderer

    def begin(self) -> None:
        """An episode begins."""
        self._renderer.begin()

    def draw(self, state: int, step: int) -> np.ndarray:
        """An image of this state at this step of the episode."""
        return self._renderer.draw(np.array([[state]]), np.array([step]))[0]


class LoneToy(LoneCopy):
    """One copy of a toy without irrelevant features and without functions of the user's for noise."""

    kept = ("nodes",)

    def __init__(
        self,
        mdp: DiscreteMDP,
        payment: Payment,
        streams: Mapping[str, Streams],
        shown: LoneFigures | ByRenderer | None = None,
    ) -> None:
        """Begin where the environment is.

        Args:
            mdp: the tables.
            payment: what the environment pays by.
            streams: the environment's dynamics, and, for figures, its geometry.
            shown: what draws images; by default one-hot vectors are seen.
        """
        knobs = mdp.knobs
        self._rewards, self._payment = LoneSequenceRewards(mdp), LonePayment(payment)
        super().__init__(knobs.action_space_size, streams, rewards=self._rewards, payment=self._payment)
        self._dynamics = self._streams["dynamics"]
        self._successors: list[int] = mdp.transitions.ravel().tolist()
        self._terminal: list[bool] = mdp.terminal.tolist()
        self._starts: list[int] = mdp.starts.tolist()
        self._start_bounds: list[float] | None = None
        if knobs.init_state_dist is not None:
            self._start_bounds = np.cumsum(np.array(knobs.init_state_dist)[mdp.starts])[:-1].tolist()
        self._chance, self._set_size, self._horizon = cast(float, knobs.transition_noise), knobs.set_size, knobs.horizon
        self._one_hot = np.eye(knobs.state_space_size, dtype=np.float32)
        self._figures = shown if isinstance(shown, LoneFigures) else None
        self._renderer = shown if isinstance(shown, ByRenderer) else None
        self._nodes = self._steps = 0

    def _move(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        number = self._checked(action)
        self._steps += 1
        node = self._successors[self._nodes * self._actions + number]
        if self._chance and self._dynamics.uniform() < self._chance:
            node = self._strayed(node)
        self._nodes = node
        terminated = self._terminal[node]
        truncated = not terminated and self._steps >= self._horizon
        payment = self._payment
        due = payment.due(self._rewards.earned(node, number, self._steps))
        if payment.plain:
            return due, terminated, truncated, {}
        reward, event = payment.paid(due, self._dynamics, terminated)
        return reward, terminated, truncated, {} if reward is event else {"event_reward": event}

    def _strayed(self, node: int) -> int:
        """Another state of the same set."""
        base = node - node % self._set_size
        other = self._dynamics.integer(self._set_size - 1)
        return base + other + (base + other >= node)

    def _begin(self) -> None:
        if self._start_bounds is None:
            place = self._dynamics.integer(len(self._starts))
        else:
            place = bisect_right(self._start_bounds, self._dynamics.uniform())
        self._nodes, self._steps = self._starts[place], 0
        self._rewards.begin(self._nodes)
        self._payment.begin()
        if self._renderer is not None:
            self._renderer.begin()

    def _observe(self) -> np.ndarray:
        if self._figures is not None:
            return self._figures.draw(self._nodes, self._streams["geometry"])
        if self._renderer is not None:
            return self._renderer.draw(self._nodes, self._steps)
        return self._one_hot[self._nodes].copy()

    def get_state(self) -> State:
        """As the environment's, but for what draws pictures."""
        return {**super().get_state(), "steps": np.array([self._steps])}

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        super().set_state(state)
        self._steps = int(state["steps"][0])
