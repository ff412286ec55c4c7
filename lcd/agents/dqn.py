"""Deep Q-networks of all members of a run together (Mnih et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from torch import Tensor
from torch.nn import functional

from lcd.agents.batched import Layers, Learning, Rows, average, clip, initial, outputs_of, shared_out
from lcd.agents.convolutions import Encoder
from lcd.agents.every_state import EveryState
from lcd.agents.off_policy import OffPolicy
from lcd.agents.replay_settings import DQNConfig
from lcd.envs.errors import InputError
from lcd.envs.spaces import is_image

SHARED_OUT = 2**19
"""Weights between hidden layers of the members that go through a bout together: what was measured to be fastest."""


class DQN(OffPolicy):
    """DQN with the Huber loss: uniform replay, a target network, ε-greedy play, greedy evaluation."""

    Config = DQNConfig
    flat_actions = True
    shards: Sequence[Shard]

    def __init__(self, config: DQNConfig, env: VectorEnv, seeds: Sequence[int]):
        if not isinstance(env.single_action_space, spaces.Discrete):
            name = type(self).__name__.lower()
            raise InputError(f"agent={name} needs discrete actions, not {env.single_action_space}.")
        super().__init__(config, env, seeds)
        self.actions = int(env.single_action_space.n)
        self.encoder = encoder_for(env, config)
        self.network = Rows.of(self.first_layers())
        self.target, self.renewed = self.network.clone(), 0
        self.epsilon = 1.0
        few = self.memory.one_hot and self.inputs <= config.batch
        self.states = torch.eye(self.inputs) if few else None
        """All observations that there are, where an update may as well ask about each of them once."""
        self.shards = self.shared()

    @property
    def state_by_state(self) -> bool:
        """Are the shards `StateShard`s, who learn from numbers of states?"""
        return self.states is not None and self.config.precision == "32-true" and self.plain

    def shared(self) -> Sequence[Shard]:
        """All members, in shards."""
        config, together = self.config, SHARED_OUT // self.config.width**2
        if not self.state_by_state:
            return [self.shard(part) for part in shared_out(len(self.seeds), together)]
        # Over several updates a shard is to stay in the cache; for a single one all members share what is not products.
        everyone = together if config.updates > 1 else len(self.seeds)
        return [StateShard(self, part, together) for part in shared_out(len(self.seeds), everyone)]

    @property
    def plain(self) -> bool:
        """Are its networks layers one after the other, and is its loss `loss`?"""
        return True

    def shard(self, members: slice) -> Shard:
        """Some members, who learn together."""
        return Shard(self, members)

    @property
    def layers(self) -> Layers:
        """The layers of all members, as they are."""
        return self.network.fixed

    @property
    def sizes(self) -> list[int]:
        """Numbers that the first layer gets, and that each of the hidden ones below the head makes of them."""
        given = self.inputs if self.encoder is None else self.encoder.features
        return [given, *[self.config.width] * self.config.layers]

    def first_layers(self) -> Layers:
        """The layers of all members before they learn."""
        convolutions = [] if self.encoder is None else self.encoder.first_layers(self.seeds)
        head = [self.config.head] if self.config.head else []
        return [*convolutions, *initial(pairwise([*self.sizes, *head, self.actions]), self.seeds)]

    def encoded(self, network: Rows, inputs: Tensor) -> tuple[Layers, Tensor]:
        """The layers above convolutions, if there are any, and what they get."""
        if self.encoder is None:
            return network.layers, inputs
        count = self.encoder.layers
        return network.layers[count:], self.encoder(network.layers[:count], inputs)

    def values(self, network: Rows, inputs: Tensor) -> Tensor:
        """What networks say that each action is worth, (members, batch, actions)."""
        if self.encoder is None:
            return network.outputs(inputs, self.config.activation)
        return outputs_of(*self.encoded(network, inputs), self.config.activation)

    def worth(self, said: Tensor) -> Tensor:
        """What actions are worth, (members, batch, actions), given what networks say."""
        return said

    def at_random(self, numbers: np.ndarray, observations: np.ndarray) -> np.ndarray:
        """Actions to explore by, from whole numbers below 2³², one of each copy."""
        return (numbers * np.uint64(self.actions) >> np.uint64(32)).astype(np.int64)

    def explore(self, observations: np.ndarray, done: int, steps: int) -> Tensor:
        """ε-greedy actions, from one word of each copy's stream: halves decide whether, and which."""
        config = self.config
        self.epsilon = 1 - min(1.0, done / (config.exploration * steps)) * (1 - config.epsilon)
        words = self._play.bits()
        stray = (words >> np.uint64(32)) * 2.0**-32 < self.epsilon
        random = self.at_random(words & np.uint64(0xFFFFFFFF), observations)
        if stray.all():
            return torch.from_numpy(random)
        return torch.from_numpy(np.where(stray, random, self.commands(self.greedy(self.encode(observations)))))

    def bout(self, done: int) -> None:
        """Several updates of every member, towards a target network that is renewed now and then."""
        if done - self.renewed >= self.config.target_every:
            self.renewed = done
            self.target.numbers.copy_(self.network.numbers)
            for shard in self.shards:
                shard.renew()
        super().bout(done)

    @property
    def scalars(self) -> dict[str, Any]:
        """What the last bout was like, and how much is explored."""
        return {**super().scalars, "epsilon": self.epsilon}

    def batch(self, members: slice, places: np.ndarray) -> dict[str, Tensor]:
        """What some members learn from in an update: their transitions at these places."""
        return self.memory.tensors(self.memory.at(members, places), numbers=self.state_by_state)

    def act(self, features: Tensor, draws: Tensor | None) -> tuple[Tensor, None, None]:
        """The greedy actions, (members, copies)."""
        return self.greedy(features), None, None

    @torch.no_grad()
    def greedy(self, features: Tensor) -> Tensor:
        """The actions that are best in training."""
        if self.states is None:
            return self.worth(self.values(self.network, features)).argmax(-1)
        best = torch.cat([shard.best() for shard in self.shards])
        return best.gather(-1, features.argmax(-1))

    def commands(self, actions: Tensor) -> np.ndarray:
        """The actions of all copies."""
        return actions.flatten().numpy()

    def finite(self) -> np.ndarray:
        """Which members' networks are finite."""
        return self.network.numbers.isfinite().all(1).numpy()

    def state_dict(self) -> dict[str, Any]:
        """The layers, with an axis of members in front."""
        return {f"layer{number}": layer.clone() for number, layer in enumerate(self.layers)}


