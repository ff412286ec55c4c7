"""Advantage actor-critic (Mnih et al. 2016) without the asynchrony: PPO that learns once from each rollout.

Where a policy has not moved since it acted, the ratio that PPO clips is 1, and its gradient that of the policy's
log-probability times the advantage. What A3C's workers do with gradients of weights that others have changed meanwhile
has no counterpart here.
"""

from __future__ import annotations

from torch import nn

from lcd.agents.networks import ActorAndCritic, ActorCritic
from lcd.agents.ppo import PPO
from lcd.agents.settings import A2CConfig


class A2C(PPO):
    """A2C: A3C with one worker that waits for its gradient."""

    Config = A2CConfig
    config: A2CConfig

    def network(self, shape: tuple[int, ...]) -> nn.Module:
        """One seed's network."""
        config, policy = self.config, self.policy
        how = (shape, policy.outputs, config.encoder, config.width, policy.deviations, config.initialisation)
        kind = ActorAndCritic if config.networks == "separate" else ActorCritic
        return kind(*how, config.layers)
