"""Proximal policy optimisation of all seeds of a run together (Schulman et al. 2017).

The seed is the leading axis of every tensor: networks, rollouts, minibatches. Losses are averaged within a seed
and summed over seeds, so that no seed's gradient knows of the others, and one optimiser steps them all.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium.spaces import Box
from lightning.pytorch import LightningModule
from torch import Tensor, nn

from lcd.agents.frozen import FrozenFrontend
from lcd.agents.networks import ENCODERS, ActorCritic
from lcd.agents.policies import policy_for
from lcd.agents.population import EXECUTIONS, Population
from lcd.envs.errors import InputError
from lcd.envs.streams import seed_sequence


@dataclass(frozen=True)
class PPOConfig:
    """Hyper-parameters of PPO.

    Args:
        copies: environment copies of each seed.
        rollout: steps of each copy between two updates.
        epochs: passes over a rollout.
        minibatches: parts of a rollout in each pass; copies x rollout must be divisible by it.
        learning_rate: Adam's step size.
        adam_eps: Adam's ε.
        gamma: discount.
        gae_lambda: λ of the generalised advantage estimate.
        clip: range of the policy's ratio, 1 ± clip.
        value_clip: range of the value's change in one update; 0 turns it off.
        entropy: weight of the entropy bonus.
        value_weight: weight of the value loss.
        max_grad_norm: each seed's gradient is scaled to at most this norm; 0 turns it off.
        normalise_rewards: divide rewards by the standard deviation of their discounted sums.
        normalise_advantages: over each `minibatch`, over the whole `rollout`, or `off`.
        encoder: `auto`, `mlp` or `cnn`.
        width: units of the encoder's hidden layers.
        precision: Lightning's: `32-true`, or `bf16-mixed` where the device is faster with it.
        execution: how the seed axis runs: `auto`, `vmap` or `loop`.
    """

    copies: int = 8
    rollout: int = 128
    epochs: int = 4
    minibatches: int = 4
    learning_rate: float = 1e-3
    adam_eps: float = 1e-5
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    value_clip: float = 0.2
    entropy: float = 0.01
    value_weight: float = 0.5
    max_grad_norm: float = 0.5
    normalise_rewards: bool = True
    normalise_advantages: str = "minibatch"
    encoder: str = "auto"
    width: int = 64
    precision: str = "32-true"
    execution: str = "auto"

    def __post_init__(self) -> None:
        for key in ("copies", "rollout", "epochs", "minibatches", "width"):
            check(key, getattr(self, key), "at least 1", getattr(self, key) >= 1)
        for key in ("gamma", "gae_lambda"):
            check(key, getattr(self, key), "between 0 and 1", 0 <= getattr(self, key) <= 1)
        for key in ("learning_rate", "adam_eps", "clip"):
            check(key, getattr(self, key), "above 0", getattr(self, key) > 0)
        for key in ("value_clip", "entropy", "value_weight", "max_grad_norm"):
            check(key, getattr(self, key), "0 or more", getattr(self, key) >= 0)
        samples = self.copies * self.rollout
        fits = f"a divisor of copies x rollout ({samples})"
        check("minibatches", self.minibatches, fits, samples % self.minibatches == 0)
        for key, options in {
            "normalise_advantages": ("minibatch", "rollout", "off"),
            "encoder": ("auto", *ENCODERS),
            "precision": ("32-true", "bf16-mixed"),
            "execution": EXECUTIONS,
        }.items():
            value = getattr(self, key)
            check(key, value, f"one of {', '.join(options)}", value in options)


def check(key: str, value: object, right: str, holds: bool) -> None:
    """Refuse a hyper-parameter with a sentence unless it `holds`."""
    if not holds:
        raise InputError(f"agent.{key}={value} should be {right}.")


class PPO(LightningModule):
    """The agent: one policy and value network for each seed, and how they learn from a rollout.

    Args:
        config: hyper-parameters.
        shape: shape of one feature that the front-end gives.
        actions: number of discrete actions, or the box of continuous ones.
        seeds: the run's seeds.
        frontend: the frozen encoder between observations and networks, as `lcd.agents.frozen.freeze` makes it.
    """

    Config = PPOConfig

    def __init__(
        self,
        config: PPOConfig,
        shape: tuple[int, ...],
        actions: int | Box,
        seeds: Sequence[int],
        frontend: nn.Module,
    ):
        super().__init__()
        self.automatic_optimization = False
        self.config, self.seeds = config, list(seeds)
        self.frontend = frontend if isinstance(frontend, FrozenFrontend) else FrozenFrontend(frontend)
        self.policy = policy_for(actions)
        self.networks = Population(lambda: self.network(shape), self.seeds, config.execution)
        self.losses: dict[str, Tensor] = {}

    def network(self, shape: tuple[int, ...]) -> nn.Module:
        """One seed's network."""
        config, policy = self.config, self.policy
        return ActorCritic(shape, policy.outputs, config.encoder, config.width, policy.deviations)

    # Acting

    def see(self, observations: np.ndarray) -> tuple[Tensor, Tensor]:
        """Observations of all copies → features, and what a rollout keeps to have them again, (seeds, copies, …)."""
        seen = torch.from_numpy(observations).to(self.device)
        features = self.frontend(seen)
        kept = self.frontend.kept(seen, features)
        return features.unflatten(0, (len(self.seeds), -1)), kept.unflatten(0, (len(self.seeds), -1))

    def encode(self, observations: np.ndarray) -> Tensor:
        """Observations of all copies → features (seeds, copies, …)."""
        return self.see(observations)[0]

    @torch.no_grad()
    def act(self, features: Tensor, draws: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Sampled actions by inverting the policy's distribution at `draws`, their log-probabilities, values."""
        with self._precision():
            outputs, values = self.networks(features)
        return *self.policy.sample(outputs, draws), values.float()

    @property
    def draws(self) -> tuple[int, ...]:
        """Shape of the uniform draws that one action takes."""
        return self.policy.draws

    def commands(self, actions: Tensor) -> np.ndarray:
        """What the environment is told, a row a copy."""
        return self.policy.commands(actions)

    @torch.no_grad()
    def value(self, features: Tensor) -> Tensor:
        """Values of features, (seeds, copies)."""
        with self._precision():
            return self.networks(features)[1].float()

    def _precision(self) -> AbstractContextManager[None]:
        """Acting happens outside Lightning's training step but has to agree with it to the last rounding."""
        return self._trainer.precision_plugin.forward_context() if self._trainer else nullcontext()

    # Learning

    def features_of(self, inputs: Tensor) -> Tensor:
        """What the networks see, made of what a rollout keeps."""
        return self.frontend.features_of(inputs)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        config = self.config
        return torch.optim.Adam(self.networks.parameters(), lr=config.learning_rate, eps=config.adam_eps, fused=True)

    def training_step(self, rollout: dict[str, Tensor], index: int) -> None:
        """One iteration: several passes over one rollout."""
        config = self.config
        rollout["advantages"] = advantages(rollout, config.gamma, config.gae_lambda)
        rollout["targets"] = rollout["advantages"] + rollout["values"]
        if config.normalise_advantages == "rollout":
            rollout["advantages"] = standardise(rollout["advantages"], rollout["weights"], axes=(1, 2))
        samples = self.samples(rollout)
        order = self._shuffles(samples["actions"].shape[1], index).to(self.device)
        seed = torch.arange(len(self.seeds), device=self.device)[:, None]
        losses: dict[str, list[Tensor]] = {}
        for chosen in order.unbind(1):
            batch = {name: value[seed, chosen] for name, value in samples.items()}
            for name, loss in self._update(batch).items():
                losses.setdefault(name, []).append(loss)
        self.losses = {name: torch.stack(values).mean(0) for name, values in losses.items()}

    def samples(self, rollout: dict[str, Tensor]) -> dict[str, Tensor]:
        """What minibatches are drawn from, (seeds, samples, …): here every step on its own."""
        return {name: value.flatten(1, 2) for name, value in rollout.items() if name != "last_value"}

    def _shuffles(self, samples: int, iteration: int) -> Tensor:
        """Every seed's minibatches of one iteration, (seeds, epochs x minibatches, minibatch)."""
        config = self.config
        orders = []
        for seed in self.seeds:
            generator = np.random.default_rng(seed_sequence(seed, "shuffle", iteration))
            epochs = np.tile(np.arange(samples), (config.epochs, 1))
            orders.append(generator.permuted(epochs, axis=1))
        return torch.from_numpy(np.stack(orders)).reshape(len(self.seeds), config.epochs * config.minibatches, -1)

    def _update(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """One optimiser step on one minibatch of each seed."""
        optimizer = self.optimizers()
        losses = self.loss(batch)
        optimizer.zero_grad()
        self.manual_backward(losses["total"].sum())
        if self.config.max_grad_norm > 0:
            losses["grad_norm"] = self.networks.clip_gradients(self.config.max_grad_norm)
        optimizer.step()
        return {name: loss.detach() for name, loss in losses.items()}

    def loss(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """PPO's losses of one minibatch of each seed, all (seeds,)."""
        outputs, values = self.networks(self.features_of(batch["inputs"]))
        return self.losses_of(outputs, values, batch)

    def losses_of(self, outputs: Tensor, values: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The losses of a minibatch, given what the networks say about its steps, (seeds, steps, …)."""
        config, weights = self.config, batch["weights"]
        log_probs, entropies = self.policy.evaluate(outputs, batch["actions"])
        gains = batch["advantages"]
        if config.normalise_advantages == "minibatch":
            gains = standardise(gains, weights, axes=(1,))

        ratio = (log_probs - batch["log_probs"]).exp()
        clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
        policy = average(-torch.minimum(ratio * gains, clipped * gains), weights)

        errors = (values.float() - batch["targets"]).square()
        if config.value_clip > 0:
            change = (values.float() - batch["values"]).clamp(-config.value_clip, config.value_clip)
            errors = torch.maximum(errors, (batch["values"] + change - batch["targets"]).square())
        value = 0.5 * average(errors, weights)

        entropy = average(entropies, weights)
        total = policy + config.value_weight * value - config.entropy * entropy
        return {"total": total, "policy": policy, "value": value, "entropy": entropy}


def advantages(rollout: dict[str, Tensor], gamma: float, gae_lambda: float) -> Tensor:
    """Generalised advantage estimates (Schulman et al. 2016), (seeds, time, copies)."""
    going = 1.0 - rollout["dones"].float()
    rewards, values = rollout["rewards"], rollout["values"]
    result = torch.empty_like(rewards)
    following, running = rollout["last_value"], torch.zeros_like(rollout["last_value"])
    for t in reversed(range(rewards.shape[1])):
        surprise = rewards[:, t] + gamma * going[:, t] * following - values[:, t]
        running = surprise + gamma * gae_lambda * going[:, t] * running
        result[:, t] = running
        following = values[:, t]
    return result


def average(values: Tensor, weights: Tensor) -> Tensor:
    """Weighted mean over a seed's samples."""
    return (values * weights).sum(-1) / weights.sum(-1).clamp(min=1)


def standardise(values: Tensor, weights: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Zero mean and unit deviation over `axes`, counting weighted samples only."""
    number = weights.sum(axes, keepdim=True).clamp(min=2)
    mean = (values * weights).sum(axes, keepdim=True) / number
    variance = ((values - mean).square() * weights).sum(axes, keepdim=True) / (number - 1)
    return (values - mean) / (variance.sqrt() + 1e-8)
