"""PPO with a memory: a gated recurrent unit (Cho et al. 2014) between the encoder and the heads.

Minibatches are made of copies, each with its whole rollout: gradients go back through all of it, from the memory that
the rollout started with. Episodes start from an empty memory.
"""

import numpy as np
import torch
from torch import Tensor, nn

from lcd.agents.initialise import initialise
from lcd.agents.networks import in_full, make_encoder
from lcd.agents.ppo import PPO
from lcd.agents.settings import RecurrentPPOConfig
from lcd.envs.errors import InputError


class RecurrentActorCritic(nn.Module):
    """A policy and a value on an encoder and a memory.

    Args:
        shape: shape of one feature (an image as channels, height, width, or a vector).
        actions: number of discrete actions.
        encoder: a name in `ENCODERS`, or `auto`: `cnn` for images; vectors go through the MLP.
        width: units of the encoder's hidden layers.
        memory: units of the memory.
        scheme: how the layers start, a name in `lcd.agents.initialise.SCHEMES`.
    """

    def __init__(
        self, shape: tuple[int, ...], actions: int, encoder: str, width: int, memory: int, scheme: str = "orthogonal"
    ):
        super().__init__()
        self.encoder = make_encoder(shape, encoder, width, scheme)
        self.incoming = initialise(nn.Linear(self.encoder.features, 3 * memory), scheme, "memory")
        self.recurrent = initialise(nn.Linear(memory, 3 * memory), scheme, "memory")
        self.policy = initialise(nn.Linear(memory, actions), scheme, "policy")
        self.value = initialise(nn.Linear(memory, 1), scheme, "value")

    def forward(self, observations: Tensor, memory: Tensor, fresh: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Walk through (batch, time, …) observations.

        Args:
            observations: what was seen.
            memory: (batch, units) the memory before.
            fresh: (batch, time) does an episode start with the observation?

        Returns:
            Logits (batch, time, actions), values (batch, time) and the memory (batch, units) after.
        """
        batch, time = observations.shape[:2]
        incoming = self.incoming(self.encoder(observations.flatten(0, 1))).unflatten(0, (batch, time))
        kept = 1.0 - fresh.to(memory.dtype)
        memories = []
        for t in range(time):
            memory = self._remember(incoming[:, t], memory * kept[:, t, None])
            memories.append(memory)
        features = torch.stack(memories, dim=1)
        return in_full(self.policy, features), in_full(self.value, features).squeeze(-1), memory

    def _remember(self, incoming: Tensor, memory: Tensor) -> Tensor:
        reset_in, update_in, new_in = incoming.chunk(3, -1)
        reset_of, update_of, new_of = self.recurrent(memory).chunk(3, -1)
        update = torch.sigmoid(update_in + update_of)
        new = torch.tanh(new_in + torch.sigmoid(reset_in + reset_of) * new_of)
        return update * memory + (1 - update) * new


class RecurrentPPO(PPO):
    """PPO whose networks remember what they saw earlier in the episode."""

    Config = RecurrentPPOConfig
    config: RecurrentPPOConfig

    def network(self, shape: tuple[int, ...]) -> nn.Module:
        """One seed's network."""
        config = self.config
        if self.policy.deviations:
            raise InputError("agent=recurrent_ppo needs discrete actions: agent=ppo takes continuous ones.")
        return RecurrentActorCritic(
            shape, self.policy.outputs, config.encoder, config.width, config.memory, config.initialisation
        )

    def steps_like(self, number: int) -> tuple[Tensor, ...]:
        """So many steps of one copy, without content."""
        (seen,), memory = super().steps_like(number), torch.empty(1, self.config.memory, device="meta")
        return seen[None], memory, torch.zeros(1, number, dtype=torch.bool, device="meta")

    # Remembering

    def forget(self, copies: int) -> None:
        """New episodes start in all copies."""
        self._memory = torch.zeros(len(self.seeds), copies, self.config.memory, device=self.device)
        self._fresh = torch.ones(len(self.seeds), copies, dtype=torch.bool, device=self.device)

    def begin_episodes(self, fresh: np.ndarray) -> None:
        """New episodes start in some copies, (seeds, copies)."""
        self._fresh = torch.from_numpy(fresh).to(self.device)

    def recall(self) -> dict[str, Tensor]:
        """The memory, and in which copies it is of an episode that is over."""
        if not hasattr(self, "_memory"):
            return {}
        return {"memory": self._memory, "memory_fresh": self._fresh}

    def restore(self, memory: dict[str, Tensor]) -> None:
        """Put back what `recall` gave."""
        self._memory = memory["memory"].to(self.device)
        self._fresh = memory["memory_fresh"].to(self.device)

    # Acting

    @torch.no_grad()
    def act(self, features: Tensor, draws: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Sampled actions, their log-probabilities, values; what was seen is remembered."""
        logits, values, memory = self._look(features)
        self._memory = memory.float()
        return *self.policy.sample(logits, draws), values.float()

    @torch.no_grad()
    def value(self, features: Tensor) -> Tensor:
        """Values of features, (seeds, copies), which are not remembered."""
        return self._look(features)[1].float()

    def _look(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        with self._precision():
            logits, values, memory = self.networks(features[:, :, None], self._memory, self._fresh[:, :, None])
        return logits[:, :, 0], values[:, :, 0], memory

    # Learning

    def samples(self, rollout: dict[str, Tensor]) -> dict[str, Tensor]:
        """What minibatches are drawn from: copies with all of their steps, (seeds, copies, time, …)."""
        apart = {name: rollout.pop(name) for name in ("memory", "memory_fresh", "last_value")}
        ended = rollout["dones"] | (rollout["weights"] == 0)
        fresh = torch.cat([apart["memory_fresh"][:, None], ended[:, :-1]], dim=1)
        by_copy = {name: value.transpose(1, 2) for name, value in (rollout | {"fresh": fresh}).items()}
        return by_copy | {"memory": apart["memory"]}

    def loss(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """PPO's losses of one minibatch of each seed, all (seeds,)."""
        logits, values, _ = self.networks(self.features_of(batch["inputs"]), batch["memory"], batch["fresh"])
        apart = ("inputs", "memory", "number")
        steps = {name: value.flatten(1, 2) for name, value in batch.items() if name not in apart}
        return self.losses_of(logits.flatten(1, 2), values.flatten(1, 2), steps | {"number": batch["number"]})
