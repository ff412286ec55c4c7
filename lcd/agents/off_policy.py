"""What agents share that learn from a memory of what they did, in bouts of updates between stretches of play."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from lcd.agents.frame_replay import FrameReplay
from lcd.agents.learner import Evaluate, Learner
from lcd.agents.networks import as_float
from lcd.agents.replay import Replay
from lcd.agents.stepping import Step, Stepper
from lcd.envs.spaces import is_one_hot, stacked_frames
from lcd.envs.streams import Streams, seed_sequence
from lcd.process.deadlines import beat


class Shard(Protocol):
    """Some members' networks with an optimiser of their own; they share the memory of all members' networks."""

    members: slice

    def update(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """One step of each member's optimisers; what it was like by name, (members,) each."""
        ...


class OffPolicy(Learner):
    """An agent with a uniform memory; it says how it explores, and its shards how they learn.

    Args:
        config, env, seeds: as every learner's.
        outputs: numbers of an action; None where an action is one of several.
    """

    shards: Sequence[Shard]

    def __init__(self, config: Any, env: VectorEnv, seeds: Sequence[int], outputs: int | None = None):
        super().__init__(config, env, seeds)
        members, seen = len(self.seeds), env.single_observation_space
        self.inputs = int(np.prod(seen.shape))
        one_hot = outputs is None and is_one_hot(env)
        if (stacked := stacked_frames(env)) > 1 and outputs is None:
            self.memory: Replay = FrameReplay(members, config.buffer, self.inputs, stacked, config.copies)
        else:
            self.memory = Replay(members, config.buffer, self.inputs, seen.dtype, outputs, one_hot)
        self.last_bout: dict[str, Tensor] = {}
        copies = range(config.copies)
        (self._play,) = Streams.spawn([seed_sequence(s, "exploration", c) for s in self.seeds for c in copies])
        (self._replay,) = Streams.spawn([seed_sequence(s, "shuffle") for s in self.seeds])

    def learn(self, steps: int, every: int, evaluate: Evaluate) -> None:
        """Train, one step of every copy at a time."""
        config, copies = self.config, self.config.copies
        stepper, last = Stepper(self.env), -(-steps // copies)
        evaluate(0)
        observations = stepper.reset()
        for number in range(1, last + 1):
            before, done = (number - 1) * copies, number * copies
            actions = self.explore(observations, before, steps)
            outcome = stepper.step(self.commands(actions))
            self.log.add(outcome)
            self._remember(observations, actions.numpy(), outcome)
            observations = outcome.observations
            if done >= config.start and done // config.train_every > before // config.train_every:
                self.bout(done)
            self.went_on(done)
            if number == last or done // every > before // every:
                evaluate(done)

    def explore(self, observations: np.ndarray, done: int, steps: int) -> Tensor:
        """What all copies try, after so many of the steps of training: actions as `act` gives them."""
        raise NotImplementedError

    def rewards(self, outcome: Step, reached: np.ndarray) -> np.ndarray:
        """What is learned from, given a step and the observations that it led to."""
        return outcome.rewards

    def _remember(self, observations: np.ndarray, actions: np.ndarray, outcome: Step) -> None:
        """Keep one step of every copy; where an episode ended, what it ended with."""
        reached = outcome.observations
        if outcome.final is not None and outcome.dones.any():
            ended = outcome.dones.reshape(-1, *[1] * (reached.ndim - 1))
            reached = np.where(ended, outcome.final, reached)
        going_on = ~outcome.terminated
        if outcome.final is None:
            # Of an episode that was cut off nobody knows what came next.
            going_on = ~outcome.dones
        rewards = self.rewards(outcome, reached)
        self.memory.add(observations, actions, rewards, reached, going_on, outcome.valid, outcome.dones)

    def bout(self, done: int) -> None:
        """Several updates of every member, a shard at a time, after so many steps."""
        config = self.config
        chosen = self._replay.integers(self.memory.filled, count=config.updates * config.batch)
        for shard in self.shards:
            told = [shard.update(batch) for batch in self.batches(shard.members, chosen[shard.members])]
            for name in dict.fromkeys(name for update in told for name in update):
                given = [update[name] for update in told if name in update]
                mean = given[0] if len(given) == 1 else torch.stack(given).mean(0)
                self.last_bout.setdefault(name, torch.full((len(self.seeds),), torch.nan))[shard.members] = mean
        beat()

    @property
    def scalars(self) -> dict[str, Any]:
        """What the last bout was like."""
        return {**self.last_bout, "learning_rate": self.config.learning_rate}

    def batches(self, members: slice, chosen: np.ndarray) -> Iterator[dict[str, Tensor]]:
        """What some members learn from in a bout, one update after the other, given places that were drawn for it."""
        for places in np.split(chosen, self.config.updates, axis=1):
            yield self.batch(members, places)

    def batch(self, members: slice, places: np.ndarray) -> dict[str, Tensor]:
        """What some members learn from in an update: their transitions at these places."""
        return self.memory.sample(members, places)

    def encode(self, observations: np.ndarray) -> Tensor:
        """Observations as the networks take them, (members, copies, inputs)."""
        return as_float(torch.from_numpy(observations)).reshape(len(self.seeds), -1, self.inputs)
