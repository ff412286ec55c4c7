"""Tasks whose optimum is known: a bandit, a chain and a memory-free gridworld, all of a seed's copies in one array."""

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv


class Task(VectorEnv):
    """Episodes end and begin anew within a step; `play` says what an action does."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
    size = 2
    actions = 2
    best = 1.0
    """The mean return of an optimal policy."""

    def __init__(self, num_envs, seed=0):
        self.num_envs, self.rng = num_envs, np.random.default_rng(seed)
        self.single_observation_space = spaces.Box(-1, 1, (self.size,), np.float32)
        self.single_action_space = spaces.Discrete(self.actions)
        self.observation_space = spaces.Box(-1, 1, (num_envs, self.size), np.float32)
        self.action_space = spaces.MultiDiscrete([self.actions] * num_envs)

    def reset(self, *, seed=None, options=None):
        self.place, self.time = np.zeros((2, self.num_envs), dtype=np.int64)
        self.start(np.ones(self.num_envs, dtype=bool))
        return self.observe(), {}

    def step(self, actions):
        self.time += 1
        rewards, over = self.play(np.asarray(actions))
        self.start(over)
        return self.observe(), rewards, over, np.zeros_like(over), {}

    def start(self, copies):
        self.place[copies] = self.time[copies] = 0

    def observe(self):
        return np.eye(self.size, dtype=np.float32)[self.place]


class Bandit(Task):
    """Three arms that pay 1 with probability .2, .5 and .8; an episode is one pull."""

    arms = actions = 3
    best = 0.8
    pays = np.array([0.2, 0.5, 0.8])

    def play(self, actions):
        paid = self.rng.random(self.num_envs) < self.pays[actions]
        return paid.astype(float), np.ones(self.num_envs, dtype=bool)


class Chain(Task):
    """Six places in a row: to the right lies 1, to go left pays .1 and ends; an episode has at most 12 steps."""

    size, last = 6, 5

    def play(self, actions):
        right = actions == 1
        self.place = self.place + right
        arrived = self.place == self.last
        rewards = np.where(arrived, 1.0, np.where(right, 0.0, 0.1))
        return rewards, arrived | ~right | (self.time >= 12)


class Grid(Task):
    """A 5 x 5 grid, started anywhere, with the goal in the middle: 1 for reaching it, less .05 for each step."""

    side, size, actions, goal = 5, 25, 4, 12
    moves = np.array([[0, -1], [0, 1], [-1, 0], [1, 0]])

    @property
    def best(self):
        rows, columns = np.divmod(np.arange(25), 5)
        distance = np.abs(rows - 2) + np.abs(columns - 2)
        return 1 - 0.05 * np.delete(distance, self.goal).mean()

    def start(self, copies):
        super().start(copies)
        starts = self.rng.integers(24, size=int(copies.sum()))
        self.place[copies] = starts + (starts >= self.goal)

    def play(self, actions):
        where = np.stack(np.divmod(self.place, 5), axis=1) + self.moves[actions]
        row, column = where.clip(0, 4).T
        self.place = row * 5 + column
        arrived = self.place == self.goal
        return arrived - 0.05, arrived | (self.time >= 20)


class Corridor(VectorEnv):
    """Copies walk right with action 1 and are paid for it; an episode is cut after `length` steps."""

    def __init__(self, num_envs: int, length: int = 3, mode: AutoresetMode = AutoresetMode.SAME_STEP):
        self.num_envs, self.length, self.mode = num_envs, length, mode
        self.metadata = {"autoreset_mode": mode}
        self.single_observation_space = spaces.Box(0, 100, (1,), np.float32)
        self.single_action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool))
        if not mask.all():
            self.place[mask] = self.time[mask] = 0
        else:
            self.place, self.time = np.zeros((2, self.num_envs), dtype=np.int64)
        self.over = np.zeros(self.num_envs, dtype=bool)
        return self._observe(), {}

    def _observe(self):
        return (10 * self.time + self.place).astype(np.float32)[:, None]

    def step(self, actions):
        resetting = self.over if self.mode is AutoresetMode.NEXT_STEP else np.zeros_like(self.over)
        self.place = np.where(resetting, 0, self.place + actions)
        self.time = np.where(resetting, 0, self.time + 1)
        rewards = np.where(resetting, 0.0, actions)
        cut = self.time >= self.length
        self.over, infos = cut.copy(), {}
        if self.mode is AutoresetMode.SAME_STEP and cut.any():
            infos = {"final_obs": self._observe(), "_final_obs": cut}
            self.place[cut] = self.time[cut] = 0
        return self._observe(), rewards, np.zeros_like(cut), cut, infos


class Home(Task):
    """A place on a line, started anywhere from -1 to 1; three steps of at most .4, and then one pays how far it is."""

    best = 0.0
    steps, reach = 3, 0.4

    def __init__(self, num_envs, seed=0):
        super().__init__(num_envs, seed)
        self.single_action_space = spaces.Box(-self.reach, self.reach, (1,), np.float32)
        self.action_space = spaces.Box(-self.reach, self.reach, (num_envs, 1), np.float32)

    def start(self, copies):
        self.place = self.place.astype(float)
        self.place[copies], self.time[copies] = self.rng.uniform(-1, 1, int(copies.sum())), 0

    def observe(self):
        return np.stack([self.place, self.time / self.steps], axis=1).astype(np.float32)

    def play(self, actions):
        assert (np.abs(actions) <= np.float32(self.reach)).all()
        self.place = self.place + actions[:, 0]
        over = self.time >= self.steps
        return np.where(over, -np.abs(self.place), 0.0), over
