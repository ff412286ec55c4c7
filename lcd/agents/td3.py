"""Twin delayed deep deterministic policy gradients of all members of a run together (Fujimoto et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from lcd.agents.batched import Learning, average, outputs_of
from lcd.agents.replay_settings import TD3Config
from lcd.agents.twin_critics import TwinCritics, both, off_by, worth


class TD3(TwinCritics):
    """TD3: a deterministic actor that is updated less often than its twin critics, whose goals are smoothed."""

    Config = TD3Config
    heads = 1

    def __init__(self, config: TD3Config, env: VectorEnv, seeds: Sequence[int]):
        super().__init__(config, env, seeds)
        self.target_actor, self.target = self.actor.clone(), self.critics.clone()
        self.shards = [Shard(self, members) for members in self.in_shards()]

    def batch(self, members: slice, places: np.ndarray) -> dict[str, Tensor]:
        """Transitions, and noise for the actions that follow."""
        return super().batch(members, places) | {"noise_then": self.normals(members, 1)[0]}

    def tried(self, features: Tensor, normal: Tensor) -> Tensor:
        """The actors' actions, with noise."""
        return (self.act(features, None)[0] + self.config.noise * normal).clamp(-1, 1)

    @torch.no_grad()
    def act(self, features: Tensor, draws: Tensor | None) -> tuple[Tensor, None, None]:
        """The actors' actions (members, copies, numbers); nothing about them is random."""
        return outputs_of(self.actor.layers, features).tanh(), None, None


class Shard:
    """Some members of an agent, with optimisers of their own.

    Args:
        agent: all members.
        members: which of them.
    """

    def __init__(self, agent: TD3, members: slice):
        self.members, self.config, self.updates = members, agent.config, 0
        self.actor, self.target_actor = agent.actor[members], agent.target_actor[members]
        self.critics, self.target = agent.critics[both(members)], agent.target[both(members)]
        rate = agent.config.learning_rate
        self.actor_learns, self.critics_learn = Learning(self.actor.numbers, rate), Learning(self.critics.numbers, rate)

    def update(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """One step of the critics and now and then of the actors; what they were like, (members,) each."""
        losses = off_by(self.critics.layers, batch, self.goals(batch))
        self.critics_learn.step(self.critics.gradient(losses))
        told = {"critic_loss": losses.detach().sum(1)}
        self.updates += 1
        if self.updates % self.config.policy_delay == 0:
            actions = outputs_of(self.actor.layers, batch["seen"]).tanh()
            first = worth(self.critics.fixed, batch["seen"], actions)[:, 0]
            actor_losses = -average(first, batch["valid"])
            self.actor_learns.step(self.actor.gradient(actor_losses))
            told["actor_loss"] = actor_losses.detach()
            for target, learned in ((self.target_actor, self.actor), (self.target, self.critics)):
                target.numbers.lerp_(learned.numbers, self.config.tau)
        return told

    @torch.no_grad()
    def goals(self, batch: dict[str, Tensor]) -> Tensor:
        """What the critics' estimates should be, (members, batch)."""
        config = self.config
        noise = (config.target_noise * batch["noise_then"]).clamp(-config.target_clip, config.target_clip)
        actions = (outputs_of(self.target_actor.fixed, batch["reached"]).tanh() + noise).clamp(-1, 1)
        following = worth(self.target.fixed, batch["reached"], actions).amin(1)
        return batch["rewards"] + config.gamma * batch["going_on"] * following