class Shard:
    """Some members of an agent, with an optimiser of their own.

    Where observations are few, networks are asked about all of them, once for each change of the weights: the learned
    ones after an update, which serves play and the next update, the target when it is new.

    Args:
        agent: all members.
        members: which of them.

    Attributes:
        known: what the learned networks say of each observation, if those are few.
        aims: the same of the target networks.
    """

    def __init__(self, agent: DQN, members: slice):
        self.agent, self.members, self.config = agent, members, agent.config
        self.network, self.target = agent.network[members], agent.target[members]
        self.learns = Learning(self.network.numbers, agent.config.learning_rate, agent.config.adam_eps)
        self.known, self.aims = self.every_state(self.network), self.every_state(self.target)

    def renew(self) -> None:
        """Take in that the target networks are new."""
        self.aims = self.every_state(self.target)

    def update(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """One step of each member's optimiser; losses and the gradients' norms, (members,) each."""
        with self.precision:
            losses = self.losses(batch)
        gradient = self.network.gradient(losses)
        norms = clip(gradient, self.config.max_grad_norm)
        self.learns.step(gradient)
        self.known = self.every_state(self.network)
        return {"loss": losses.detach(), "grad_norm": norms}

    def losses(self, batch: dict[str, Tensor]) -> Tensor:
        """Each member's loss, (members,)."""
        with torch.no_grad():
            following = self.values(self.target, batch["reached"], self.aims)
        return loss(self.values(self.network, batch["seen"], self.known), following, batch, self.config.gamma)

    def values(self, network: Rows, inputs: Tensor, known: Tensor | None) -> Tensor:
        """What networks say of a batch, (members, batch, actions), given what they say of every observation."""
        return (self.agent.values(network, inputs) if known is None else inputs @ known).float()

    def every_state(self, network: Rows) -> Tensor | None:
        """What networks say of every observation, if those are few."""
        if self.agent.states is None:
            return None
        with self.precision, torch.set_grad_enabled(network is self.network):
            return self.said_of(network, self.states())

    def states(self) -> Tensor:
        """Every observation, for each member."""
        assert self.agent.states is not None
        return self.agent.states.expand(len(self.network.numbers), -1, -1)

    def best(self) -> Tensor:
        """The best action in play for every observation, (members, observations)."""
        assert self.known is not None
        return self.agent.worth(self.known.detach()).argmax(-1)

    def said_of(self, network: Rows, inputs: Tensor) -> Tensor:
        """What networks say, as they are in play."""
        return self.agent.values(network, inputs)

    @property
    def precision(self) -> torch.autocast:
        """Of the products of an update."""
        return torch.autocast("cpu", torch.bfloat16, enabled=self.config.precision == "bf16-mixed")


class StateShard(Shard):
    """Some members whose networks are asked about every state there is, once for each change of the weights.

    Products and steps are done for a few members after the other, what is between them for all at once.

    Args:
        agent: all members.
        members: which of them.
        together: how many of them a CPU's caches hold.

    Attributes:
        said: what the learned networks say of every state, (members, states, actions).
        goals: the same of the target networks.
    """

    def __init__(self, agent: DQN, members: slice, together: int):
        self.agent, self.members, self.config = agent, members, agent.config
        network = agent.network[members]
        self.said = torch.empty(len(network.numbers), agent.inputs, agent.actions)
        self.parts = []
        for part in shared_out(len(network.numbers), together):
            asked = EveryState(network[part], agent.config.activation, self.said[part].numpy())
            learns = Learning(asked.rows.numbers, agent.config.learning_rate, agent.config.adam_eps)
            self.parts.append((part, asked, learns))
            asked.ask()
        self.goals = self.said.clone()
        self._best: Tensor | None = None

    def renew(self) -> None:
        """Take in that the target networks are new: what was learned until now."""
        self.goals = self.said.clone()

    def update(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """One step of each member's optimiser; losses and the gradients' norms, (members,) each."""
        asked = self.said.requires_grad_()
        seen, reached = (batch[name].long()[..., None] for name in ("seen", "reached"))
        losses = loss(asked.take_along_dim(seen, 1), self.goals.take_along_dim(reached, 1), batch, self.config.gamma)
        (slope,) = torch.autograd.grad(losses.sum(), asked)
        self.said, self._best = asked.detach(), None
        norms = []
        for part, networks, learns in self.parts:
            gradient = networks.towards(slope[part].numpy())
            norms.append(clip(gradient, self.config.max_grad_norm))
            learns.step(gradient)
            networks.ask()
        return {"loss": losses.detach(), "grad_norm": torch.cat(norms)}

    def best(self) -> Tensor:
        """The best action for every state, (members, states)."""
        if self._best is None:
            self._best = self.said.argmax(-1)
        return self._best


def encoder_for(env: VectorEnv, config: DQNConfig) -> Encoder | None:
    """Convolutions for what an environment shows, if they are asked for."""
    if config.encoder == "mlp":
        return None
    seen = env.single_observation_space
    if not is_image(seen):
        raise InputError(f"agent.encoder=cnn is for images, not for observations of shape {seen.shape}: give mlp.")
    return Encoder(seen.shape if len(seen.shape) == 3 else (*seen.shape, 1))


def loss(said: Tensor, following: Tensor, batch: dict[str, Tensor], gamma: float) -> Tensor:
    """Huber's loss of the temporal-difference errors, averaged over each member's transitions, (members,).

    Args:
        said: what actions are worth where they were taken, (members, batch, actions).
        following: what they are worth in what was reached.
        batch: the transitions.
        gamma: discount.
    """
    goals = batch["rewards"] + gamma * batch["going_on"] * following.amax(-1)
    mine = said.gather(-1, batch["actions"].long()[..., None]).squeeze(-1)
    errors = functional.smooth_l1_loss(mine, goals, reduction="none")
    return average(errors, batch["valid"])
