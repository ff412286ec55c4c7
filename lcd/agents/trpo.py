"""Trust region policy optimisation of all seeds of a run together (Schulman et al. 2015).

The policy moves along its natural gradient, found by conjugate gradients, as far as a line search allows; the values,
of a network of their own, learn as PPO's do. Both are done for all seeds at once: products with the Fisher matrix are
each seed's own, and so are the lengths of its steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from lcd.agents.networks import ActorAndCritic
from lcd.agents.ppo import PPO, average
from lcd.agents.settings import TRPOConfig
from lcd.envs.errors import InputError
from lcd.process.deadlines import beat

ACTOR, CRITIC = "actor.", "critic."
TINY = 1e-30
"""Keeps what is nothing from being divided by; gradients are far greater, and their squares still are."""


class TRPO(PPO):
    """TRPO: a natural step of the policy for each rollout, and passes over it for the values."""

    Config = TRPOConfig
    config: Any
    """A `TRPOConfig`, which has of PPO's settings what PPO's code asks for here."""

    def network(self, shape: tuple[int, ...]) -> nn.Module:
        """One seed's networks."""
        config, policy = self.config, self.policy
        how = (config.encoder, config.width, policy.deviations, config.initialisation)
        return ActorAndCritic(shape, policy.outputs, *how)

    @property
    def passes(self) -> tuple[float, float]:
        """How often each step is gone through; a product with the curvature is about as much as a gradient."""
        return 1 + self.config.backtracks, 1 + self.config.conjugate_steps + self.config.epochs

    @property
    def largest_minibatch(self) -> int:
        """A step of the policy learns from a whole rollout."""
        return self.config.copies * self.config.rollout

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The values' optimiser; the policy has none."""
        named = zip(self.networks.names, self.networks.weights, strict=True)
        values = [weight for name, weight in named if name.startswith(CRITIC)]
        return torch.optim.Adam(values, lr=self.config.learning_rate, eps=self.config.adam_eps, fused=True)

    def on_fit_start(self) -> None:
        """Refuse what a natural step cannot be made in."""
        super().on_fit_start()
        if self.ranks.world > 1:
            raise InputError("agent=trpo is trained by one process: give devices=1 and num_nodes=1.")

    def training_step(self, rollout: dict[str, Tensor], index: int) -> None:
        """One iteration: a step of the policy, and several passes for the values, over one rollout."""
        samples = self.assess(rollout)
        moved = self.improve(samples)
        self.losses = self.learn(samples, self.config.epochs, "shuffle", index) | moved

    def losses_of(self, outputs: Tensor, values: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The values' loss of a minibatch."""
        errors = (values.float() - batch["targets"]).square()
        value = 0.5 * average(errors, batch["weights"], batch["number"])
        return {"total": value, "value": value}

    def improve(self, samples: dict[str, Tensor]) -> dict[str, Tensor]:
        """Step along each seed's natural gradient; returns the gain and the divergence of the step, (seeds,)."""
        whole, moved = self.prepare(dict(samples)), []
        for seeds in self._shards(whole):
            part = whole if seeds is None else {name: x[seeds] for name, x in whole.items()}
            with self.networks.only(slice(None) if seeds is None else seeds) as weights:
                theta = [x for name, x in zip(self.networks.names, weights, strict=True) if name.startswith(ACTOR)]
                moved.append(self._improve(part, theta))
            beat()
        return {name: torch.cat([each[name] for each in moved]) for name in moved[0]}

    def _improve(self, batch: dict[str, Tensor], theta: list[Tensor]) -> dict[str, Tensor]:
        config, features = self.config, self.features_of(batch["inputs"])
        outputs = self.networks(features)[0]
        before = outputs.detach()
        gain = self._gain(outputs, batch)
        gradient = _flat(torch.autograd.grad(gain.sum(), theta, retain_graph=True))
        divergence = average(self.policy.divergence(before, outputs), batch["weights"], batch["number"])
        slopes = _flat(torch.autograd.grad(divergence.sum(), theta, create_graph=True))

        def fisher(vector: Tensor) -> Tensor:
            product = torch.autograd.grad((slopes * vector).sum(), theta, retain_graph=True)
            return _flat(product) + config.damping * vector

        direction = conjugate_gradients(fisher, gradient, config.conjugate_steps)
        length = (direction * fisher(direction)).sum(1)
        step = (2 * config.max_divergence / (length + TINY)).sqrt()[:, None] * direction
        return self._search(features, batch, theta, step, before, gain.detach())

    @torch.no_grad()
    def _search(
        self,
        features: Tensor,
        batch: dict[str, Tensor],
        theta: list[Tensor],
        step: Tensor,
        before: Tensor,
        gain: Tensor,
    ) -> dict[str, Tensor]:
        """Take the longest of ever shorter steps that gains something and stays near; seeds without one stand still."""
        start = _flat(theta)
        taken, found = torch.zeros_like(gain), {"gain": torch.zeros_like(gain), "divergence": torch.zeros_like(gain)}
        for number in range(self.config.backtracks):
            share = torch.where(taken > 0, taken, self.config.shrink**number)
            _put(theta, start + share[:, None] * step)
            outputs = self.networks(features)[0]
            now = self._gain(outputs, batch)
            divergence = average(self.policy.divergence(before, outputs), batch["weights"], batch["number"])
            good = (taken == 0) & (now > gain) & (divergence < self.config.max_divergence)
            taken = torch.where(good, share, taken)
            for name, value in (("gain", now - gain), ("divergence", divergence)):
                found[name] = torch.where(good, value, found[name])
            if (taken > 0).all():
                break
        _put(theta, start + taken[:, None] * step)
        return found

    def _gain(self, outputs: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """What the policy with these outputs is expected to gain over the one that acted, (seeds,)."""
        log_probs = self.policy.evaluate(outputs, batch["actions"])[0]
        ratio = (log_probs - batch["log_probs"]).exp()
        return average(ratio * batch["advantages"], batch["weights"], batch["number"])


def conjugate_gradients(product: Callable[[Tensor], Tensor], goal: Tensor, steps: int) -> Tensor:
    """For every seed the x at which its matrix times x is its row of `goal`, (seeds, numbers), after so many steps."""
    x, residual = torch.zeros_like(goal), goal.clone()
    direction, squares = residual.clone(), residual.square().sum(1, keepdim=True)
    for _ in range(steps):
        towards = product(direction)
        length = squares / ((direction * towards).sum(1, keepdim=True) + TINY)
        x += length * direction
        residual = residual - length * towards
        now = residual.square().sum(1, keepdim=True)
        direction = residual + now / (squares + TINY) * direction
        squares = now
    return x


def _flat(parts: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
    """(seeds, numbers): all parameters of a seed in a row."""
    return torch.cat([part.detach().flatten(1) if part.is_leaf else part.flatten(1) for part in parts], dim=1)


def _put(theta: list[Tensor], numbers: Tensor) -> None:
    """Write what `_flat` gave into the parameters."""
    for part, own in zip(theta, numbers.split([part[0].numel() for part in theta], dim=1), strict=True):
        part.copy_(own.view_as(part))
