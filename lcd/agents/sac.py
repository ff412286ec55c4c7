"""Soft actor-critic of all members of a run together (Haarnoja et al. 2018): the entropy's weight finds itself."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from lcd.agents.batched import LANES, Learning, average, outputs_of
from lcd.agents.replay_settings import SACConfig
from lcd.agents.twin_critics import TwinCritics, both, off_by, worth

LOG_DEVIATIONS = (-20.0, 2.0)
"""The bounds of what the actor says of its deviations."""
TINY = 1e-6


class SAC(TwinCritics):
    """SAC: a normal distribution squashed by tanh, twin critics; evaluation draws actions as training does."""

    Config = SACConfig
    heads = 2

    def __init__(self, config: SACConfig, env: VectorEnv, seeds: Sequence[int]):
        super().__init__(config, env, seeds)
        self.target = self.critics.clone()
        # One number a member; the rest fills its row up.
        self.log_weight = torch.zeros(len(self.seeds), LANES)
        self.shards = [Shard(self, members) for members in self.in_shards()]

    def batch(self, members: slice, places: np.ndarray) -> dict[str, Tensor]:
        """Transitions, and noise for the actions here and for those that follow."""
        noise = self.normals(members, 2)
        return super().batch(members, places) | {"noise": noise[0], "noise_then": noise[1]}

    def tried(self, features: Tensor, normal: Tensor) -> Tensor:
        """Actions drawn from the policies."""
        return squashed(outputs_of(self.actor.layers, features), normal)[0]

    @torch.no_grad()
    def act(self, features: Tensor, draws: Tensor | None) -> tuple[Tensor, None, None]:
        """Actions (members, copies, numbers); without draws those in the policies' middle."""
        outputs = outputs_of(self.actor.layers, features)
        if draws is None:
            return outputs.chunk(2, -1)[0].tanh(), None, None
        # Draws are 24-bit fractions, so that keeping off 0 by half a step changes no other value.
        return squashed(outputs, torch.special.ndtri(draws.clamp(min=2.0**-25)))[0], None, None


class Shard:
    """Some members of an agent, with optimisers of their own.

    Args:
        agent: all members.
        members: which of them.
    """

    def __init__(self, agent: SAC, members: slice):
        self.members, self.config = members, agent.config
        self.actor, self.critics, self.target = (
            agent.actor[members],
            agent.critics[both(members)],
            agent.target[both(members)],
        )
        self.log_weight = agent.log_weight[members]
        self.goal = -float(agent.numbers)
        rate = agent.config.learning_rate
        self.actor_learns, self.critics_learn = Learning(self.actor.numbers, rate), Learning(self.critics.numbers, rate)
        self.weight_learns = Learning(self.log_weight, rate)

    def update(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """One step of critics, actors and the entropy's weights; what they were like, (members,) each."""
        valid, weight = batch["valid"], self.log_weight[:, :1].exp()
        critic_losses = 0.5 * off_by(self.critics.layers, batch, self.goals(batch, weight))
        self.critics_learn.step(self.critics.gradient(critic_losses))
        actions, log_probs = squashed(outputs_of(self.actor.layers, batch["seen"]), batch["noise"])
        lower = worth(self.critics.fixed, batch["seen"], actions).amin(1)
        actor_losses = average(weight * log_probs - lower, valid)
        self.actor_learns.step(self.actor.gradient(actor_losses))
        slope = torch.zeros_like(self.log_weight)
        slope[:, 0] = -average(log_probs.detach() + self.goal, valid)
        self.weight_learns.step(slope)
        self.target.numbers.lerp_(self.critics.numbers, self.config.tau)
        told = {"critic_loss": critic_losses.sum(1), "actor_loss": actor_losses, "entropy_weight": weight[:, 0]}
        return {name: value.detach() for name, value in told.items()}

    @torch.no_grad()
    def goals(self, batch: dict[str, Tensor], weight: Tensor) -> Tensor:
        """What the critics' estimates should be, (members, batch)."""
        actions, log_probs = squashed(outputs_of(self.actor.fixed, batch["reached"]), batch["noise_then"])
        following = worth(self.target.fixed, batch["reached"], actions).amin(1) - weight * log_probs
        return batch["rewards"] + self.config.gamma * batch["going_on"] * following


def squashed(outputs: Tensor, normal: Tensor) -> tuple[Tensor, Tensor]:
    """Actions (…, numbers) of policies with these outputs at normal noise, and their log-probabilities (…)."""
    mean, log_deviation = outputs.chunk(2, -1)
    log_deviation = log_deviation.clamp(*LOG_DEVIATIONS)
    actions = (mean + log_deviation.exp() * normal).tanh()
    log_probs = -0.5 * normal.square() - log_deviation - 0.5 * math.log(2 * math.pi)
    return actions, (log_probs - (1 - actions.square() + TINY).log()).sum(-1)
