"""Deep Q-networks of all members of a run together (Mnih et al. 2015): their layers are batched matrix products.

Updates come in bouts between stretches of play, as one target network suffices for a bout. A few members at a time go
through a whole bout, so that their networks, gradients and moments stay in a CPU's caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from torch import Tensor
from torch.nn import functional

from lcd.agents.learner import Evaluate, Learner
from lcd.agents.networks import as_float
from lcd.agents.settings import DQNConfig
from lcd.agents.stepping import Step, Stepper
from lcd.envs.errors import InputError
from lcd.envs.streams import Streams, seed_sequence
from lcd.process.deadlines import beat

SHARED_OUT = 2**19
"""Weights between hidden layers of the members that go through a bout together: what was measured to be fastest."""

Layers = list[Tensor]
"""Weights (members, inputs, outputs) and biases (members, 1, outputs) of each layer in turn."""
Values = Callable[[Layers, Tensor], Tensor]


class DQN(Learner):
    """DQN with the Huber loss: uniform replay, a target network, ε-greedy play, greedy evaluation."""

    Config = DQNConfig
    flat_actions = True

    def __init__(self, config: DQNConfig, env: VectorEnv, seeds: Sequence[int]):
        super().__init__(config, env, seeds)
        if not isinstance(env.single_action_space, spaces.Discrete):
            raise InputError(f"agent=dqn needs discrete actions, not {env.single_action_space}.")
        self.actions = int(env.single_action_space.n)
        self.inputs = int(np.prod(env.single_observation_space.shape))
        self.layers = self.first_layers()
        self.target = [layer.clone() for layer in self.layers]
        members = len(self.seeds)
        self.memory = Replay(members, config.buffer, self.inputs, env.single_observation_space.dtype)
        self.losses = torch.zeros(members)
        together = max(1, SHARED_OUT // config.width**2)
        edges = pairwise(np.linspace(0, members, -(-members // together) + 1).astype(int).tolist())
        self.shards = [Shard(self.layers, slice(*pair), config.learning_rate, self.values) for pair in edges]
        copies = range(config.copies)
        (self._play,) = Streams.spawn([seed_sequence(s, "exploration", c) for s in self.seeds for c in copies])
        (self._replay,) = Streams.spawn([seed_sequence(s, "shuffle") for s in self.seeds])

    def first_layers(self) -> Layers:
        """The layers of all members before they learn."""
        sizes = (self.inputs, self.config.width, self.config.width, self.actions)
        return initial(pairwise(sizes), self.seeds)

    def values(self, layers: Layers, inputs: Tensor) -> Tensor:
        """What the network that these layers make says that each action is worth, (members, batch, actions)."""
        return values(layers, inputs)

    def at_random(self, numbers: np.ndarray, observations: np.ndarray) -> np.ndarray:
        """Actions to explore by, from whole numbers below 2³², one of each copy."""
        return (numbers * np.uint64(self.actions) >> np.uint64(32)).astype(np.int64)

    def rewards(self, outcome: Step, reached: np.ndarray) -> np.ndarray:
        """What is learned from, given a step and the observations that it led to."""
        return outcome.rewards

    def learn(self, steps: int, every: int, evaluate: Evaluate) -> None:
        """Train, one step of every copy at a time."""
        config, copies = self.config, self.config.copies
        stepper, last = Stepper(self.env), -(-steps // copies)
        evaluate(0)
        observations, renewed = stepper.reset(), 0
        for number in range(1, last + 1):
            before, done = (number - 1) * copies, number * copies
            falling = min(1.0, before / (config.exploration * steps))
            actions = self._explore(observations, 1 - falling * (1 - config.epsilon))
            outcome = stepper.step(actions)
            self.log.add(outcome)
            self._remember(observations, actions, outcome)
            observations = outcome.observations
            if done >= config.start and done // config.train_every > before // config.train_every:
                if done - renewed >= config.target_every:
                    renewed = done
                    for held, layer in zip(self.target, self.layers, strict=True):
                        held.copy_(layer)
                self._bout()
            if number == last or done // every > before // every:
                evaluate(done)

    def _explore(self, observations: np.ndarray, epsilon: float) -> np.ndarray:
        """ε-greedy actions, from one word of each copy's stream: halves decide whether, and which."""
        words = self._play.bits()
        stray = (words >> np.uint64(32)) * 2.0**-32 < epsilon
        random = self.at_random(words & np.uint64(0xFFFFFFFF), observations)
        if stray.all():
            return random
        return np.where(stray, random, self.commands(self.act(self.encode(observations), None)[0]))

    def _remember(self, observations: np.ndarray, actions: np.ndarray, outcome: Step) -> None:
        """Keep one step of every copy; where an episode ended, what it ended with."""
        reached = outcome.observations
        if outcome.final is not None and outcome.dones.any():
            ended = outcome.dones.reshape(-1, *[1] * (reached.ndim - 1))
            reached = np.where(ended, outcome.final, reached)
        going_on = ~outcome.terminated
        if outcome.final is None:
            # Of an episode that was cut off nobody knows what came next.
            going_on = ~outcome.dones
        rewards = self.rewards(outcome, reached)
        self.memory.add(observations, actions, rewards, reached, going_on, outcome.valid)

    def _bout(self) -> None:
        """Several updates of every member, a few members at a time."""
        config = self.config
        chosen = self._replay.integers(self.memory.filled, count=config.updates * config.batch)
        for shard in self.shards:
            target = [layer[shard.members] for layer in self.target]
            losses = []
            for places in np.split(chosen[shard.members], config.updates, axis=1):
                batch = self.memory.sample(shard.members, places)
                losses.append(shard.update(batch, target, config.gamma, config.max_grad_norm))
            self.losses[shard.members] = torch.stack(losses).mean(0)
        beat()

    def encode(self, observations: np.ndarray) -> Tensor:
        """Observations as the networks take them, (members, copies, inputs)."""
        return as_float(torch.from_numpy(observations)).reshape(len(self.seeds), -1, self.inputs)

    @torch.no_grad()
    def act(self, features: Tensor, draws: Tensor | None) -> tuple[Tensor, None, None]:
        """The greedy actions, (members, copies)."""
        return self.values(self.layers, features).argmax(-1), None, None

    def commands(self, actions: Tensor) -> np.ndarray:
        """The actions of all copies."""
        return actions.flatten().numpy()

    def finite(self) -> np.ndarray:
        """Which members' networks are finite."""
        return np.logical_and.reduce([layer.isfinite().flatten(1).all(1).numpy() for layer in self.layers])

    def state_dict(self) -> dict[str, Any]:
        """The layers, with an axis of members in front."""
        return {f"layer{number}": layer.clone() for number, layer in enumerate(self.layers)}


