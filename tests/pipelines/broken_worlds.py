"""A benchmark whose environments give what no environment should, to one seed, after some steps."""

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

EPISODE = 10


class World(VectorEnv):
    """Reward 1 a step for ten steps; `wrong` says what is not a number, `late` from which step on."""

    def __init__(self, num_envs: int, wrong: str, late: int):
        self.num_envs, self.wrong, self.late = num_envs, wrong, late
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
        self.single_action_space = gymnasium.spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return self._seen(), {}

    def step(self, actions):
        self.steps, self.time = self.steps + 1, self.time + 1
        rewards = np.ones(self.num_envs)
        if self.wrong == "reward" and self.steps > self.late:
            rewards[0] = np.nan
        over = np.full(self.num_envs, self.time == EPISODE)
        final = self._seen()
        if over.any():
            self.time = 0
        infos = {"final_obs": final} if over.any() else {}
        return self._seen(), rewards, over, np.zeros(self.num_envs, bool), infos

    def _seen(self):
        seen = np.full((self.num_envs, 3), self.time / EPISODE, np.float32)
        if self.wrong == "observation" and self.steps > self.late:
            seen[0] = np.nan
        return seen


class Broken:
    """Tasks are `<what is wrong>` and `fine`; only seed 8's training environment is broken, and after 30 steps."""

    name = "broken"
    tasks = ("fine", "reward", "observation", "held-out-reward", "held-out-observation")
    views = ("pixels", "figure_ground", "semantic")
    r_min, r_max = dict.fromkeys(tasks, 0.0), dict.fromkeys(tasks, 20.0)

    def make_vec(self, task, *, view, split, num_envs, seed, **knobs):
        broken = "eval" if task.startswith("held-out") else "train"
        wrong = task.removeprefix("held-out-") if seed == 8 and split == broken else "nothing"
        # One view of a task may be broken alone.
        only = knobs.get("only", view)
        return World(num_envs, wrong if view == only else "nothing", late=30)


BROKEN = Broken()
