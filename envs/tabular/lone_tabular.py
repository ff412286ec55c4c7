"""The only copy of a tabular MDP, in plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lcd.envs.lone import LoneCopy
from lcd.envs.streams import Streams
from lcd.envs.tabular.mdp import TERMINAL, TabularMDP


class LoneTabular(LoneCopy):
    """One copy of an MDP."""

    kept = ("nodes", "steps", "last_actions")
    _nodes: int
    _steps: int
    _last_actions: int

    def __init__(self, mdp: TabularMDP, streams: Mapping[str, Streams], shown: Callable[[int], Any]) -> None:
        """Begin where the environment is.

        Args:
            mdp: the MDP.
            streams: the environment's dynamics.
            shown: a state -> what is seen of it.
        """
        super().__init__(mdp.num_actions, streams)
        self._dynamics, self._mdp, self._shown = self._streams["dynamics"], mdp, shown
        self._transitions, self._rewards = mdp.transitions.ravel(), mdp.rewards.ravel()

    def _move(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        number = self._checked(action)
        if self._mdp.sticky > 0:
            if self._dynamics.uniform() < self._mdp.sticky and self._steps > 0:
                number = self._last_actions
            self._last_actions = number
        edge = self._nodes * self._actions + number
        node = self._transitions.item(edge)
        terminated = node == TERMINAL
        self._nodes = self._mdp.num_states if terminated else node
        self._steps += 1
        return self._rewards.item(edge), terminated, not terminated and self._steps >= self._mdp.horizon, {}

    def _begin(self) -> None:
        self._nodes, self._steps = self._mdp.start, 0

    def _observe(self) -> Any:
        return self._shown(self._nodes)
