"""Augmented random search of all members of a run together (Mania et al. 2018): linear policies, no gradients.

A member's copies play its candidates, an episode each: the policy with a random direction added, and the same with it
taken away. When the last candidate is done the policy moves along the directions that made most of a difference. Every
member goes through its candidates at its own pace, and so gets what it would get alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from torch import Tensor

from lcd.agents.learner import Evaluate, Learner
from lcd.agents.settings import ARSConfig
from lcd.agents.stepping import Stepper
from lcd.envs.errors import InputError
from lcd.envs.streams import Streams, seed_sequence

IDLE = -1
"""The candidate of a copy whose member has none left: it plays the policy as it is, and that counts for nothing."""
TINY = 1e-6


class ARS(Learner):
    """ARS V2-t (V1-t without `normalise`): the best directions, steps divided by the returns' deviation."""

    Config = ARSConfig

    def __init__(self, config: ARSConfig, env: VectorEnv, seeds: Sequence[int]):
        super().__init__(config, env, seeds)
        actions, members = env.single_action_space, len(self.seeds)
        if not isinstance(actions, spaces.Discrete | spaces.Box):
            raise InputError(f"agent=ars needs discrete actions or a box, not {actions}.")
        self.discrete = isinstance(actions, spaces.Discrete)
        outputs = int(actions.n) if self.discrete else int(np.prod(actions.shape))
        inputs = int(np.prod(env.single_observation_space.shape))
        self.weights = np.zeros((members, outputs, inputs))
        self.directions = np.zeros((members, config.directions, outputs, inputs))
        self.seen = Moments(members, inputs)
        self.mean, self.scale = np.zeros((members, inputs)), np.ones((members, inputs))
        (self._streams,) = Streams.spawn([seed_sequence(seed, "exploration") for seed in self.seeds])
        candidates = (members, 2 * config.directions)
        self._returns, self._done = np.zeros(candidates), np.zeros(candidates, dtype=bool)
        self._next = np.zeros(members, dtype=int)
        self._candidate = np.full((members, config.copies), IDLE)
        self._sums = np.zeros((members, config.copies))
        self._told = np.full((3, members), np.nan)

    def learn(self, steps: int, every: int, evaluate: Evaluate) -> None:
        """Train, one step of every copy at a time."""
        copies = self.config.copies
        stepper, last = Stepper(self.env), -(-steps // copies)
        evaluate(0)
        observations = self._by_member(stepper.reset())
        self._begin(np.ones(len(self.seeds), dtype=bool))
        self._take_candidates(np.ones(self._candidate.shape, dtype=bool))
        for number in range(1, last + 1):
            self.seen.add(observations)
            outcome = stepper.step(self.commands(self._explore(observations)))
            self.log.add(outcome)
            self._sums += (outcome.rewards * outcome.valid).reshape(self._sums.shape)
            if outcome.dones.any():
                self._end_episodes(outcome.dones.reshape(self._sums.shape))
            observations = self._by_member(outcome.observations)
            done, before = number * copies, (number - 1) * copies
            if number == last or done // every > before // every:
                evaluate(done)

    def _end_episodes(self, ended: np.ndarray) -> None:
        """Note what candidates reached, move the members that are through with theirs, and hand out the next ones."""
        member, copy = np.nonzero(ended & (self._candidate != IDLE))
        candidate = self._candidate[member, copy]
        self._returns[member, candidate], self._done[member, candidate] = self._sums[member, copy], True
        self._sums[ended] = 0.0
        through = np.asarray(self._done.all(axis=1))
        if through.any():
            self._move(through)
            self._begin(through)
        self._take_candidates(ended)

    def _begin(self, members: np.ndarray) -> None:
        """Draw new directions for some members."""
        shape = self.directions.shape[1:]
        self.directions[members] = self._streams.normal(np.flatnonzero(members), int(np.prod(shape))).reshape(
            -1, *shape
        )
        self._done[members], self._next[members] = False, 0

    def _take_candidates(self, free: np.ndarray) -> None:
        """Give the copies that begin an episode the next candidates of their members, as far as there are any."""
        for copy in range(free.shape[1]):
            members = np.flatnonzero(free[:, copy])
            left = self._next[members] < self._done.shape[1]
            self._candidate[members, copy] = np.where(left, self._next[members], IDLE)
            self._next[members[left]] += 1

    def _move(self, members: np.ndarray) -> None:
        """Move some members' policies along their best directions."""
        config, every = self.config, np.flatnonzero(members)
        returns = self._returns[every].reshape(len(every), 2, config.directions)
        best = np.argsort(-returns.max(axis=1), axis=1, kind="stable")[:, : config.top]
        plus, minus = (np.take_along_axis(returns[:, sign], best, axis=1) for sign in (0, 1))
        deviation = np.concatenate([plus, minus], axis=1).std(axis=1, ddof=1)
        chosen = self.directions[every[:, None], best]
        step = config.learning_rate / (config.top * deviation + TINY)
        moved = step[:, None, None] * np.einsum("mk,mkoi->moi", plus - minus, chosen)
        self.weights[every] += moved
        told = (returns.mean(axis=(1, 2)), deviation, np.sqrt(np.square(moved).sum(axis=(1, 2))))
        self._told[:, every] = np.stack(told)
        if config.normalise:
            self.mean[every], self.scale[every] = self.seen.mean[every], 1 / self.seen.deviation(every)

    @property
    def scalars(self) -> dict[str, Any]:
        """What each member's last move was like."""
        names = ("candidates_return", "best_deviation", "step_norm")
        return dict(zip(names, self._told, strict=True)) | {"learning_rate": self.config.learning_rate}

    # Acting

    def _by_member(self, observations: np.ndarray) -> np.ndarray:
        """(members, copies, inputs)."""
        return observations.reshape(len(self.seeds), -1, self.weights.shape[-1]).astype(np.float64)

    def _explore(self, observations: np.ndarray) -> np.ndarray:
        """What each copy's candidate does."""
        sign = np.where(self._candidate < self.config.directions, 1.0, -1.0) * (self._candidate != IDLE)
        number = self._candidate % self.config.directions
        seen = self._normalised(observations)
        outputs = np.einsum("moi,mci->mco", self.weights, seen)
        chosen = self.directions[np.arange(len(self.seeds))[:, None], number]
        return outputs + (self.config.deviation * sign)[..., None] * np.einsum("mcoi,mci->mco", chosen, seen)

    def _normalised(self, observations: np.ndarray) -> np.ndarray:
        return (observations - self.mean[:, None]) * self.scale[:, None]

    def encode(self, observations: np.ndarray) -> np.ndarray:
        """Observations as the policies take them, (members, copies, inputs)."""
        return self._normalised(self._by_member(observations))

    def act(self, features: np.ndarray, draws: Tensor | None) -> tuple[np.ndarray, None, None]:
        """What the policies put out; nothing about them is random."""
        return np.einsum("moi,mci->mco", self.weights, features), None, None

    def commands(self, actions: np.ndarray) -> np.ndarray:
        """The action of the greatest output; of a box, outputs in units in which it is from -1 to 1."""
        flat = actions.reshape(-1, actions.shape[-1])
        if self.discrete:
            return flat.argmax(axis=1)
        box = self.env.single_action_space
        assert isinstance(box, spaces.Box)
        middle, reach = (box.high.astype(np.float64) + box.low) / 2, (box.high.astype(np.float64) - box.low) / 2
        return (middle + reach * flat.clip(-1, 1).reshape(-1, *box.shape)).astype(box.dtype)

    def finite(self) -> np.ndarray:
        """Which members' policies are finite."""
        return np.asarray(np.isfinite(self.weights).all(axis=(1, 2)))

    def state_dict(self) -> dict[str, Any]:
        """The policies, (members, outputs, inputs), and how they see."""
        kept = {"weights": self.weights, "mean": self.mean, "scale": self.scale}
        return {name: torch.from_numpy(array.copy()) for name, array in kept.items()}


class Moments:
    """Running mean and deviation of every member's observations.

    Args:
        members: how many there are.
        inputs: numbers of an observation.
    """

    def __init__(self, members: int, inputs: int):
        self.count = 0
        self.mean, self.squares = np.zeros((members, inputs)), np.zeros((members, inputs))

    def add(self, observations: np.ndarray) -> None:
        """Take in observations (members, copies, inputs), by Chan's parallel formula."""
        number = observations.shape[1]
        mean = observations.mean(axis=1)
        delta, total = mean - self.mean, self.count + number
        self.squares += np.square(observations - mean[:, None]).sum(axis=1) + delta**2 * (self.count * number / total)
        self.mean += delta * (number / total)
        self.count = total

    def deviation(self, members: np.ndarray) -> np.ndarray:
        """The deviations of some members' observations; 1 where they never change."""
        deviation = np.sqrt(self.squares[members] / max(1, self.count - 1))
        return np.where(deviation > TINY, deviation, 1.0)
