"""Controllers of traffic signals as agents: two rules that learn nothing, and a fixed plan found by trying."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from torch import Tensor

from lcd.agents.learner import Evaluate, Learner
from lcd.agents.settings import TrafficConfig
from lcd.agents.stepping import Stepper
from lcd.envs.errors import InputError
from lcd.envs.traffic.controllers import fixed_time, max_pressure, plans, untuned_plan
from lcd.envs.traffic.green_phases import PHASES
from lcd.envs.traffic.sensing import WIDTH, Seen, read


def require_intersections(env: VectorEnv) -> None:
    """Refuse an environment that shows no intersections."""
    shown, actions = env.single_observation_space.shape, env.single_action_space
    if shown != (WIDTH,) or actions != spaces.Discrete(len(PHASES)):
        raise InputError(
            "The agents traffic/… control the intersections of benchmark=traffic, and this is another environment: "
            "choose another agent."
        )


class Controller(Learner):
    """What the three share: they look at the intersections as `lcd.envs.traffic.sensing` shows them."""

    Config = TrafficConfig

    def __init__(self, config: TrafficConfig, env: VectorEnv, seeds: Sequence[int]):
        super().__init__(config, env, seeds)
        require_intersections(env)

    def learn(self, steps: int, every: int, evaluate: Evaluate) -> None:
        """Nothing is learned: every evaluation plays the same rule."""
        for done in (*range(0, steps, every), steps):
            evaluate(done)

    def encode(self, observations: np.ndarray) -> Seen:
        """What is seen of the intersections."""
        return read(observations)

    def act(self, features: Seen, draws: Tensor | None) -> tuple[np.ndarray, None, None]:
        """The phases of all copies."""
        return self.phases(features), None, None

    def phases(self, seen: Seen) -> np.ndarray:
        """What shall be green next."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """Nothing is kept of what learns nothing."""
        return {}


class FixedTime(Controller):
    """The untuned fixed-time controller: a cycle of 90 seconds, the same for both roads."""

    def phases(self, seen: Seen) -> np.ndarray:
        """The phase that the plan has now."""
        return fixed_time(seen, untuned_plan(seen.served))


class MaxPressure(Controller):
    """Max pressure (Varaiya 2013): green for those who have most vehicles before them, less those behind."""

    def phases(self, seen: Seen) -> np.ndarray:
        """The phase of the greatest pressure."""
        return max_pressure(seen)


class TunedFixedTime(Controller):
    """A fixed-time controller that tries plans, the untuned one first, and keeps each seed's best.

    Every plan is played for an episode of all the seed's copies; after the last one it begins anew, and a plan's means
    are over all of its episodes.
    """

    def __init__(self, config: TrafficConfig, env: VectorEnv, seeds: Sequence[int]):
        super().__init__(config, env, seeds)
        self._tried = np.zeros((len(self.seeds), 0, len(PHASES)), dtype=np.int64)
        self._sums = self._plays = np.zeros((len(self.seeds), 0))
        self._kept: np.ndarray | None = None

    def learn(self, steps: int, every: int, evaluate: Evaluate) -> None:
        """Try one plan after the other."""
        copies, stepper = self.config.copies, Stepper(self.env)
        seen = read(stepper.reset())
        self._list_plans(seen.served[::copies])
        evaluate(0)
        number, returns = 0, np.zeros(len(self.seeds))
        for done in range(copies, steps + copies, copies):
            plan = np.repeat(self._tried[:, number % self._tried.shape[1]], copies, axis=0)
            outcome = stepper.step(fixed_time(seen, plan))
            self.log.add(outcome)
            seen = read(outcome.observations)
            returns += outcome.rewards.reshape(len(self.seeds), copies).mean(axis=1)
            if outcome.dones.any():
                self._note(number, returns)
                number, returns = number + 1, np.zeros(len(self.seeds))
            if done >= steps or done // every > (done - copies) // every:
                evaluate(min(done, steps))

    def _list_plans(self, served: np.ndarray) -> None:
        """Each seed's plans, (seeds, plans, phases); who has fewer tries the first ones again."""
        lists = [plans(row) for row in served]
        most = max(map(len, lists))
        self._tried = np.array([[each[place % len(each)] for place in range(most)] for each in lists])
        self._sums, self._plays = np.zeros(self._tried.shape[:2]), np.zeros(self._tried.shape[:2])
        self._kept = self._tried[:, 0].copy()

    def _note(self, number: int, returns: np.ndarray) -> None:
        place = number % self._tried.shape[1]
        self._sums[:, place] += returns
        self._plays[:, place] += 1
        means = np.where(self._plays > 0, self._sums / np.maximum(self._plays, 1), -np.inf)
        self._kept = self._tried[np.arange(len(means)), means.argmax(axis=1)]

    def phases(self, seen: Seen) -> np.ndarray:
        """The phase that each seed's best plan has now."""
        if self._kept is None:
            return fixed_time(seen, untuned_plan(seen.served))
        return fixed_time(seen, np.repeat(self._kept, len(seen.phase) // len(self.seeds), axis=0))

    def state_dict(self) -> dict[str, Any]:
        """Each seed's best plan: decisions for each phase."""
        return {} if self._kept is None else {"plan": torch.from_numpy(self._kept.copy())}
