"""What test_ranks.py trains by several processes, and what each of them saw."""

import os
from pathlib import Path

import torch

from lcd.agents.ppg import PPG
from lcd.agents.ppo import PPO
from lcd.agents.recurrent import RecurrentPPO
from lcd.pipelines.jobs.ranks import join_ranks
from lcd.pipelines.jobs.train import train_rank

FOLDER = "LCD_TEST_FOLDER"


class Watching:
    """Writes down every iteration's losses, rewards, last gradient and weights."""

    def training_step(self, rollout, index):
        rewards = rollout["rewards"].clone()
        super().training_step(rollout, index)
        seen = {
            "losses": self.losses,
            "rewards": rewards,
            # PPG's auxiliary head has none in the policy phase.
            "gradients": [weight.grad.clone() for weight in self.networks.weights if weight.grad is not None],
            "weights": [weight.detach().clone() for weight in self.networks.weights],
        }
        torch.save(seen, Path(os.environ[FOLDER]) / f"{self.ranks.rank}-{index}.pt")


class WatchingPPO(Watching, PPO):
    pass


class WatchingPPG(Watching, PPG):
    pass


class WatchingRecurrentPPO(Watching, RecurrentPPO):
    pass


def dying_rank(run_config, run_dir, tracker, device, ranks, place):
    """The second process fails in its third rollout."""
    from lcd.agents.rollout import Rollouts

    collect = Rollouts.collect

    def failing(self):
        if ranks.rank == 1 and self.iteration == 2:
            if os.environ.get("LCD_TEST_END") == "die":
                os.abort()
            raise ValueError("told to")
        return collect(self)

    Rollouts.collect = failing
    try:
        train_rank(run_config, run_dir, tracker, device, ranks, place)
    finally:
        Rollouts.collect = collect


def train_dying(run_config, run_dir, tracker, device):
    arguments = (run_config, run_dir, tracker, device)
    with join_ranks(f"{__name__}:dying_rank", arguments, device, "") as (ranks, place):
        dying_rank(*arguments, ranks, place)