class Shard:
    """Some members' layers, which share the memory of all members', with an optimiser of their own.

    Args:
        layers: of all members.
        members: which of them.
        learning_rate: Adam's step size.
        values: what the network that layers make says that actions are worth.
    """

    def __init__(self, layers: Layers, members: slice, learning_rate: float, values: Values):
        self.members, self.values = members, values
        self.layers = [layer[members].requires_grad_() for layer in layers]
        self.optimizer = torch.optim.Adam(self.layers, lr=learning_rate, fused=True)

    def update(self, batch: dict[str, Tensor], target: Layers, gamma: float, max_grad_norm: float) -> Tensor:
        """One step of each member's optimiser; the losses, (members,)."""
        self.optimizer.zero_grad()
        losses = loss(self.layers, target, batch, gamma, self.values)
        losses.sum().backward()
        clip([layer.grad for layer in self.layers if layer.grad is not None], max_grad_norm)
        self.optimizer.step()
        return losses.detach()


class Replay:
    """The last transitions of every member, in arrays (members, places, …).

    Args:
        members: how many there are.
        size: places of each.
        inputs: numbers of an observation.
        dtype: of observations.
    """

    def __init__(self, members: int, size: int, inputs: int, dtype: Any):
        self.size, self.next, self.filled = size, 0, 0
        self.seen, self.reached = (np.zeros((members, size, inputs), dtype) for _ in range(2))
        self.actions = np.zeros((members, size), np.int32)
        self.rewards, self.going_on, self.valid = (np.zeros((members, size), np.float32) for _ in range(3))

    def add(self, seen: Any, actions: Any, rewards: Any, reached: Any, going_on: Any, valid: Any) -> None:
        """Keep one step of all copies, in place of the oldest; copies are ordered member by member."""
        members, inputs = len(self.seen), self.seen.shape[-1]
        copies = len(seen) // members
        places = slice(self.next, self.next + copies)
        for kept, new in ((self.seen, seen), (self.reached, reached)):
            kept[:, places] = new.reshape(members, copies, inputs)
        for kept, new in (
            (self.actions, actions),
            (self.rewards, rewards),
            (self.going_on, going_on),
            (self.valid, valid),
        ):
            kept[:, places] = new.reshape(members, copies)
        self.next = (self.next + copies) % self.size
        self.filled = min(self.size, self.filled + copies)

    def sample(self, members: slice, places: np.ndarray) -> dict[str, Tensor]:
        """The transitions of some members at these places, (members, batch, …)."""
        row = np.arange(len(places))[:, None]
        names = ("seen", "reached", "actions", "rewards", "going_on", "valid")
        found = {name: torch.from_numpy(getattr(self, name)[members][row, places]) for name in names}
        return found | {name: as_float(found[name]) for name in ("seen", "reached")}


