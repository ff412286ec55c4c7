"""Tabular MDPs that a command may name."""

import numpy as np

from lcd.envs.tabular.mdp import TabularMDP
from lcd.envs.tabular.vector import TabularVectorEnv

EASY = TabularMDP(np.array([[1, 1], [-1, -1]]), np.array([[1.0, 0.0], [0.0, 0.5]]), 3, name="easy")
NUMBER = 3
NONE: list = []


def both():
    """An easy one, and one that asks for a further look."""
    transitions = np.full((5, 2), 4)
    transitions[np.arange(4), 0] = np.arange(1, 5)
    rewards = np.zeros((5, 2))
    rewards[3, 0], rewards[0, 1] = 1.0, 0.6
    return [EASY, TabularMDP(transitions, rewards, 4, name="[deep]")]


def simulator():
    """The second of them as a simulator."""
    return TabularVectorEnv(8, both()[1], observation="number")


def asking(for_what):
    """No function that makes MDPs without being told more."""
    return [for_what]


class Endless(TabularVectorEnv):
    """Pays more than a number says."""

    def step(self, actions):
        observations, rewards, *others = super().step(actions)
        return observations, np.where(actions == 1, np.inf, rewards), *others


def endless():
    return Endless(8, EASY, observation="number")
