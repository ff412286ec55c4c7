"""Phasic policy gradient (Cobbe et al. 2021) of all seeds of a run together.

A phase is a number of iterations of PPO, the policy phase, and then an auxiliary phase: several passes over all of the
phase's rollouts, in which the policy's network learns to predict values, too, while its policy is held where it was.
"""

from typing import Any

import torch
from lightning.pytorch.core.optimizer import LightningOptimizer
from torch import Tensor, nn

from lcd.agents.networks import ActorCritic, in_full
from lcd.agents.phase_store import RolloutStore, StoreSize
from lcd.agents.ppo import PPO, average
from lcd.agents.settings import PPGConfig
from lcd.envs.errors import InputError
from lcd.process.deadlines import beat


class PhasicActorCritic(ActorCritic):
    """A policy and its values, and the values that the auxiliary phase teaches the policy's encoder.

    Args:
        shape, actions, encoder, width, deviations, scheme: as those of `ActorCritic`.
        variant: one of `lcd.agents.settings.VARIANTS`.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        actions: int,
        encoder: str,
        width: int,
        deviations: int,
        scheme: str,
        variant: str,
    ):
        super().__init__(shape, actions, encoder, width, deviations, scheme)
        self.variant = variant
        if variant == "dual":
            twin = ActorCritic(shape, 1, encoder, width, scheme=scheme)
            self.value_encoder, self.apart = twin.encoder, twin.value

    def forward(self, observations: Tensor) -> tuple[Tensor, ...]:
        """The policy's outputs (batch, …), the values (batch,), and those with which the policy's encoder learns."""
        features = self.encoder(observations)
        auxiliary = in_full(self.value, features).squeeze(-1)
        values = auxiliary
        if self.variant == "dual":
            values = in_full(self.apart, self.value_encoder(observations)).squeeze(-1)
        elif self.variant == "detached":
            values = in_full(self.value, features.detach()).squeeze(-1)
        return self.act_on(features), values, auxiliary


class PPG(PPO):
    """PPO's iterations, and after each phase of them the auxiliary phase."""

    Config = PPGConfig
    config: PPGConfig

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.store = RolloutStore()
        self._learning: tuple[str, ...] = ("policy", "value")
        self._auxiliary: dict[str, Tensor] = {}

    def network(self, shape: tuple[int, ...]) -> nn.Module:
        """One seed's network."""
        config, policy = self.config, self.policy
        how = (config.encoder, config.width, policy.deviations, config.initialisation, config.variant)
        return PhasicActorCritic(shape, policy.outputs, *how)

    @property
    def passes(self) -> tuple[float, float]:
        """How often each step is gone through: acted and cloned, and learned from in both phases."""
        config = self.config
        if config.epochs == config.value_epochs:
            return 2, config.epochs + config.auxiliary_epochs
        # A pass that learns the policy or the values alone goes forward through all, and backward through half of it.
        halves = (config.epochs + config.value_epochs) / 2
        return 2 + halves, halves + config.auxiliary_epochs

    @property
    def largest_minibatch(self) -> int:
        """Steps of each seed that an optimiser's step learns from, at the most, in either phase."""
        return max(super().largest_minibatch, self.config.auxiliary_rollouts * self.config.rollout)

    def store_size(self, shape: tuple[int, ...], itemsize: int, mask: bool) -> StoreSize:
        """What the rollouts of a phase take.

        Args:
            shape: of one of the inputs that rollouts keep.
            itemsize: bytes of one of its numbers.
            mask: are its three channels the same?
        """
        config = self.config
        sizes = (config.phase, config.rollout, config.copies, len(self.seeds))
        return StoreSize(*sizes, shape, itemsize, self.policy.outputs + self.policy.deviations, mask)

    # Learning

    def on_fit_start(self) -> None:
        """Refuse what would only be noticed at the end of a phase."""
        super().on_fit_start()
        _ = self._auxiliary_rollouts

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """One optimiser for each kind of phase: their moments differ."""
        config, weights = self.config, list(self.networks.parameters())
        rates = (config.learning_rate, config.auxiliary_learning_rate)
        return [torch.optim.Adam(weights, lr=rate, eps=config.adam_eps, fused=True) for rate in rates]

    def optimizer_of(self, batch: dict[str, Tensor]) -> LightningOptimizer:
        """The optimiser that learns from a minibatch."""
        return self.optimizers()[1 if "cloned" in batch else 0]

    def training_step(self, rollout: dict[str, Tensor], index: int) -> None:
        """One iteration of the policy phase, and the auxiliary phase where it is the phase's last."""
        samples = self.assess(rollout)
        self.losses = self._policy_iteration(samples, index)
        self.store.add(index, rollout["inputs"], rollout["targets"], rollout["weights"])
        if (index + 1) % self.config.phase == 0:
            self._auxiliary = self._auxiliary_phase(index)
            self.losses |= self._auxiliary
            self.store.clear()

    @property
    def scalars(self) -> dict[str, Any]:
        """What `train.csv` tells of the last iteration, and of the last auxiliary phase."""
        return {**super().scalars, **self._auxiliary}

    def _policy_iteration(self, samples: dict[str, Tensor], index: int) -> dict[str, Tensor]:
        config = self.config
        if config.epochs == config.value_epochs:
            return self.learn(samples, config.epochs, "shuffle", index)
        losses: dict[str, Tensor] = {}
        for part, epochs, branch in (("value", config.value_epochs, 1), ("policy", config.epochs, 0)):
            self._learning = (part,)
            losses |= self.learn(samples, epochs, "shuffle", index, branch)
        self._learning = ("policy", "value")
        return losses

    def _auxiliary_phase(self, index: int) -> dict[str, Tensor]:
        """Several passes over the phase's rollouts; returns the mean losses, (seeds,)."""
        config = self.config
        rollouts = len(self.store) * config.copies
        minibatches = rollouts // self._auxiliary_rollouts
        cloned = self._cloned(rollouts)
        order = self.shuffles(rollouts, config.auxiliary_epochs, minibatches, "auxiliary", index)
        seed = torch.arange(len(self.seeds), device=self.device)[:, None]
        updates = []
        for chosen in order.unbind(1):
            batch = self.store.take(chosen.cpu().numpy(), self.device)
            batch["cloned"] = cloned[seed, chosen].flatten(1, 2)
            updates.append(self._update(batch))
        return {f"auxiliary_{name}": loss for name, loss in self.mean_of(updates).items()}

    @property
    def _auxiliary_rollouts(self) -> int:
        """This rank's share of an auxiliary minibatch."""
        number, world = self.config.auxiliary_rollouts, self.ranks.world
        if number % world:
            raise InputError(
                f"agent.auxiliary_rollouts={number} must be divisible by the {world} processes of the run."
            )
        return number // world

    @torch.no_grad()
    def _cloned(self, rollouts: int) -> Tensor:
        """What the policy says, before it changes, about all that is stored, (seeds, rollouts, time, outputs)."""
        seeds = len(self.seeds)
        numbers = torch.arange(rollouts).expand(seeds, -1)
        outputs = []
        for chosen in numbers.split(self._auxiliary_rollouts, dim=1):
            batch = self.store.take(chosen.numpy(), self.device)
            said = self.networks(self.features_of(batch["inputs"]))[0]
            beat()
            outputs.append(said.float().unflatten(1, (chosen.shape[1], -1)))
        return torch.cat(outputs, dim=1)

    def loss(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The losses of one minibatch of each seed, of either phase, all (seeds,)."""
        if "cloned" not in batch:
            return super().loss(batch)
        config, weights, number = self.config, batch["weights"], batch["number"]
        outputs, values, auxiliary = self.networks(self.features_of(batch["inputs"]))
        clone = average(self.policy.divergence(batch["cloned"], outputs), weights, number)
        losses = {"clone": clone, "value": half_square(auxiliary, batch["targets"], weights, number)}
        total = losses["value"] + config.clone_weight * clone
        if config.variant == "dual":
            losses["true_value"] = half_square(values, batch["targets"], weights, number)
            total = total + losses["true_value"]
        return {"total": total, **losses}

    def losses_of(self, outputs: Tensor, values: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The losses of a minibatch of the policy phase: of policy and values, or of one of them."""
        losses = super().losses_of(outputs, values, batch)
        if len(self._learning) == 2:
            return losses
        if self._learning == ("value",):
            return {"total": self.config.value_weight * losses["value"], "value": losses["value"]}
        del losses["value"]
        return losses | {"total": losses["policy"] - self.config.entropy * losses["entropy"]}

    # Checkpoints

    def on_save_checkpoint(self, checkpoint: dict) -> None:
        """A checkpoint in the middle of a phase needs the phase's rollouts so far."""
        checkpoint["rollout_store"] = self.store.state()
        checkpoint["auxiliary"] = self._auxiliary

    def on_load_checkpoint(self, checkpoint: dict) -> None:
        """Continue from a checkpoint."""
        self.store.restore(checkpoint["rollout_store"])
        # Checkpoints of an earlier LCD have none.
        self._auxiliary = {name: loss.to(self.device) for name, loss in checkpoint.get("auxiliary", {}).items()}


def half_square(values: Tensor, targets: Tensor, weights: Tensor, number: Tensor) -> Tensor:
    """Half the mean squared error of a seed's values."""
    return 0.5 * average((values.float() - targets).square(), weights, number)
