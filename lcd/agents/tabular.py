"""Q-learning, double Q-learning and SARSA in tables, all seeds of a run in one array operation a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from torch import Tensor

from lcd.agents.learner import Evaluate, Learner
from lcd.agents.settings import TabularConfig
from lcd.agents.stepping import Stepper
from lcd.envs.errors import InputError
from lcd.envs.streams import Streams, seed_sequence


class Tabular(Learner):
    """What the three share: tables (seeds, states, actions), ε-greedy training, greedy held-out play."""

    Config = TabularConfig
    flat_actions = True
    numbered = True
    tables = 1

    def __init__(self, config: TabularConfig, env: VectorEnv, seeds: Sequence[int]):
        super().__init__(config, env, seeds)
        if not isinstance(env.single_action_space, spaces.Discrete):
            raise InputError(f"A tabular agent needs discrete actions, not {env.single_action_space}.")
        self.states, self.actions = int(env.single_observation_space.n), int(env.single_action_space.n)
        self.values = np.full((self.tables, len(self.seeds) * self.states, self.actions), config.initial)
        copies = range(config.copies)
        (self._streams,) = Streams.spawn([seed_sequence(s, "exploration", c) for s in self.seeds for c in copies])
        self._training_rows = self._first_rows(config.copies)
        self._change = np.zeros(len(self._training_rows))

    def _first_rows(self, copies: int) -> np.ndarray:
        """Where each copy's seed has its states in the tables."""
        return np.repeat(np.arange(len(self.seeds)) * self.states, copies)

    def learn(self, steps: int, every: int, evaluate: Evaluate) -> None:
        """Train, one step of every copy at a time."""
        copies = self.config.copies
        stepper, last = Stepper(self.env), -(-steps // copies)
        evaluate(0)
        rows = stepper.reset() + self._training_rows
        chosen = self._explore(rows)
        for number in range(1, last + 1):
            outcome = stepper.step(chosen)
            self.log.add(outcome)
            reached = (outcome.observations if outcome.final is None else outcome.final) + self._training_rows
            reached = np.where(outcome.dones, reached, outcome.observations + self._training_rows)
            onward = outcome.observations + self._training_rows
            following = self._explore(onward)
            # What follows an episode that was cut off is what the policy would have done there.
            intended = (
                following if not outcome.truncated.any() else np.where(outcome.dones, self._greedy(reached), following)
            )
            self._update(rows, chosen, outcome.rewards, reached, intended, ~outcome.terminated, outcome.valid)
            rows, chosen = onward, following
            done, before = number * copies, (number - 1) * copies
            self.went_on(done)
            if number == last or done // every > before // every:
                evaluate(done)

    def _explore(self, rows: np.ndarray) -> np.ndarray:
        """ε-greedy actions, from one word of each copy's stream: fields decide whether, and which."""
        words = self._streams.bits()
        stray = (words >> np.uint64(32)) * 2.0**-32 < self.config.epsilon
        random = ((words & np.uint64(0xFFFFFFFF)) * np.uint64(self.actions) >> np.uint64(32)).astype(np.int64)
        return np.where(stray, random, self._greedy(rows))

    def _greedy(self, rows: np.ndarray) -> np.ndarray:
        return self.values.sum(0)[rows].argmax(1) if self.tables > 1 else self.values[0][rows].argmax(1)

    def _update(
        self,
        rows: np.ndarray,
        actions: np.ndarray,
        rewards: np.ndarray,
        reached: np.ndarray,
        intended: np.ndarray,
        going_on: np.ndarray,
        valid: np.ndarray,
    ) -> None:
        """Learn from one step of every copy.

        Args:
            rows: the states before, as rows of the tables.
            actions: what was done in them.
            rewards: what it earned.
            reached: the states after, as rows.
            intended: the actions to follow.
            going_on: did the episode not terminate?
            valid: was it a step at all?
        """
        raise NotImplementedError

    def _towards(self, table: np.ndarray, places: tuple, targets: np.ndarray, valid: np.ndarray) -> None:
        self._change = change = self.config.learning_rate * valid * (targets - table[places])
        if self.config.copies == 1:
            table[places] += change
        else:
            np.add.at(table, places, change)

    @property
    def scalars(self) -> dict[str, Any]:
        """The last step's errors, and what the best actions are worth, in the mean over all states."""
        errors = np.abs(self._change).reshape(len(self.seeds), -1).mean(1) / self.config.learning_rate
        best = self.values.mean(0).max(1).reshape(len(self.seeds), -1).mean(1)
        rates = {"epsilon": self.config.epsilon, "learning_rate": self.config.learning_rate}
        return {"td_error": errors, "value": best, **rates}

    def encode(self, observations: np.ndarray) -> np.ndarray:
        """Rows of the tables."""
        return observations + self._first_rows(len(observations) // len(self.seeds))

    def act(self, features: np.ndarray, draws: Tensor | None) -> tuple[np.ndarray, None, None]:
        """The greedy actions."""
        return self._greedy(features), None, None

    def finite(self) -> np.ndarray:
        """Which seeds' tables are finite."""
        return np.isfinite(self.values).reshape(self.tables, len(self.seeds), -1).all(axis=(0, 2))

    def state_dict(self) -> dict[str, Any]:
        """The tables, (tables, seeds, states, actions)."""
        shape = (self.tables, len(self.seeds), self.states, self.actions)
        return {"values": torch.from_numpy(self.values.reshape(shape).copy())}


class QLearning(Tabular):
    """Watkins' Q-learning: towards the best action of the state that was reached."""

    def _update(self, rows, actions, rewards, reached, intended, going_on, valid):
        targets = rewards + self.config.gamma * going_on * self.values[0][reached].max(1)
        self._towards(self.values[0], (rows, actions), targets, valid)


class Sarsa(Tabular):
    """Towards the action that is going to be taken."""

    def _update(self, rows, actions, rewards, reached, intended, going_on, valid):
        targets = rewards + self.config.gamma * going_on * self.values[0][reached, intended]
        self._towards(self.values[0], (rows, actions), targets, valid)


class DoubleQLearning(Tabular):
    """Van Hasselt's double Q-learning: one table chooses the best action, the other one values it, by lot."""

    tables = 2

    def _update(self, rows, actions, rewards, reached, intended, going_on, valid):
        first = (self._streams.bits() >> np.uint64(63)).astype(bool)
        flat = self.values.reshape(-1, self.actions)
        size = self.values.shape[1]
        own, other = np.where(first, 0, size), np.where(first, size, 0)
        best = flat[reached + own].argmax(1)
        targets = rewards + self.config.gamma * going_on * flat[reached + other, best]
        self._towards(flat, (rows + own, actions), targets, valid)
