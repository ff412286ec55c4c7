"""Rewards divided by the standard deviation of their discounted sums, for each seed on its own."""

import numpy as np

from lcd.agents.ranks import ALONE, Ranks


class RewardNormaliser:
    """Keeps a running variance of discounted returns and scales rewards by it.

    It works on the host in double precision: rewards are born there, and no device or precision setting
    touches the statistics.

    Args:
        seeds: number of seeds.
        copies: environment copies of each seed.
        gamma: the discount of the running returns.
        limit: normalised rewards are clipped to ± this.
        ranks: the processes whose rewards count.
    """

    def __init__(self, seeds: int, copies: int, gamma: float, limit: float = 10.0, ranks: Ranks = ALONE):
        self.gamma, self.limit, self.ranks = gamma, limit, ranks
        self.returns = np.zeros((seeds, copies))
        self.mean = np.zeros(seeds)
        self.variance = np.ones(seeds)
        self.count = np.full(seeds, 1e-4)

    def __call__(self, rewards: np.ndarray, dones: np.ndarray) -> np.ndarray:
        """Take one rollout's rewards into the statistics and return them scaled; all are (seeds, time, copies)."""
        sums = np.empty(rewards.shape)
        for t in range(rewards.shape[1]):
            self.returns = self.returns * self.gamma + rewards[:, t]
            sums[:, t] = self.returns
            self.returns *= ~dones[:, t]
        values = sums.reshape(len(sums), -1)
        for number, mean, variance in self.ranks.gather((values.shape[1], values.mean(1), values.var(1))):
            self._merge(number, mean, variance)
        scaled = rewards / np.sqrt(self.variance + 1e-8)[:, None, None]
        return scaled.clip(-self.limit, self.limit)

    def _merge(self, number: int, mean: np.ndarray, variance: np.ndarray) -> None:
        """Take a batch's mean and variance into the running ones (Chan's parallel formula)."""
        delta = mean - self.mean
        total = self.count + number
        squares = self.variance * self.count + variance * number
        self.mean = self.mean + delta * number / total
        self.variance = (squares + delta**2 * self.count * number / total) / total
        self.count = total

    def state(self) -> dict[str, np.ndarray]:
        """What a checkpoint keeps."""
        return {name: getattr(self, name).copy() for name in ("returns", "mean", "variance", "count")}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from a checkpoint's state."""
        for name, value in state.items():
            setattr(self, name, np.array(value))
