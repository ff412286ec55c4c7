"""Collecting rollouts: one item of the dataset is one rollout of all seeds."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from lcd.agents.feature_file import FeatureFile, keeper
from lcd.agents.finite import lost_of, require_finite
from lcd.agents.memory import begin_episodes, forget, recall, restore
from lcd.agents.normalise import RewardNormaliser
from lcd.agents.protocols import GivesCommands, LearnsFromFiles, draws_of, ranks_of
from lcd.agents.stepping import EpisodeLog, Stepper
from lcd.envs.errors import InputError
from lcd.envs.protocols import offers
from lcd.envs.state import keeps_state
from lcd.envs.streams import seed_sequence

# A policy: (observations of all copies, uniform draws (seeds, copies)) → actions, log-probabilities, values.
Act = Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]


RANKS = "ranks"


def uniforms(seeds: list[int], *stream: str | int, shape: tuple[int, ...]) -> Tensor:
    """Draws in [0, 1) of one named stream of each seed, (seeds, *shape); a seed that comes again gets the same.

    The stream's name holds the iteration's number, so nothing about it has to be kept in a checkpoint.
    """
    once = {
        seed: np.random.default_rng(seed_sequence(seed, *stream)).random(shape, np.float32)
        for seed in dict.fromkeys(seeds)
    }
    return torch.from_numpy(np.stack([once[seed] for seed in seeds]))


def commands(agent: Any, actions: Tensor) -> np.ndarray:
    """What the environment is told: an agent of discrete actions need not say."""
    return agent.commands(actions) if offers(agent, GivesCommands) else actions.flatten().cpu().numpy()


class Rollouts(IterableDataset):
    """Yields the rollouts of a run, each collected by the policy as it is at that moment.

    A rollout is a dictionary of (seeds, time, copies, …) tensors: `inputs` (what the agent makes features of when it
    learns), `actions`, `log_probs`, `values`, `rewards` (normalised, bootstrapped where an episode was cut off),
    `dones`, `weights` (0 where a step was only a reset) and `last_value` (seeds, copies); of an agent with a memory
    also what that was before the first step.

    Args:
        env: the training population, ordered seed by seed; of several ranks, this one's share.
        seeds: the run's seeds.
        agent: gives `see`, `encode`, `act`, `value`, the device and, where several processes train it, `ranks`.
        length: steps of each copy in a rollout.
        total: rollouts of the whole run.
        gamma: discount, for the value of episodes that were cut off.
        normalise: divide rewards by the standard deviation of their discounted sums.
    """

    def __init__(
        self, env: VectorEnv, seeds: list[int], agent: Any, length: int, total: int, gamma: float, normalise: bool
    ):
        self.env, self.seeds, self.agent = env, list(seeds), agent
        self.length, self.total, self.gamma = length, total, gamma
        self.copies = env.num_envs // len(seeds)
        self.ranks = ranks_of(agent)
        self.stepper = Stepper(env)
        self.episodes = EpisodeLog(len(seeds), self.copies)
        self.normaliser = RewardNormaliser(len(seeds), self.copies, gamma, ranks=self.ranks) if normalise else None
        self.iteration = 0
        self.observations: Any = None
        self._seen: Any = None
        self._file: FeatureFile | None = None

    @property
    def stage(self) -> str:
        """The stage of a curriculum that is being trained."""
        return ""

    @property
    def task(self) -> str | None:
        """The task that is being trained, where that changes within a run."""
        return None

    @property
    def stage_ended(self) -> bool:
        """Is the next rollout of another stage than the last?"""
        return False

    @property
    def steps_each(self) -> int:
        """Environment steps of each seed in one rollout, on all ranks."""
        return self.length * self.copies * self.ranks.world

    @property
    def step(self) -> int:
        """Environment steps of each seed so far."""
        return self.iteration * self.steps_each

    @property
    def steps(self) -> int:
        """Environment steps of each seed in the whole run."""
        return self.total * self.steps_each

    def __len__(self) -> int:
        # A known length keeps Lightning from fetching the next rollout before the policy has learned from this one.
        return self.total

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        while self.iteration < self.total:
            rollout = self.collect()
            self.iteration += 1
            yield rollout

    def collect(self) -> dict[str, Tensor]:
        """One rollout."""
        if self.observations is None:
            # The first rank's environments start as those of a process that is alone.
            self.observations = self.stepper.reset(seed=self.ranks.seeds(self.seeds) if self.ranks.rank else None)
            forget(self.agent, self.copies)
        seeds, copies, device = len(self.seeds), self.copies, self.agent.device
        shape = (self.length, copies)
        each = (*shape, *draws_of(self.agent))
        draws = uniforms(self.seeds, "exploration", self.iteration, *self.ranks.branch, shape=each).to(device)
        host = {name: np.zeros((seeds, *shape)) for name in ("rewards", "bootstrap")}
        dones, valid = np.zeros((2, seeds, *shape), dtype=bool)
        in_files = offers(self.agent, LearnsFromFiles)
        inputs = keeper(self.agent.frontend, self.length, self._file) if in_files else []
        self._file = inputs if isinstance(inputs, FeatureFile) else None
        stored: dict[str, Any] = {"inputs": inputs, "actions": [], "log_probs": [], "values": []}
        memory = recall(self.agent)

        for t in range(self.length):
            features, inputs = self.see(t)
            actions, log_probs, values = self.agent.act(features, draws[:, t])
            step = self.stepper.step(commands(self.agent, actions))
            self.episodes.add(step)
            for name, value in zip(stored, (inputs, actions, log_probs, values), strict=True):
                stored[name].append(value)
            host["rewards"][:, t] = step.rewards.reshape(seeds, copies)
            dones[:, t] = step.dones.reshape(seeds, copies)
            valid[:, t] = step.valid.reshape(seeds, copies)
            cut = step.truncated & ~step.terminated
            self.observations = step.observations
            if step.final is not None and cut.any():
                # What ends an episode is what is seen next where environments reset a step later.
                same = step.final is step.observations
                seen = self.see(t + 1)[0] if same else self.agent.encode(step.final)
                value = self.agent.value(seen).cpu().numpy()
                host["bootstrap"][:, t] = self.gamma * value * cut.reshape(seeds, copies)
            begin_episodes(self.agent, step)

        rewards = self._finite_rewards(host["rewards"])
        rewards = self.normaliser(rewards, dones) if self.normaliser else rewards
        rollout = {name: stack_in_time(values) for name, values in stored.items()} | memory
        rollout["rewards"] = torch.from_numpy(rewards + host["bootstrap"]).float()
        rollout["dones"] = torch.from_numpy(dones)
        rollout["weights"] = torch.from_numpy(valid).float()
        rollout["last_value"] = self.agent.value(self.see(self.length)[0])
        return rollout

    def see(self, t: int) -> tuple[Tensor, Tensor]:
        """What the agent sees after `t` steps of a rollout, and what of it is kept.

        The last look of a rollout is the first of the next.
        """
        if self._seen is None or self._seen[0] is not self.observations:
            lost = lost_of(self.agent, self.seeds)
            here = self._step_after(t)
            self.observations = require_finite("an observation", self.observations, self.seeds, here, lost)
            self._seen = self.observations, self.agent.see(self.observations)
        return self._seen[1]

    def _step_after(self, t: int) -> int:
        """Environment steps of each seed after `t` steps of the rollout that is being collected."""
        return self.step + t * self.copies * self.ranks.world

    def _finite_rewards(self, rewards: np.ndarray) -> np.ndarray:
        """A rollout's rewards; of one that is not finite the first is to blame, of whichever seed."""
        lost = lost_of(self.agent, self.seeds)
        for t in np.flatnonzero((~np.isfinite(rewards)).any(axis=(0, 2))).tolist():
            rewards[:, t] = require_finite("a reward", rewards[:, t], self.seeds, self._step_after(t + 1), lost)
        return rewards

    def state_dict(self) -> dict:
        """Everything that the next rollout depends on, as tensors and numbers; of all ranks, on the first of them."""
        states = self.ranks.gather_first(self._state()) or []
        return states[0] if self.ranks.world == 1 else {RANKS: states}

    def _state(self) -> dict:
        state = {
            "iteration": self.iteration,
            "observations": _tensors(self.observations),
            "ended": _tensors(self.stepper.ended),
            "episodes": _tensors(self.episodes.state()),
        }
        if self.normaliser:
            state["normaliser"] = _tensors(self.normaliser.state())
        state["memory"] = recall(self.agent)
        if keeps_state([self.env]):
            state["env"] = _tensors(self.env.get_state())
        return state

    def load_state_dict(self, state: dict) -> None:
        """Continue from a checkpoint; an environment without `set_state` starts new episodes instead."""
        of_rank = state.get(RANKS, [state])
        if len(of_rank) != self.ranks.world:
            raise InputError(f"The checkpoint is of {len(of_rank)} processes, but this run has {self.ranks.world}.")
        self._restore(of_rank[self.ranks.rank])

    def _restore(self, state: dict) -> None:
        self.iteration = state["iteration"]
        if self.normaliser:
            self.normaliser.restore(_arrays(state["normaliser"]))
        self.episodes.restore(_arrays(state["episodes"]))
        if "env" in state:
            self.stepper.reset()
            self.env.set_state(_arrays(state["env"]))
            self.stepper.ended = _arrays(state["ended"])
            self.observations = _arrays(state["observations"])
            restore(self.agent, state.get("memory", {}))