def initial(sizes: Iterable[tuple[int, int]], seeds: Sequence[int]) -> Layers:
    """Layers that start as PyTorch's own do, each seed's from its stream; the same wherever a seed comes twice.

    Args:
        sizes: inputs and outputs of each layer.
        seeds: of the members.
    """
    of_seed = {seed: np.random.default_rng(seed_sequence(seed, "initialisation")) for seed in dict.fromkeys(seeds)}
    layers = []
    for given, made in sizes:
        for shape in ((given, made), (1, made)):
            drawn = {seed: rng.uniform(-1, 1, shape) * given**-0.5 for seed, rng in of_seed.items()}
            layers.append(torch.from_numpy(np.stack([drawn[seed] for seed in seeds]).astype(np.float32)))
    return layers


def values(layers: Layers, inputs: Tensor) -> Tensor:
    """What each action is worth, (members, batch, actions)."""
    for number in range(0, len(layers), 2):
        weight, bias = layers[number : number + 2]
        inputs = torch.baddbmm(bias, inputs if number == 0 else functional.relu(inputs), weight)
    return inputs


def loss(layers: Layers, target: Layers, batch: dict[str, Tensor], gamma: float, values: Values = values) -> Tensor:
    """Huber's loss of the temporal-difference errors, averaged over each member's transitions, (members,)."""
    with torch.no_grad():
        following = values(target, batch["reached"]).amax(-1)
        goals = batch["rewards"] + gamma * batch["going_on"] * following
    mine = values(layers, batch["seen"]).gather(-1, batch["actions"].long()[..., None]).squeeze(-1)
    errors = functional.smooth_l1_loss(mine, goals, reduction="none")
    return (errors * batch["valid"]).sum(-1) / batch["valid"].sum(-1).clamp(min=1)


@torch.no_grad()
def clip(gradients: list[Tensor], most: float) -> None:
    """Scale each member's gradient to at most this norm."""
    norms = torch.stack([gradient.flatten(1).square().sum(1) for gradient in gradients]).sum(0).sqrt()
    scale = (most / (norms + 1e-6)).clamp(max=1.0)[:, None, None]
    for gradient in gradients:
        gradient.mul_(scale)
