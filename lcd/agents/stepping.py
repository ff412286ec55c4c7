"""One meaning of a step for every autoreset mode, and the bookkeeping of episodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from lcd.agents.ranks import ALONE, Ranks
from lcd.envs.errors import InputError
from lcd.process.deadlines import beat


@dataclass
class Step:
    """What one call of `Stepper.step` tells about every copy.

    Attributes:
        observations: what the next action answers.
        rewards: the training reward.
        original: the reward before it was thinned; what curves are made of.
        terminated, truncated: how an episode ended with this step, if it did.
        final: the observations that ended episodes (rows of other copies mean nothing), or None where unknown.
        valid: False where the environment ignored the action because it was resetting.
        infos: what else the environment told.
    """

    observations: np.ndarray
    rewards: np.ndarray
    original: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    final: np.ndarray | None
    valid: np.ndarray
    infos: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dones(self) -> np.ndarray:
        return self.terminated | self.truncated


class Stepper:
    """Steps a vector environment of any autoreset mode as if it reset within the step.

    Args:
        env: the environment; its copies are ordered seed by seed.
    """

    def __init__(self, env: VectorEnv):
        self.env = env
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        try:
            self.mode = AutoresetMode(mode)
        except ValueError as error:
            raise InputError(f"autoreset_mode={mode!r} of {env} is not one of Gymnasium's.") from error
        self.ended = np.zeros(env.num_envs, dtype=bool)

    def reset(self, seed: int | list[int] | None = None) -> np.ndarray:
        """Start new episodes everywhere."""
        self.ended[:] = False
        return self.env.reset(seed=seed)[0]

    def step(self, actions: np.ndarray) -> Step:
        """Act in all copies."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        beat()
        done = terminated | truncated
        valid = np.ones_like(done)
        final = None
        if self.mode is AutoresetMode.SAME_STEP:
            if "final_obs" in infos and done.any():
                final = _dense(infos["final_obs"], observations)
        elif self.mode is AutoresetMode.NEXT_STEP:
            valid = ~self.ended
            final = observations
        elif done.any():
            final = observations.copy()
            observations, _ = self.env.reset(options={"reset_mask": done})
        self.ended = done.copy()
        original = infos.get("original_reward", rewards)
        return Step(observations, rewards, original, terminated, truncated, final, valid, infos)


class EpisodeLog:
    """Returns and lengths of the episodes that ended, for each seed.

    Args:
        seeds: number of seeds.
        copies: environment copies of each seed.
    """

    def __init__(self, seeds: int, copies: int):
        self.seeds = seeds
        self.owner = np.repeat(np.arange(seeds), copies)
        self.returns = np.zeros(seeds * copies)
        self.lengths = np.zeros(seeds * copies)
        self.finished = np.empty((0, 3))
        self._new: list[np.ndarray] = []

    def add(self, step: Step, counted: np.ndarray | None = None) -> np.ndarray:
        """Take in one step and return which copies' episodes ended; only those in `counted` are kept."""
        self.returns += step.original * step.valid
        self.lengths += step.valid
        ended = step.dones
        if ended.any():
            kept = ended if counted is None else ended & counted
            self._new.append(np.stack([self.owner[kept], self.returns[kept], self.lengths[kept]], axis=1))
            self.returns[ended] = 0.0
            self.lengths[ended] = 0.0
        return ended

    def pop(self, ranks: Ranks = ALONE) -> list[dict[str, float] | None]:
        """Statistics of each seed's finished episodes since the last call, on all ranks, None where none finished."""
        finished = np.concatenate(ranks.gather(self._gathered()))
        self.finished = np.empty((0, 3))
        finished = finished[np.argsort(finished[:, 0], kind="stable")]
        of_seed = np.split(finished, np.searchsorted(finished[:, 0], np.arange(1, self.seeds)))
        return [summarise(episodes[:, 1], episodes[:, 2]) if len(episodes) else None for episodes in of_seed]

    def state(self) -> dict[str, np.ndarray]:
        """What a checkpoint keeps."""
        return {"returns": self.returns.copy(), "lengths": self.lengths.copy(), "finished": self._gathered()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint's state."""
        self.returns, self.lengths = np.array(state["returns"]), np.array(state["lengths"])
        self.finished, self._new = np.array(state["finished"]), []

    def _gathered(self) -> np.ndarray:
        self.finished = np.concatenate([self.finished, *self._new])
        self._new = []
        return self.finished


def summarise(returns: np.ndarray, lengths: np.ndarray) -> dict[str, float]:
    """A curve row's columns about episodes."""
    return {
        "episodes": len(returns),
        "return_mean": float(returns.mean()),
        "return_std": float(returns.std()),
        "length_mean": float(lengths.mean()),
    }


def _dense(final: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Gymnasium's wrappers give an object array with None where no episode ended; ours give a dense one."""
    if final.dtype != object:
        return final
    dense = np.zeros_like(like)
    for copy, observation in enumerate(final):
        if observation is not None:
            dense[copy] = observation
    return dense