def stack_in_time(values: list[Tensor] | FeatureFile) -> Tensor:
    """(seeds, copies, …) of every step → (seeds, time, copies, …), images with the strides that they came with."""
    if isinstance(values, FeatureFile):
        return values.stacked()
    if values[0].dim() == 5:
        return torch.stack([value.movedim(2, -1) for value in values], dim=1).movedim(-1, 3)
    return torch.stack(values, dim=1)


def loader(rollouts: Rollouts) -> DataLoader:
    """What Lightning iterates: rollouts as they are, in this process."""
    return _ResumableLoader(rollouts, batch_size=None, num_workers=0, collate_fn=_as_is)


class _ResumableLoader(DataLoader):
    """Lets Lightning put the rollouts' state into its checkpoints (it drops a plain loader's silently)."""

    def state_dict(self) -> dict:
        return self.dataset.state_dict()

    def load_state_dict(self, state: dict) -> None:
        self.dataset.load_state_dict(state)


def _as_is(rollout: dict[str, Tensor]) -> dict[str, Tensor]:
    return rollout


def _tensors(state):
    """Arrays as tensors, so that a checkpoint loads with `weights_only=True`; unsigned 64 bits travel as signed."""
    if isinstance(state, dict):
        return {key: _tensors(value) for key, value in state.items()}
    if isinstance(state, np.ndarray):
        if state.dtype == np.uint64:
            return {"uint64": torch.from_numpy(state.view(np.int64).copy())}
        return torch.from_numpy(state.copy())
    return state


def _arrays(state):
    if isinstance(state, dict):
        if set(state) == {"uint64"}:
            return state["uint64"].numpy().view(np.uint64).copy()
        return {key: _arrays(value) for key, value in state.items()}
    return state.numpy().copy() if isinstance(state, Tensor) else state
