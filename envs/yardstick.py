"""How hard toys are, measured without any agent that learns: a yardstick for scores that nobody guessed.

To see: how many labelled frames a probe needs until it reads the state at a fixed accuracy, from pixels against those
from the semantic view. To learn from reward, exactly: returns of an optimal, a random and a blind policy, how many
samples of random play tell a state's actions apart by what they earn, how far ahead one has to look, and more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lcd.envs.calibration import CalibrationBenchmark
from lcd.envs.hardness.chain import chain_of, relaxation_time
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.hardness.mdp import DiscreteMDP
from lcd.envs.hardness.solve import expected_return

ACCURACY = 0.8
"""Share of held-out frames whose state the probe has to read."""
COUNTS = (6, 12, 24, 48, 96, 192, 384, 768, 1536)
"""Numbers of labelled frames that are tried."""
HELD_OUT = 512
RIDGE = 1e-2
WIDTH_OF = 512
"""Frames whose distances the kernel's width is the median of."""


@dataclass(frozen=True)
class RewardHardness:
    """What makes a toy hard to learn from reward, in exact numbers that no agent was trained for.

    Attributes:
        optimal, random, blind: expected returns of an episode; blind is the best of one action always.
        samples: log₂ of the variance of returns to go under random play, as a multiple of what actions change of them:
            about how many samples of a state's actions tell which one is better.
        steps: log₂ of the steps of look-ahead from which on one plays as good as optimally: how far credit travels.
        rewarded: log₂ of how many episodes of random play one is rewarded in.
        relaxation: steps in which random play forgets where it was.
    """

    optimal: float
    random: float
    blind: float
    samples: float
    steps: float
    rewarded: float
    relaxation: float

    @property
    def to_learn(self) -> float:
        """Log₂ of samples times steps: the yardstick of RL hardness."""
        return self.samples + self.steps

    @property
    def blind_share(self) -> float:
        """What an agent that does not look has of what the best has over random play."""
        gap = self.optimal - self.random
        return (self.blind - self.random) / gap if gap > 0 else 1.0


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


def share_read(frames: np.ndarray, states: np.ndarray, held_out: np.ndarray, truth: np.ndarray, width: float) -> float:
    """Share of held-out frames whose state is read by kernel ridge regression on labelled ones."""
    alike, like = (np.exp(-_squared_distances(each, frames) / width) for each in (frames, held_out))
    targets = np.eye(int(max(states.max(), truth.max())) + 1)[states]
    mean = targets.mean(0)
    weights = np.linalg.solve(alike + RIDGE * np.eye(len(frames)), targets - mean)
    return float(((like @ weights + mean).argmax(1) == truth).mean())


def kernel_width(frames: np.ndarray) -> float:
    """The usual squared distance of two frames that differ."""
    apart = _squared_distances(frames[:WIDTH_OF], frames[:WIDTH_OF])
    return float(np.median(apart[apart > 1e-9])) if (apart > 1e-9).any() else 1.0


def _squared_distances(frames: np.ndarray, others: np.ndarray) -> np.ndarray:
    return (frames**2).sum(1)[:, None] + (others**2).sum(1) - 2 * frames @ others.T


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
    """Log₂ of the labelled frames that a probe needs to read the state, by its mean accuracy over a task's toys.

    Infinite where it never reads it.
    """
    toys = []
    for seed in seeds:
        labelled, others = (
            labelled_frames(_toys(benchmark, task, view, split, 32, seed), count, seed)
            for split, count in (("train", max(counts)), ("eval", HELD_OUT))
        )
        toys.append((labelled, others, kernel_width(labelled[0])))
    found: list[float] = []
    for count in counts:
        read = [share_read(frames[:count], states[:count], *others, width) for (frames, states), others, width in toys]
        found.append(float(np.mean(read)))
        if found[-1] >= ACCURACY:
            break
    return frames_needed(np.array(found), counts[: len(found)])


def reward_hardness(benchmark: CalibrationBenchmark, task: str, seeds: Sequence[int]) -> RewardHardness:
    """A task's numbers, as means over its toys of several seeds."""
    found = [_of_toy(benchmark.toy(task, seed)) for seed in seeds]
    return RewardHardness(*(float(mean) for mean in np.mean(found, axis=0)))


def _of_toy(mdp: DiscreteMDP) -> tuple[float, ...]:
    chain = chain_of(mdp)
    with np.errstate(divide="ignore"):
        logs = np.log2([chain.noise_to_signal, chain.depth, chain.rewarded])
    return (
        *(chain.optimal, chain.random, expected_return(mdp, "blind")),
        *(float(logs[0]), float(logs[1]), -float(logs[2]), relaxation_time(mdp)),
    )


def _toys(
    benchmark: CalibrationBenchmark, task: str, view: str, split: str, copies: int, seed: int
) -> HardnessDiscreteVectorEnv:
    made = benchmark.make_vec(task, view=view, split=split, num_envs=copies, seed=seed)
    assert isinstance(made, HardnessDiscreteVectorEnv)
    return made
