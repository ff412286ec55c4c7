"""Proximal policy optimisation of all seeds of a run together (Schulman et al. 2017).

The seed is the leading axis of every tensor: networks, rollouts, minibatches; on several points of a family it is the
axis of points and seeds, where each seed comes once a point. Losses are averaged within a seed
and summed over seeds, so that no seed's gradient knows of the others, and one optimiser steps them all.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box
from lightning.pytorch import LightningModule
from lightning.pytorch.core.optimizer import LightningOptimizer
from torch import Tensor, nn

from lcd.agents.distributions import policy_for
from lcd.agents.footprint import Footprint, footprint, room_on
from lcd.agents.frozen import FrozenFrontend
from lcd.agents.networks import ActorAndCritic, ActorCritic
from lcd.agents.population import Population
from lcd.agents.precision import FULL, precision_on
from lcd.agents.ranks import ALONE, Ranks
from lcd.agents.scalars import explained_variance
from lcd.agents.settings import PPOConfig
from lcd.envs.errors import InputError
from lcd.envs.streams import seed_sequence
from lcd.process.deadlines import beat

CACHED = 256
"""Samples of IMPALA whose activations stay in a CPU's caches from layer to layer: the fastest of 32 to 2048 on two
cores with 32 MB, in single precision (an eighth before a minibatch of 2048 at once) and in bf16 (a fiftieth)."""
SHARED_OUT = 1 << 19
"""Activations of a layer, of all seeds that learn together: the most that stay in a CPU's caches. Of 1,728 MLPs of 64
units with minibatches of 128 all at once take 1.8 times as long; between 2^18 and 2^20 a tenth more or less."""


class PPO(LightningModule):
    """PPO: one policy and value network for each seed, and how they learn from a rollout together.

    Args:
        config: hyper-parameters.
        shape: shape of one feature that the front-end gives.
        actions: number of discrete actions, or the box of continuous ones.
        seeds: the run's seeds.
        frontend: the frozen encoder between observations and networks, as `lcd.agents.frozen.freeze` makes it.
    """

    Config: type[Any] = PPOConfig
    ranks = ALONE
    """The processes that train this agent together; `config.copies` are those of each."""
    learns_from_files = True

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
        self.config, self.seeds, self.shape = config, list(seeds), shape
        self.frontend = frontend if isinstance(frontend, FrozenFrontend) else FrozenFrontend(frontend)
        self.policy = policy_for(actions)
        self.networks = Population(lambda: self.network(shape), self.seeds, config.execution, config.compile)
        self.losses: dict[str, Tensor] = {}
        self.explained: Tensor | None = None
        self._last_pass = True
        self._fitting: int | None = None

    def network(self, shape: tuple[int, ...]) -> nn.Module:
        """One seed's network."""
        config, policy = self.config, self.policy
        kind = ActorAndCritic if config.networks == "separate" else ActorCritic
        return kind(shape, policy.outputs, config.encoder, config.width, policy.deviations, config.initialisation)

    def steps_like(self, number: int) -> tuple[Tensor, ...]:
        """So many steps as a network takes them, without content, to measure with."""
        return (torch.empty(number, *self.shape, device="meta"),)

    @property
    def footprint(self) -> Footprint:
        """What one seed's network takes of a processor."""
        return footprint(self.networks.template, self.steps_like)

    @property
    def passes(self) -> tuple[float, float]:
        """How often each step is gone through, forward alone, and forward and backward."""
        return 1, self.config.epochs

    @property
    def largest_minibatch(self) -> int:
        """Steps of each seed that an optimiser's step learns from, at the most."""
        return self.config.copies * self.config.rollout // self.config.minibatches

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

    @property
    def acts_for_fewer(self) -> bool:
        """Does it act for some copies as it does for all? What is compiled would be compiled anew for each number."""
        return not self.config.compile

    @torch.no_grad()
    def act(self, features: Tensor, draws: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Actions by inverting the policy's distribution at `draws` (None: modes), log-probabilities, values."""
        with self._precision():
            outputs, values = self.networks(features)[:2]
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
        return self.frontend.features_of(inputs.to(self.device))

    def transfer_batch_to_device(self, batch: dict[str, Tensor], device: torch.device, index: int) -> dict[str, Tensor]:
        """A rollout on the device that learns; features in a file stay there, and go where a minibatch of them does."""
        stays = ("inputs",) if self.frontend.in_file else ()
        return {name: value if name in stays else value.to(device) for name, value in batch.items()}

    def on_fit_start(self) -> None:
        """Refuse what Lightning would only warn of."""
        if self.config.precision == "16-mixed" and self.device.type == "cpu":
            raise InputError("agent.precision=16-mixed needs a GPU: on a CPU give bf16-mixed or 32-true.")

    def configure_optimizers(self) -> torch.optim.Optimizer:
        config = self.config
        return torch.optim.Adam(self.networks.parameters(), lr=config.learning_rate, eps=config.adam_eps, fused=True)

    def training_step(self, rollout: dict[str, Tensor], index: int) -> None:
        """One iteration: several passes over one rollout."""
        self.losses = self.learn(self.assess(rollout), self.config.epochs, "shuffle", index)

    @property
    def scalars(self) -> dict[str, Any]:
        """What `train.csv` tells of the last iteration."""
        explained = {} if self.explained is None else {"explained_variance": self.explained}
        return {**self.losses, **explained, "learning_rate": self.config.learning_rate}

    def assess(self, rollout: dict[str, Tensor]) -> dict[str, Tensor]:
        """Give a rollout its advantages and value targets, and make of it what minibatches are drawn from."""
        config = self.config
        rollout["advantages"] = advantages(rollout, config.gamma, config.gae_lambda)
        rollout["targets"] = rollout["advantages"] + rollout["values"]
        self.explained = explained_variance(rollout["values"], rollout["targets"], rollout["weights"], self.ranks)
        if config.normalise_advantages == "rollout":
            rollout["advantages"] = standardise(rollout["advantages"], rollout["weights"], (1, 2), self.ranks)
        return self.samples(rollout)

    def learn(self, samples: dict[str, Tensor], epochs: int, *stream: str | int) -> dict[str, Tensor]:
        """Several passes over samples (seeds, samples, …), shuffled by a stream; returns the mean losses, (seeds,)."""
        order = self.shuffles(samples["inputs"].shape[1], epochs, self.config.minibatches, *stream)
        seed = torch.arange(len(self.seeds), device=self.device)[:, None]
        updates = []
        for number, chosen in enumerate(order.unbind(1)):
            self._last_pass = number >= (epochs - 1) * self.config.minibatches
            updates.append(self._update({name: drawn(value, seed, chosen) for name, value in samples.items()}))
        return self.mean_of(updates)

    def mean_of(self, updates: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        """The mean of each loss over the updates that have it, (seeds,); the last one has all."""
        found = {name: [losses[name] for losses in updates if name in losses] for name in updates[-1]}
        means = {name: torch.stack(each).mean(0) for name, each in found.items()}
        # Losses are each rank's share of a mean; the norm is of the gradient that is already summed.
        return {name: mean if name == "grad_norm" else self.ranks.sum(mean) for name, mean in means.items()}

    def samples(self, rollout: dict[str, Tensor]) -> dict[str, Tensor]:
        """What minibatches are drawn from, (seeds, samples, …): here every step on its own."""
        return {name: value.flatten(1, 2) for name, value in rollout.items() if name != "last_value"}

    def shuffles(self, samples: int, epochs: int, minibatches: int, *stream: str | int) -> Tensor:
        """Every seed's minibatches of that many samples, (seeds, epochs x minibatches, minibatch)."""
        orders = {}
        for seed in dict.fromkeys(self.seeds):
            generator = np.random.default_rng(seed_sequence(seed, *stream, *self.ranks.branch))
            orders[seed] = generator.permuted(np.tile(np.arange(samples), (epochs, 1)), axis=1)
        order = torch.from_numpy(np.stack([orders[seed] for seed in self.seeds])).reshape(
            len(self.seeds), epochs * minibatches, -1
        )
        return order.to(self.device)

    def _update(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """One optimiser step on one minibatch of each seed, whose gradient is added up over micro-batches."""
        optimizer = self.optimizer_of(batch)
        optimizer.zero_grad()
        shards, whole = [], self.prepare(batch)
        for seeds in self._shards(batch):
            with self.networks.only(seeds) if seeds is not None else nullcontext():
                shards.append(self._gradients(whole if seeds is None else {k: x[seeds] for k, x in whole.items()}))
        losses = {name: torch.cat([shard[name] for shard in shards]) for name in shards[0]}
        self.ranks.sum_gradients(self.networks.parameters())
        self._unscale(optimizer)
        if self.config.max_grad_norm > 0:
            losses["grad_norm"] = self.networks.clip_gradients(self.config.max_grad_norm)
        optimizer.step()
        beat()
        return losses

    def _gradients(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Add up the gradients of a minibatch of each seed, part by part; returns the losses, (seeds,)."""
        parts = []
        for part in split(batch, self.micro_batch):
            losses = self.loss(part)
            self.manual_backward(losses["total"].sum())
            parts.append({name: loss.detach() for name, loss in losses.items()})
        return {name: torch.stack([part[name] for part in parts]).sum(0) for name in parts[0]}

    def _shards(self, batch: dict[str, Tensor]) -> list[slice | None]:
        """The seeds whose gradients are computed together; None: all of them.

        On a CPU, populations of small networks learn faster where the activations of a layer stay in its caches.
        """
        if self.device.type != "cpu" or self.networks.execution != "vmap":
            return [None]
        each = batch["weights"][0].numel() * self.config.width
        # Products with a single seed's vector round otherwise than those with several seeds'.
        number = len(self.seeds) // max(2, SHARED_OUT // each)
        if number < 2:
            return [None]
        edges = [place * len(self.seeds) // number for place in range(number + 1)]
        return [slice(start, end) for start, end in pairwise(edges)]

    @property
    def micro_batch(self) -> int:
        """Samples of each seed that are learned from at once; 0 is all of a minibatch, and so is any larger number."""
        config = self.config
        if config.micro_batch:
            return config.micro_batch
        if self._fitting is None:
            room = room_on(self.device)
            if room is None:
                self._fitting = CACHED if config.encoder == "impala" else 0
            else:
                half = precision_on(self.device.type, config.precision) != FULL
                self._fitting = self.footprint.fitting(room, len(self.seeds), half)
        return self._fitting

    def _unscale(self, optimizer: LightningOptimizer) -> None:
        """In fp16 gradients come scaled: their norms, and what was added up, have to be those of the losses."""
        scaler = getattr(self._trainer.precision_plugin, "scaler", None) if self._trainer else None
        if scaler is not None:
            scaler.unscale_(optimizer.optimizer)

    def prepare(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """What has to be known of a whole minibatch before it is split: normalised advantages, the weight of all."""
        weights = batch["weights"].flatten(1)
        batch["number"] = self.ranks.sum(weights.sum(-1))
        if self.config.normalise_advantages == "minibatch" and "advantages" in batch:
            gains = batch["advantages"]
            batch["advantages"] = standardise(gains.flatten(1), weights, (1,), self.ranks).view_as(gains)
        return batch

    def optimizer_of(self, batch: dict[str, Tensor]) -> LightningOptimizer:
        """The optimiser that learns from a minibatch."""
        return self.optimizers()

    def loss(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """PPO's losses of one minibatch of each seed, or a part's share of them, all (seeds,)."""
        outputs, values = self.networks(self.features_of(batch["inputs"]))[:2]
        return self.losses_of(outputs, values, batch)

    def losses_of(self, outputs: Tensor, values: Tensor, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """The losses of a minibatch, given what the networks say about its steps, (seeds, steps, …)."""
        config, weights, number, gains = self.config, batch["weights"], batch["number"], batch["advantages"]
        log_probs, entropies = self.policy.evaluate(outputs, batch["actions"])

        change = log_probs - batch["log_probs"]
        ratio = change.exp()
        clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
        policy = average(-torch.minimum(ratio * gains, clipped * gains), weights, number)

        errors = (values.float() - batch["targets"]).square()
        if config.value_clip > 0:
            moved = (values.float() - batch["values"]).clamp(-config.value_clip, config.value_clip)
            errors = torch.maximum(errors, (batch["values"] + moved - batch["targets"]).square())
        value = 0.5 * average(errors, weights, number)

        entropy = average(entropies, weights, number)
        total = policy + config.value_weight * value - config.entropy * entropy
        losses = {"total": total, "policy": policy, "value": value, "entropy": entropy}
        return losses | how_far(ratio, change, config.clip, weights, number) if self._last_pass else losses


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


@torch.no_grad()
def how_far(ratio: Tensor, change: Tensor, clip: float, weights: Tensor, number: Tensor) -> dict[str, Tensor]:
    """How far a policy has moved: an estimate of KL(old ‖ new), and the part of the samples that are clipped, (seeds,).

    The estimate is Schulman's, mean(r − 1 − log r), which is never negative; without the limit on r it could be
    infinite where no loss is.
    """
    divergence = ratio.clamp(max=1e6) - 1 - change
    told = torch.stack([divergence, ((ratio - 1).abs() > clip).float()])
    kl, clipped = (told * weights).sum(-1) / number.clamp(min=1)
    return {"kl": kl, "clip_fraction": clipped}


def average(values: Tensor, weights: Tensor, number: Tensor) -> Tensor:
    """Weighted mean of a seed's samples; `number` is the weight of all, on all ranks, so that means of parts add up."""
    return (values * weights).sum(-1) / number.clamp(min=1)


def drawn(values: Tensor, seed: Tensor, chosen: Tensor) -> Tensor:
    """Some samples of each seed, from where they lie."""
    return values[seed.to(values.device), chosen.to(values.device)]


def split(batch: dict[str, Tensor], size: int) -> Iterator[dict[str, Tensor]]:
    """The parts of a minibatch that have at most `size` steps of each seed (but at least one sample); 0: all of it."""
    samples, steps = batch["weights"].shape[1], batch["weights"][0, 0].numel()
    size = max(1, size // steps) if size else samples
    for start in range(0, samples, size):
        yield {name: x if name == "number" else x[:, start : start + size] for name, x in batch.items()}


def standardise(values: Tensor, weights: Tensor, axes: tuple[int, ...], ranks: Ranks = ALONE) -> Tensor:
    """Zero mean and unit deviation over `axes` and ranks, counting weighted samples only."""
    number = ranks.sum(weights.sum(axes, keepdim=True)).clamp(min=2)
    mean = ranks.sum((values * weights).sum(axes, keepdim=True)) / number
    variance = ranks.sum(((values - mean).square() * weights).sum(axes, keepdim=True)) / (number - 1)
    return (values - mean) / (variance.sqrt() + 1e-8)
