"""What SAC and TD3 share: an actor of continuous actions, and two critics of which the lower one is believed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from torch import Tensor

from lcd.agents.batched import Layers, Rows, average, initial, outputs_of, shared_out
from lcd.agents.distributions import Gaussian
from lcd.agents.off_policy import OffPolicy
from lcd.envs.errors import InputError
from lcd.envs.streams import Streams, seed_sequence

SHARED_OUT = 2**18
"""Weights between hidden layers of the members that go through a bout together: what was measured to be fastest."""
ACTOR, CRITICS = 0, (1, 2)
"""Which of a member's networks they are, for their initialisation."""


class TwinCritics(OffPolicy):
    """An agent with an actor and two critics; actions are in units in which the box is from -1 to 1."""

    heads: ClassVar[int]
    """Outputs of the actor for each number of an action."""

    def __init__(self, config: Any, env: VectorEnv, seeds: Sequence[int]):
        box, name = env.single_action_space, type(self).__name__.lower()
        if not (isinstance(box, spaces.Box) and np.isfinite(box.low).all() and np.isfinite(box.high).all()):
            raise InputError(f"agent={name} needs continuous actions, a box with finite bounds, not {box}.")
        self.policy = Gaussian(box)
        self.draws = self.policy.draws
        self.numbers = self.policy.deviations
        super().__init__(config, env, seeds, self.numbers)
        hidden = (config.width, config.width)
        sizes = (self.inputs, *hidden, self.heads * self.numbers)
        self.actor = Rows.of(initial(pairwise(sizes), self.seeds, ACTOR))
        sizes = (self.inputs + self.numbers, *hidden, 1)
        both = zip(*(initial(pairwise(sizes), self.seeds, network) for network in CRITICS), strict=True)
        self.critics = Rows.of([torch.stack(pair, 1).flatten(0, 1) for pair in both])
        (self._noise,) = Streams.spawn([seed_sequence(s, "shuffle", 1) for s in self.seeds])

    def in_shards(self) -> list[slice]:
        """The members that go through a bout together."""
        return shared_out(len(self.seeds), SHARED_OUT // self.config.width**2)

    def explore(self, observations: np.ndarray, done: int, steps: int) -> Tensor:
        """Anything that is possible at first, then what the actor does, with noise."""
        shape = (len(self.seeds), self.config.copies, self.numbers)
        if done < self.config.start:
            return torch.from_numpy(2 * self._play.uniform(count=self.numbers).reshape(shape) - 1).float()
        normal = torch.from_numpy(self._play.normal(count=self.numbers).reshape(shape)).float()
        with torch.no_grad():
            return self.tried(self.encode(observations), normal)

    def tried(self, features: Tensor, normal: Tensor) -> Tensor:
        """Actions of training, given normal noise, (members, copies, numbers)."""
        raise NotImplementedError

    def normals(self, members: slice, count: int) -> Tensor:
        """Normal noise for an update of some members: (count, members, batch, numbers)."""
        chosen = np.arange(len(self.seeds))[members]
        shape = (len(chosen), count, self.config.batch, self.numbers)
        drawn = self._noise.normal(chosen, int(np.prod(shape[1:])))
        return torch.from_numpy(drawn.reshape(shape).astype(np.float32)).transpose(0, 1)

    def commands(self, actions: Tensor) -> np.ndarray:
        """The actions of all copies, within the bounds of the box."""
        return self.policy.commands(actions)

    def finite(self) -> np.ndarray:
        """Which members' networks are finite."""
        actor, critics = self.actor.numbers.isfinite().all(1), self.critics.numbers.isfinite().all(1)
        return (actor & critics.view(-1, 2).all(1)).numpy()

    def state_dict(self) -> dict[str, Any]:
        """The layers, with an axis of members in front, and of the critics one of the two after it."""
        kept = {f"actor{number}": layer.detach().clone() for number, layer in enumerate(self.actor.layers)}
        for number, layer in enumerate(self.critics.layers):
            kept[f"critics{number}"] = layer.detach().clone().unflatten(0, (-1, 2))
        return kept


def both(members: slice) -> slice:
    """The rows of these members' critics."""
    return slice(2 * members.start, 2 * members.stop)


def worth(critics: Layers, seen: Tensor, actions: Tensor) -> Tensor:
    """What both critics think of actions, (members, 2, batch)."""
    inputs = torch.cat([seen, actions], -1)
    twice = inputs[:, None].expand(-1, 2, -1, -1).flatten(0, 1)
    return outputs_of(critics, twice).view(len(seen), 2, -1)


def off_by(critics: Layers, batch: dict[str, Tensor], goals: Tensor) -> Tensor:
    """The mean squared error of each critic, (members, 2)."""
    errors = worth(critics, batch["seen"], batch["actions"]) - goals[:, None]
    return average(errors.square(), batch["valid"][:, None])
