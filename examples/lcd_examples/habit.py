"""An agent that trains itself: it learns which one action pays, whatever it sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from lcd.agents.learner import Evaluate, Learner
from lcd.agents.stepping import Stepper
from lcd.envs.streams import seed_sequence


@dataclass(frozen=True)
class HabitConfig:
    """Settings of the agent.

    Attributes:
        copies: environment copies of each seed.
        rollout: steps of each copy between two looks at what pays.
        epsilon: share of actions that are tried at random.
    """

    copies: int = 8
    rollout: int = 16
    epsilon: float = 0.2


class Habit(Learner):
    """Learns which one action pays best, whatever it sees: the least that an agent can do."""

    Config = HabitConfig

    def __init__(self, config: HabitConfig, env: Any, seeds: Any) -> None:
        super().__init__(config, env, seeds)
        self.earned = np.zeros((len(self.seeds), int(env.single_action_space.n)))
        self.generators = [np.random.default_rng(seed_sequence(seed, "exploration")) for seed in self.seeds]

    def learn(self, steps: int, every: int, evaluate: Evaluate) -> None:
        """Add up what came with each action."""
        stepper, copies = Stepper(self.env), self.config.copies
        stepper.reset()
        evaluate(0)
        for done in range(copies, steps + copies, copies):
            actions = self.usual(copies)
            for row, generator in enumerate(self.generators):
                # Until something has paid there is no habit to follow.
                tried = self.config.epsilon if self.earned[row].any() else 1.0
                stray = generator.random(copies) < tried
                actions[row, stray] = generator.integers(0, self.earned.shape[1], stray.sum())
            step = stepper.step(actions.ravel())
            self.log.add(step)
            rewards = step.rewards.reshape(actions.shape)
            for row in range(len(self.seeds)):
                np.add.at(self.earned[row], actions[row], rewards[row])
            if done >= steps or done // every > (done - copies) // every:
                evaluate(done)

    def usual(self, copies: int) -> np.ndarray:
        """Each seed's habit, (seeds, copies)."""
        return np.repeat(self.earned.argmax(1)[:, None], copies, axis=1)

    def act(self, features: np.ndarray, draws: torch.Tensor | None) -> tuple[np.ndarray, None, None]:
        """The habit, of all copies."""
        return self.usual(len(features) // len(self.seeds)).ravel(), None, None

    def state_dict(self) -> dict[str, Any]:
        """What was earned."""
        return {"earned": torch.from_numpy(self.earned.copy())}
