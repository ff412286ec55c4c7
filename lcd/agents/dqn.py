"""Deep Q-networks of all members of a run together (Mnih et al. 2015)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from torch import Tensor
from torch.nn import functional

from lcd.agents.batched import Layers, Learning, Rows, average, clip, initial, outputs_of, shared_out
from lcd.agents.off_policy import OffPolicy
from lcd.agents.settings import DQNConfig
from lcd.envs.errors import InputError

SHARED_OUT = 2**19
"""Weights between hidden layers of the members that go through a bout together: what was measured to be fastest."""
Values = Callable[[Layers, Tensor], Tensor]


class DQN(OffPolicy):
    """DQN with the Huber loss: uniform replay, a target network, ε-greedy play, greedy evaluation."""

    Config = DQNConfig
    flat_actions = True

    def __init__(self, config: DQNConfig, env: VectorEnv, seeds: Sequence[int]):
        if not isinstance(env.single_action_space, spaces.Discrete):
            raise InputError(f"agent=dqn needs discrete actions, not {env.single_action_space}.")
        super().__init__(config, env, seeds)
        self.actions = int(env.single_action_space.n)
        self.network = Rows.of(self.first_layers())
        self.target, self.renewed = self.network.clone(), 0
        self.epsilon = 1.0
        self.shards = [Shard(self, part) for part in shared_out(len(self.seeds), SHARED_OUT // config.width**2)]

    @property
    def layers(self) -> Layers:
        """The layers of all members, as they are."""
        return self.network.fixed

    def first_layers(self) -> Layers:
        """The layers of all members before they learn."""
        return initial(pairwise((self.inputs, self.config.width, self.config.width, self.actions)), self.seeds)

    def values(self, layers: Layers, inputs: Tensor) -> Tensor:
        """What the network that these layers make says that each action is worth, (members, batch, actions)."""
        return outputs_of(layers, inputs)

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
        return torch.from_numpy(np.where(stray, random, self.commands(self.act(self.encode(observations), None)[0])))

    def bout(self, done: int) -> None:
        """Several updates of every member, towards a target network that is renewed now and then."""
        if done - self.renewed >= self.config.target_every:
            self.renewed = done
            self.target.numbers.copy_(self.network.numbers)
        super().bout(done)

    @property
    def scalars(self) -> dict[str, Any]:
        """What the last bout was like, and how much is explored."""
        return {**super().scalars, "epsilon": self.epsilon}

    @torch.no_grad()
    def act(self, features: Tensor, draws: Tensor | None) -> tuple[Tensor, None, None]:
        """The greedy actions, (members, copies)."""
        return self.values(self.layers, features).argmax(-1), None, None

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

    Args:
        agent: all members.
        members: which of them.
    """

    def __init__(self, agent: DQN, members: slice):
        self.members, self.config, self.values = members, agent.config, agent.values
        self.network, self.target = agent.network[members], agent.target[members]
        self.learns = Learning(self.network.numbers, agent.config.learning_rate)

    def update(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """One step of each member's optimiser; losses and the gradients' norms, (members,) each."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.config.precision == "bf16-mixed"):
            losses = loss(self.network.layers, self.target.fixed, batch, self.config.gamma, self.values)
        gradient = self.network.gradient(losses)
        norms = clip(gradient, self.config.max_grad_norm)
        self.learns.step(gradient)
        return {"loss": losses.detach(), "grad_norm": norms}


def loss(layers: Layers, target: Layers, batch: dict[str, Tensor], gamma: float, values: Values = outputs_of) -> Tensor:
    """Huber's loss of the temporal-difference errors, averaged over each member's transitions, (members,)."""
    with torch.no_grad():
        following = values(target, batch["reached"]).float().amax(-1)
        goals = batch["rewards"] + gamma * batch["going_on"] * following
    mine = values(layers, batch["seen"]).float().gather(-1, batch["actions"].long()[..., None]).squeeze(-1)
    errors = functional.smooth_l1_loss(mine, goals, reduction="none")
    return average(errors, batch["valid"])
