"""Goals: which decisions are optimal, and when that changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from lcd.envs.errors import InputError
from lcd.envs.streams import seed_sequence


def checked_goal(goal: Any, b: int, d: int) -> tuple[int, ...]:
    """The goal as a tuple; refused if it does not say one of b branches at each of d decisions."""
    decisions = tuple(np.asarray(goal).tolist()) if isinstance(goal, list | tuple | np.ndarray) else ()
    right = all(isinstance(a, int) and not isinstance(a, bool) and 1 <= a <= b for a in decisions)
    if len(decisions) != d or not right:
        raise InputError(f"goal is {goal!r}, but it must be d={d} decisions from 1 to b={b}, such as {[1] * d}.")
    return decisions


class GoalSchedule:
    """The goals of one seed: the n-th, and for how many episodes of a copy it stays.

    All copies of a seed, in training and held out, go through the same goals.
    """

    def __init__(self, knobs: Any, seed: int) -> None:
        """Begin at the first goal.

        Args:
            knobs: the graph's `GraphKnobs`.
            seed: the seed that random goals are drawn from unless `goal_seed` is given.
        """
        self._shape, self._reward = knobs.graph_shape, knobs.reward
        source = seed if knobs.goal_seed is None else knobs.goal_seed
        self._rng = np.random.default_rng(seed_sequence(source, "mdp"))
        first = self._random() if knobs.goal is None else np.array(knobs.goal, dtype=np.int64)
        self._goals, self._episodes = [first], [self._duration()]

    def goal(self, phase: int) -> np.ndarray:
        """The goal number `phase`."""
        self._extend(phase)
        return self._goals[phase]

    def episodes(self, phase: int) -> int:
        """For how many episodes it stays; -1: for ever."""
        self._extend(phase)
        return self._episodes[phase]

    def _extend(self, phase: int) -> None:
        while len(self._goals) <= phase:
            self._goals.append(self._other_than(self._goals[-1]))
            self._episodes.append(self._duration())

    def _random(self) -> np.ndarray:
        return self._rng.integers(1, self._shape.b + 1, self._shape.d)

    def _other_than(self, goal: np.ndarray) -> np.ndarray:
        while True:
            found = self._random()
            if not np.array_equal(found, goal):
                return found

    def _duration(self) -> int:
        if not self._reward.goal_changes:
            return -1
        least, most = self._reward.min_static_reward_episodes, self._reward.max_static_reward_episodes
        return int(self._rng.integers(least, most))
