"""How hard toys are, measured without any agent that learns: a yardstick for scores that nobody guessed.

To see: how many labelled frames a probe needs until it reads the state at a fixed accuracy, from pixels against those
from the semantic view. To learn from reward: exact returns of an optimal, a random and a blind policy, and how many
samples of random play it takes to tell a state's actions apart by what they earn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lcd.envs.calibration import CalibrationBenchmark
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.hardness.solve import expected_return

ACCURACY = 0.8
"""Share of held-out frames whose state the probe has to read."""
COUNTS = (6, 12, 24, 48, 96, 192, 384, 768, 1536)
"""Numbers of labelled frames that are tried."""
HELD_OUT = 512
RIDGE = 1e-2
COPIES, PLAYED = 256, 400
"""Copies, and steps of each, of random play."""


@dataclass(frozen=True)
class RewardHardness:
    """What makes a toy hard to learn from reward, in numbers that no agent was trained for.

    Attributes:
        optimal, random, blind: expected returns of an episode, exact; blind is the best of one action always.
        samples: log₂ of the variance of returns to go under random play, as a multiple of what actions change of them:
            about how many samples of a state's actions tell which one is better.
    """

    optimal: float
    random: float
    blind: float
    samples: float


def labelled_frames(env: HardnessDiscreteVectorEnv, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Frames of random play (count, pixels), from 0 to 1, and the states that they show."""
    rng = np.random.default_rng(seed)
    frames: list[np.ndarray] = []
    states: list[np.ndarray] = []
    shown, _ = env.reset(seed=seed)
    while len(frames) * env.num_envs < count:
        frames.append(shown.reshape(env.num_envs, -1) / 255)
        states.append(env.states.copy())
        for _ in range(3):  # neighbouring frames have states that depend on each other
            shown = env.step(rng.integers(env.knobs.action_space_size, size=env.num_envs))[0]
    return np.concatenate(frames)[:count], np.concatenate(states)[:count]


def accuracies(
    frames: np.ndarray, states: np.ndarray, held_out: np.ndarray, truth: np.ndarray, counts: Sequence[int] = COUNTS
) -> np.ndarray:
    """Shares of held-out frames whose state is read by kernel ridge regression on the first so many labelled frames."""
    squares = (frames**2).sum(1)
    apart = squares[:, None] + squares - 2 * frames @ frames.T
    across = (held_out**2).sum(1)[:, None] + squares - 2 * held_out @ frames.T
    width = np.median(apart[apart > 1e-9]) if (apart > 1e-9).any() else 1.0
    alike, like = np.exp(-apart / width), np.exp(-across / width)
    targets = np.eye(int(max(states.max(), truth.max())) + 1)[states]
    found = []
    for count in counts:
        mean = targets[:count].mean(0)
        weights = np.linalg.solve(alike[:count, :count] + RIDGE * np.eye(count), targets[:count] - mean)
        read = (like[:, :count] @ weights + mean).argmax(1)
        found.append(float((read == truth).mean()))
    return np.array(found)


def frames_needed(found: np.ndarray, counts: Sequence[int] = COUNTS, accuracy: float = ACCURACY) -> float:
    """Log₂ of the frames at which an accuracy is reached, linear in log frames; infinite where it never is."""
    grid, rising = np.log2(counts), np.maximum.accumulate(found)
    if rising[-1] < accuracy:
        return np.inf
    after = int((rising >= accuracy).argmax())
    if after == 0:
        return float(grid[0])
    share = (accuracy - rising[after - 1]) / (rising[after] - rising[after - 1])
    return float(grid[after - 1] + share * (grid[after] - grid[after - 1]))


def sight_hardness(
    benchmark: CalibrationBenchmark, task: str, view: str, seeds: Sequence[int], counts: Sequence[int] = COUNTS
) -> float:
    """Log₂ of the labelled frames that a probe needs to read the state, by its mean accuracy over a task's toys."""
    found = []
    for seed in seeds:
        labelled, others = (
            labelled_frames(_toys(benchmark, task, view, split, 32, seed), count, seed)
            for split, count in (("train", max(counts)), ("eval", HELD_OUT))
        )
        found.append(accuracies(*labelled, *others, counts))
    return frames_needed(np.mean(found, axis=0), counts)


def reward_hardness(benchmark: CalibrationBenchmark, task: str, seeds: Sequence[int]) -> RewardHardness:
    """A task's numbers, as means over its toys of several seeds."""
    returns, samples = [], []
    for seed in seeds:
        mdp = benchmark.toy(task, seed)
        returns.append([expected_return(mdp, "optimal"), expected_return(mdp, "random"), expected_return(mdp, "blind")])
        samples.append(noise_to_signal(*random_play(_toys(benchmark, task, "semantic", "train", COPIES, seed), seed)))
    optimal, random, blind = (float(mean) for mean in np.mean(returns, axis=0))
    return RewardHardness(optimal, random, blind, float(np.log2(np.mean(samples))))


def _toys(
    benchmark: CalibrationBenchmark, task: str, view: str, split: str, copies: int, seed: int
) -> HardnessDiscreteVectorEnv:
    made = benchmark.make_vec(task, view=view, split=split, num_envs=copies, seed=seed)
    assert isinstance(made, HardnessDiscreteVectorEnv)
    return made


def random_play(env: HardnessDiscreteVectorEnv, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """States, actions, rewards and ends of random play, each (steps, copies)."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    told: list[tuple[np.ndarray, ...]] = []
    for _ in range(PLAYED):
        states, actions = env.states.copy(), rng.integers(env.knobs.action_space_size, size=env.num_envs)
        _, rewards, terminated, truncated, _ = env.step(actions)
        told.append((states, actions, rewards, terminated | truncated))
    states, actions, rewards, ends = (np.array(each) for each in zip(*told, strict=True))
    return states, actions, rewards, ends


def noise_to_signal(states: np.ndarray, actions: np.ndarray, rewards: np.ndarray, ends: np.ndarray) -> float:
    """The variance of returns to go within a state and action, over how much its actions' means differ.

    What is left of an episode is not the action's doing: its mean is taken out. Of the difference of means what chance
    alone makes is taken off; where nothing is left the ratio is infinite.
    """
    to_go, left = np.zeros(rewards.shape), np.zeros(rewards.shape, dtype=int)
    later, count = np.zeros(rewards.shape[1]), np.zeros(rewards.shape[1], dtype=int)
    whole = np.zeros(rewards.shape, dtype=bool)
    ended = np.zeros(rewards.shape[1], dtype=bool)
    for step in range(len(rewards) - 1, -1, -1):
        ended |= ends[step]
        later, count = np.where(ends[step], 0, later) + rewards[step], np.where(ends[step], 0, count) + 1
        to_go[step], left[step], whole[step] = later, count, ended
    usual = np.bincount(left[whole], to_go[whole]) / np.maximum(np.bincount(left[whole]), 1)
    values = to_go[whole] - usual[left[whole]]
    many = int(actions.max()) + 1
    groups = states[whole] * many + actions[whole]
    size = np.bincount(groups, minlength=(int(states.max()) + 1) * many).reshape(-1, many)
    sums = np.bincount(groups, values, minlength=size.size).reshape(size.shape)
    squares = np.bincount(groups, values**2, minlength=size.size).reshape(size.shape)
    known = (size > 1).all(1)
    size, sums, squares = size[known], sums[known], squares[known]
    means = sums / size
    within = (squares - sums * means).sum() / (size - 1).sum()
    signal = (means.var(1, ddof=1) - (within / size).mean(1)).mean()
    return float(within / signal) if signal > 0 else np.inf
