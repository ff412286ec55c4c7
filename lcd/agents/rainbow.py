"""Rainbow (Hessel et al. 2018): deep Q-networks with six parts, each of which can be turned off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor
from torch.nn import functional

from lcd.agents.batched import BENDS, Layers, Rows, average, initial, outputs_of
from lcd.agents.dqn import DQN, Shard
from lcd.agents.priorities import Priorities
from lcd.agents.replay import Replay
from lcd.agents.replay_settings import RainbowConfig
from lcd.agents.stepping import Step
from lcd.envs.streams import Streams, seed_sequence

SIGMA = 0.5
"""How much noise layers start with, over the root of their inputs (Fortunato et al. 2018)."""
LEAST_ERROR = 1e-6
"""What is added to errors, so that no transition is never drawn."""
Noise = list[tuple[Tensor, Tensor]]
"""Of each noisy layer: factors of its inputs, (members, inputs), and of its outputs."""


class Rainbow(DQN):
    """Rainbow: double, dueling, prioritised, of several steps, distributional and noisy, or without some of these."""

    Config = RainbowConfig
    config: RainbowConfig
    shards: Sequence[RainbowShard]

    def __init__(self, config: RainbowConfig, env: VectorEnv, seeds: Sequence[int]):
        self.atoms = torch.linspace(config.lowest, config.highest, config.atoms)
        """Returns that a distribution is of."""
        self.of_action = config.atoms if config.distributional else 1
        self.beta = config.beta
        (self._noise,) = Streams.spawn([seed_sequence(seed, "shuffle", 1) for seed in seeds])
        (self._drawn,) = Streams.spawn([seed_sequence(seed, "shuffle", 2) for seed in seeds])
        super().__init__(config, env, seeds)
        self.priorities = Priorities(len(self.seeds), config.buffer) if config.prioritised else None

    @property
    def plain(self) -> bool:
        """Are all parts turned off?"""
        config = self.config
        parts = (config.double, config.dueling, config.prioritised, config.distributional, config.noisy)
        return config.n_step == 1 and not any(parts)

    def shard(self, members: slice) -> Shard:
        """Some members, who learn together."""
        return RainbowShard(self, members)

    def parts(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Inputs and outputs of the layers below the heads, and of those of the heads, one head after the other."""
        config, actions = self.config, int(self.env.single_action_space.n)
        below = list(pairwise(self.sizes))
        hidden = [config.head] if config.head else []
        ends = [actions * self.of_action, self.of_action] if config.dueling else [actions * self.of_action]
        return below, [pair for end in ends for pair in pairwise((config.width, *hidden, end))]

    def first_layers(self) -> Layers:
        """The layers before they learn: below the heads, of the heads, and how much noise is on the heads'."""
        below, heads = self.parts()
        layers = initial([*below, *heads], self.seeds)
        if self.config.noisy:
            mean = layers[2 * len(below) :]
            noise = [torch.full_like(layer, SIGMA * heads[n // 2][0] ** -0.5) for n, layer in enumerate(mean)]
            layers += noise
        return layers if self.encoder is None else [*self.encoder.first_layers(self.seeds), *layers]

    def values(self, network: Rows, inputs: Tensor, noise: Noise | None = None) -> Tensor:
        """What networks say of each action, or of each return of it, (members, batch, actions x returns)."""
        if not (self.config.dueling or self.config.noisy):
            return super().values(network, inputs)
        below, heads = self.parts()
        bend, activation = BENDS[self.config.activation], self.config.activation
        layers, inputs = self.encoded(network, inputs)
        split = 2 * len(below)
        seen = bend(outputs_of(layers[:split], inputs, activation))
        above = layers[split : split + 2 * len(heads)]
        if noise is not None:
            above = disturbed(above, layers[split + 2 * len(heads) :], noise)
        if not self.config.dueling:
            return outputs_of(above, seen, activation)
        half = len(above) // 2
        advantages, value = (outputs_of(head, seen, activation) for head in (above[:half], above[half:]))
        advantages = advantages.unflatten(-1, (-1, self.of_action))
        return (value[..., None, :] + advantages - advantages.mean(-2, keepdim=True)).flatten(-2)

    def worth(self, said: Tensor) -> Tensor:
        """What actions are worth, (members, batch, actions)."""
        if not self.config.distributional:
            return said
        return said.unflatten(-1, (-1, self.of_action)).softmax(-1) @ self.atoms

    def noise(self, members: slice) -> Noise | None:
        """New noise for some members' heads, if those are noisy."""
        if not self.config.noisy:
            return None
        each = [size for pair in self.parts()[1] for size in pair]
        drawn = torch.from_numpy(self._noise.normal(np.arange(len(self.seeds))[members], sum(each)).astype(np.float32))
        parts = (drawn.sign() * drawn.abs().sqrt()).split(each, dim=1)
        return list(zip(parts[::2], parts[1::2], strict=True))

    def explore(self, observations: np.ndarray, done: int, steps: int) -> Tensor:
        """ε-greedy actions of networks as noisy as they are since the last bout."""
        self.beta = self.config.beta + (1 - self.config.beta) * min(1.0, done / steps)
        return super().explore(observations, done, steps)

    @torch.no_grad()
    def act(self, features: Tensor, draws: Tensor | None) -> tuple[Tensor, None, None]:
        """The greedy actions of networks without noise, (members, copies)."""
        if not self.config.noisy:
            return super().act(features, draws)
        if self.states is None:
            return self.worth(self.values(self.network, features)).argmax(-1), None, None
        best = torch.cat([shard.quietly_best() for shard in self.shards])
        return best.gather(-1, features.argmax(-1)), None, None

    @torch.no_grad()
    def greedy(self, features: Tensor) -> Tensor:
        """The actions that are best in training."""
        if not self.config.noisy or self.states is not None:
            return super().greedy(features)
        every = [self.values(shard.network, features[shard.members], shard.noise_of_play) for shard in self.shards]
        return self.worth(torch.cat(every)).argmax(-1)

    def _remember(self, observations: np.ndarray, actions: np.ndarray, outcome: Step) -> None:
        places = self.memory.next + np.arange(self.config.copies)
        super()._remember(observations, actions, outcome)
        if self.priorities is not None:
            everyone = slice(0, len(self.seeds))
            values = np.repeat(self.priorities.largest[:, None], len(places), axis=1)
            self.priorities.set(everyone, np.broadcast_to(places, values.shape), values)

    def batches(self, members: slice, chosen: np.ndarray) -> Iterator[dict[str, Tensor]]:
        """What some members learn from; where it is prioritised, each batch after what the last one has taught."""
        if self.priorities is None:
            yield from super().batches(members, chosen)
            return
        config, whose = self.config, np.arange(len(self.seeds))[members]
        for _ in range(config.updates):
            shares = (np.arange(config.batch) + self._drawn.uniform(whose, config.batch)) / config.batch
            places, likely = self.priorities.find(members, shares)
            weights = (self.memory.filled * likely) ** -self.beta
            weights /= weights.max(1, keepdims=True)
            batch = self.batch(members, places) | {"weights": torch.from_numpy(weights.astype(np.float32))}
            yield batch
            errors = batch["errors"].numpy().astype(np.float64)
            # What is not a number any more ends the run at the next look; sums are to stay sums until then.
            self.priorities.set(members, places, np.nan_to_num(errors + LEAST_ERROR) ** config.alpha)

    def batch(self, members: slice, places: np.ndarray) -> dict[str, Tensor]:
        """What some members learn from in an update: what followed these places for some steps."""
        if self.state_by_state:
            return super().batch(members, places)
        config = self.config
        records, discounts = followed(self.memory, members, places, config.copies, config.n_step, config.gamma)
        return self.memory.tensors(records) | {"discounts": torch.from_numpy(discounts.astype(np.float32))}


class RainbowShard(Shard):
    """Some members of Rainbow.

    Attributes:
        noise_of_play: that of their networks while they play.
    """

    agent: Rainbow

    def __init__(self, agent: Rainbow, members: slice):
        self.noise_of_play = agent.noise(members)
        self._best: Tensor | None = None
        super().__init__(agent, members)

    def update(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """One step of each member's optimiser."""
        self.noise_of_play, self._best = self.agent.noise(self.members), None
        return super().update(batch)

    def quietly_best(self) -> Tensor:
        """The best action in every state without noise, (members, states)."""
        if self._best is None:
            self._best = self.agent.worth(self.agent.values(self.network, self.states())).argmax(-1)
        return self._best

    def said_of(self, network: Rows, inputs: Tensor) -> Tensor:
        """What networks say, as noisy as they are in play."""
        return self.agent.values(network, inputs, self.noise_of_play)

    def asked(self, network: Rows, known: Tensor | None) -> Callable[[Tensor], Tensor]:
        """Networks under new noise, which is the same whatever they are asked; what is known has no noise to renew."""
        noise = self.agent.noise(self.members)
        if noise is not None and known is not None:
            known = self.agent.values(network, self.states(), noise)
        if known is not None:
            return lambda inputs: (inputs @ known).float()
        return lambda inputs: self.agent.values(network, inputs, noise).float()

    def losses(self, batch: dict[str, Tensor]) -> Tensor:
        """Each member's loss, (members,); each transition's error goes into the batch."""
        agent, config = self.agent, self.config
        online = self.asked(self.network, self.known)
        said = online(batch["seen"])
        with torch.no_grad():
            following = self.asked(self.target, self.aims)(batch["reached"])
            judge = agent.worth(online(batch["reached"]) if config.double else following)
            best = judge.argmax(-1)
            discounts = batch["discounts"] * batch["going_on"]
        if config.distributional:
            mine, theirs = (of_actions(each, chosen, agent.of_action) for each, chosen in (
                (said, batch["actions"].long()), (following, best)))  # fmt: skip
            goals = projected(theirs.softmax(-1), batch["rewards"], discounts, agent.atoms)
            errors = -(goals * mine.log_softmax(-1)).sum(-1)
            batch["errors"] = (errors + torch.xlogy(goals, goals).sum(-1)).detach().clamp(min=0)
        else:
            goals = batch["rewards"] + discounts * following.gather(-1, best[..., None]).squeeze(-1)
            mine = said.gather(-1, batch["actions"].long()[..., None]).squeeze(-1)
            errors = functional.smooth_l1_loss(mine, goals, reduction="none")
            batch["errors"] = (goals - mine).detach().abs()
        return average(errors * batch["weights"] if "weights" in batch else errors, batch["valid"])


def of_actions(said: Tensor, actions: Tensor, returns: int) -> Tensor:
    """What is said of the returns of some actions, (members, batch, returns)."""
    each = said.unflatten(-1, (-1, returns))
    return each.gather(-2, actions[..., None, None].expand(*actions.shape, 1, returns)).squeeze(-2)


def disturbed(mean: Layers, deviation: Layers, noise: Noise) -> Layers:
    """Layers with factorised noise on them (Fortunato et al. 2018)."""
    layers = []
    for number, (given, made) in enumerate(noise):
        weight, bias = 2 * number, 2 * number + 1
        layers.append(mean[weight] + deviation[weight] * (given[:, :, None] * made[:, None]))
        layers.append(mean[bias] + deviation[bias] * made[:, None])
    return layers


def projected(chances: Tensor, rewards: Tensor, discounts: Tensor, atoms: Tensor) -> Tensor:
    """The distribution of reward + discount x return over the same returns (Bellemare et al. 2017).

    Args:
        chances: of the returns, (…, returns).
        rewards, discounts: (…).
        atoms: the returns, evenly spaced.
    """
    apart = (atoms[-1] - atoms[0]) / (len(atoms) - 1)
    reached = (rewards[..., None] + discounts[..., None] * atoms).clamp(atoms[0], atoms[-1])
    # The share that a return gets falls from 1 at it to 0 at its neighbours.
    near = 1 - ((reached[..., None, :] - atoms[:, None]) / apart).abs()
    return (near.clamp(min=0) * chances[..., None, :]).sum(-1)


def followed(
    memory: Replay, members: slice, places: np.ndarray, copies: int, steps: int, gamma: float
) -> tuple[np.ndarray, np.ndarray]:
    """Transitions over so many steps, or fewer where an episode or the memory ends, and what discounts what follows.

    Args:
        memory: of single steps.
        members: whose.
        places: where they begin, (members, batch).
        copies: of each member; those of a step lie side by side.
        steps: at most.
        gamma: discount.
    """
    found = memory.at(members, places)
    rows = memory.size // copies
    later = (memory.next // copies - 1 - places // copies) % rows
    rewards, taken = found["rewards"].astype(np.float64), np.ones(places.shape, int)
    goes_on = ~found["ended"]
    for ahead in range(1, steps):
        goes_on = goes_on & (later >= ahead)
        if not goes_on.any():
            break
        next_one = memory.at(members, (places + ahead * copies) % memory.size)
        rewards += gamma**ahead * np.where(goes_on, next_one["rewards"], 0)
        for name in ("reached", "going_on"):
            mask = goes_on.reshape(goes_on.shape + (1,) * (found[name].ndim - goes_on.ndim))
            found[name] = np.where(mask, next_one[name], found[name])
        taken += goes_on
        goes_on = goes_on & ~next_one["ended"]
    found["rewards"] = rewards
    return found, gamma**taken
