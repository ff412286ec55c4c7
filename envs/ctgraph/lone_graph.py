"""The only copy of a CT-graph, in plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lcd.envs.ctgraph.goals import GoalSchedule
from lcd.envs.ctgraph.knobs import GraphKnobs
from lcd.envs.ctgraph.transitions import Transitions, end_rewards
from lcd.envs.lone import LoneCopy
from lcd.envs.state import State
from lcd.envs.streams import Streams


class LoneGraph(LoneCopy):
    """One copy of a graph."""

    kept = ("nodes", "ids", "goals", "phases", "left")
    _nodes: int
    _goals: list[int]
    _phases: int
    _left: int

    def __init__(
        self,
        knobs: GraphKnobs,
        tables: Transitions,
        schedule: GoalSchedule,
        streams: Mapping[str, Streams],
        shown: Callable[[int], np.ndarray],
    ) -> None:
        """Begin where the environment is.

        Args:
            knobs: the graph's.
            tables: where its actions lead.
            schedule: its goals.
            streams: those of dynamics and observation ids.
            shown: an observation id -> a fresh array.
        """
        super().__init__(tables.actions, streams)
        self._dynamics, self._observation = self._streams["dynamics"], self._streams["observation"]
        self._knobs, self._tables, self._schedule, self._shown = knobs, tables, schedule, shown
        self._wait_probability = float(knobs.graph_shape.p)
        self._step_reward, self._deviation = float(knobs.reward.step_r), float(knobs.reward.std_r)
        self._random_ids = bool((tables.id_count > 1).any())
        self._worth: dict[int, float] = {}

    def _move(self, action: Any) -> tuple[float, bool, bool, dict[str, Any]]:
        tables, node = self._tables, self._nodes
        edge = node * self._actions + self._checked(action)
        stays = bool(self._wait_probability) and self._dynamics.uniform() < self._wait_probability
        if not stays or not tables.lingering.item(edge):
            self._nodes = node = tables.successors.item(edge)
        if not tables.terminal.item(node):
            return self._step_reward, False, False, {"event_reward": self._step_reward} if self._deviation else {}
        event = reward = self._step_reward + self._earned_at(node)
        if not self._deviation:
            return reward, True, False, {}
        if node >= tables.first_end:
            reward = event + self._deviation * self._dynamics.normal()
        return reward, True, False, {"event_reward": event}

    def _earned_at(self, node: int) -> float:
        """What the end or fail state `node` is worth while the goal is what it is."""
        if node not in self._worth:
            goal = np.array([self._goals])
            self._worth[node] = float(end_rewards(self._knobs, self._tables, np.array([node]), goal)[0])
        return self._worth[node]

    def _begin(self) -> None:
        self._nodes = 0

    def _begin_again(self) -> None:
        self._nodes = 0
        if not self._knobs.reward.goal_changes:
            return
        self._left -= 1
        if self._left == 0:
            self._phases += 1
            self._goals, self._left = self._schedule.goal(self._phases).tolist(), self._schedule.episodes(self._phases)
            self._worth.clear()

    def _observe(self) -> np.ndarray:
        number = self._tables.first_id.item(self._nodes)
        if self._random_ids:
            number += self._observation.integer(self._tables.id_count.item(self._nodes))
        self._ids = number
        return self._shown(number)

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        super().set_state(state)
        self._worth.clear()
