"""PPO of which some members' weights are not finite any more from some iteration on."""

import os

import torch

from lcd.agents.ppo import PPO

MEMBERS = "LCD_TEST_POISONED"


class Poisoned(PPO):
    """The members are those whose numbers the environment's variable lists."""

    def training_step(self, rollout, index):
        super().training_step(rollout, index)
        members = [int(number) for number in os.environ.get(MEMBERS, "").split()]
        if members and index >= 1:
            with torch.no_grad():
                next(iter(self.networks.parameters()))[members] = torch.nan
