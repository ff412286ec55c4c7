"""Moments of a task under random actions: what each view shows of them, what they paid, which episodes they made."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from lcd.agents.stepping import Stepper
from lcd.envs.benchmarks import Benchmark, make_copies
from lcd.envs.streams import seed_sequence

COPIES = 16
MOST_BYTES = 400_000_000
"""Of all views' observations that are kept."""


@dataclass(frozen=True)
class Episodes:
    """Episodes that ended, as many of each copy, so that short ones do not count more.

    Attributes:
        returns, lengths: of each.
        paid: whether anything but 0 was paid in it.
        unfinished: whether some copy ended none, so that those that ended are all that is known.
    """

    returns: np.ndarray
    lengths: np.ndarray
    paid: np.ndarray
    unfinished: bool


@dataclass(frozen=True)
class Moments:
    """What was played, (steps, copies, …) each; the views were played with the same seed and actions.

    Attributes:
        seen: view → what the action answers.
        valid: whether the environment took the action, and was not only beginning anew.
        steps_per_s: view → how fast its copies were stepped.
    """

    seen: dict[str, np.ndarray]
    actions: np.ndarray
    rewards: np.ndarray
    ended: np.ndarray
    valid: np.ndarray
    steps_per_s: dict[str, float]

    def episodes(self) -> Episodes:
        """The episodes that ended."""
        return episodes_of(self.rewards * self.valid, self.ended & self.valid)

    def times_of_pay(self) -> np.ndarray:
        """The steps from an episode's beginning to each of its rewards."""
        age, found = np.zeros(self.rewards.shape[1]), []
        for rewards, ended, valid in zip(self.rewards, self.ended, self.valid, strict=True):
            age += valid
            found.append(age[(rewards != 0) & valid])
            age[ended] = 0
        return np.concatenate(found)


def episodes_of(rewards: np.ndarray, ended: np.ndarray) -> Episodes:
    """The episodes in rewards and ends of (steps, copies)."""
    found: list[list[tuple[float, int, bool]]] = []
    for pay, ends in zip(rewards.T, ended.T, strict=True):
        stops = np.flatnonzero(ends) + 1
        parts = np.split(pay, stops)[: len(stops)]
        found.append([(float(part.sum()), len(part), bool(part.any())) for part in parts])
    each = min(map(len, found))
    kept = [episode for episodes in found for episode in (episodes[:each] if each else episodes)]
    return Episodes(
        np.array([total for total, _, _ in kept], float),
        np.array([length for _, length, _ in kept], int),
        np.array([paid for _, _, paid in kept], bool),
        unfinished=each == 0,
    )


def played(
    benchmark: Benchmark,
    task: str,
    views: Sequence[str],
    *,
    seed: int,
    moments: int,
    patience: float,
    knobs: dict[str, Any],
) -> Moments:
    """Play a task under each of its views with the same seed and random actions.

    Args:
        moments: how many steps of all copies.
        patience: seconds after which the first view is ended; the others are played as far.
    """
    steps = max(1, moments // COPIES)
    seen: dict[str, np.ndarray] = {}
    speeds: dict[str, float] = {}
    told: dict[str, np.ndarray] = {}
    for view in views:
        env = make_copies(benchmark, task, view=view, split="train", num_envs=COPIES, seed=seed, **knobs)
        try:
            size = np.dtype(env.single_observation_space.dtype).itemsize * np.prod(env.single_observation_space.shape)
            steps = min(steps, max(16, int(MOST_BYTES / len(views) / (size * COPIES))))
            began = time.perf_counter()
            shown, columns = _play(env, seed, steps, patience if not seen else np.inf)
            seen[view], speeds[view] = shown, len(shown) * COPIES / (time.perf_counter() - began)
        finally:
            env.close()
        told, steps = told or columns, min(steps, len(shown))
    columns = {name: part[:steps] for name, part in told.items()}
    return Moments({view: shown[:steps] for view, shown in seen.items()}, **columns, steps_per_s=speeds)


def _play(env: VectorEnv, seed: int, steps: int, patience: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    stepper, actions = Stepper(env), env.action_space
    actions.seed(int(seed_sequence(seed, "exploration").generate_state(1)[0]))
    shown = np.array(stepper.reset())
    seen: list[np.ndarray] = []
    told: list[tuple[np.ndarray, ...]] = []
    end = time.perf_counter() + patience
    while len(seen) < steps and (time.perf_counter() < end or len(seen) < 16):
        action = np.asarray(actions.sample())
        step = stepper.step(action)
        seen.append(shown)
        told.append((action, step.original, step.dones, step.valid))
        shown = np.array(step.observations)
    names = ("actions", "rewards", "ended", "valid")
    return np.stack(seen), {name: np.stack(part) for name, part in zip(names, zip(*told, strict=True), strict=True)}


def looks(shown: np.ndarray) -> np.ndarray:
    """A number for each row, equal where all that is shown is equal."""
    rows = np.ascontiguousarray(shown).reshape(len(shown), -1)
    digests = (hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in rows)
    return np.fromiter((int.from_bytes(digest, "little") for digest in digests), np.uint64, len(rows))
