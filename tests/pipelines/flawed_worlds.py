"""A benchmark whose semantic view is another task: its episodes are shorter."""

import os
import time

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv


class Clock(VectorEnv):
    """Pays for one of two actions until its time is over."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, num_envs, length):
        self.num_envs, self.length = num_envs, length
        self.single_observation_space = spaces.Box(0, 1, (1,), np.float32)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = spaces.Box(0, 1, (num_envs, 1), np.float32)
        self.action_space = spaces.MultiDiscrete([2] * num_envs)

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return np.zeros((self.num_envs, 1), np.float32), {}

    def step(self, actions):
        self.time += 1
        over = np.full(self.num_envs, self.time % self.length == 0)
        seen = np.zeros((self.num_envs, 1), np.float32)
        return seen, np.asarray(actions, float), over, np.zeros_like(over), {}


class Deadly(Clock):
    """Ends or blocks the process in which it is stepped, late enough to be made first."""

    blocks = False

    def step(self, actions):
        if self.time == 5:
            time.sleep(1e6) if self.blocks else os._exit(3)
        return super().step(actions)


class Blocking(Deadly):
    blocks = True


class Clocks:
    name, tasks, views = "clocks", ("clocks/a", "clocks/b"), ("pixels", "figure_ground", "semantic")
    r_min, r_max = dict.fromkeys(tasks, 0.0), dict.fromkeys(tasks, 9.0)

    def make_vec(self, task, *, view, split, num_envs, seed):
        return Clock(num_envs, 5 if (task, view) == ("clocks/a", "semantic") else 9)


class DeadlyClocks(Clocks):
    def make_vec(self, task, *, view, split, num_envs, seed):
        return (
            Deadly(num_envs, 9)
            if task == "clocks/b"
            else super().make_vec(task, view=view, split=split, num_envs=num_envs, seed=seed)
        )


class BlockingClocks(Clocks):
    def make_vec(self, task, *, view, split, num_envs, seed):
        return Blocking(num_envs, 9)
