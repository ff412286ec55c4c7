"""The small worlds that `lcd new benchmark` writes, each of them wrong in exactly one way."""

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from lcd.envs.starters import gridworld
from lcd.envs.starters.gridworld import World

CELLS = 2
"""So few that looks come again within a thousand moments."""


class Wrong(World):
    """A world with a flaw."""

    def __init__(self, view, flaw, seed, noise=0.0):
        super().__init__(view, CELLS, noise, seed)
        self.flaw = flaw
        if flaw == "dict":
            self.observation_space = spaces.Dict({"image": self.observation_space})
        if flaw == "channels first":
            self.observation_space = spaces.Box(0, 255, (3, 24, 24), np.uint8)
        if flaw == "float images":
            self.observation_space = spaces.Box(0, 1, (24, 24, 3), np.float32)
        if flaw == "outside its space":
            self.observation_space = spaces.Box(0, 100, (24, 24, 3), np.uint8)

    def reset(self, *, seed=None, options=None):
        self.age = 0
        return super().reset(seed=seed, options=options)

    def step(self, action):
        self.age += 1
        if self.flaw == "raises":
            raise ZeroDivisionError("the world has an edge")
        if self.flaw == "shared generator" and self.view == "pixels":
            self.rng.random()
        shown, reward, terminated, truncated, infos = super().step(action)
        if self.flaw == "no seed":
            reward += np.random.default_rng().random()
        if self.flaw == "not finite":
            reward = np.nan
        if self.flaw == "endless":
            reward, terminated, truncated = 0.1 * reward, False, False
        if self.flaw == "blind":
            reward, terminated, truncated = float(action == 2), False, self.age == 10
        if self.flaw == "far":
            reward, terminated, truncated = float(self.age == 120), self.age == 120, False
        if self.flaw == "unpaid":
            reward, terminated, truncated = 0.0, False, self.age == 10
        if self.flaw == "long":
            reward, terminated, truncated = reward, False, self.age == 900
        return shown, reward, terminated, truncated, infos

    def seen(self):
        shown = super().seen()
        if self.flaw == "blank" and self.view == "semantic":
            shown[:] = 0
        if self.flaw == "alike" and self.view == "semantic":
            for thing in ("coin", "pit"):
                if not self.at(thing):
                    row, column = (12 * at for at in self.places[thing])
                    shown[row : row + 12, column : column + 12] = 170
        if self.flaw == "not drawn" and self.view != "pixels" and not self.at("pit"):
            row, column = (12 * at for at in self.places["pit"])
            shown[row : row + 12, column : column + 12] = 0
        if self.flaw == "blocks" and self.view == "figure_ground":
            shown[:] = 0
            for row, column in ((12 * at for at in place) for place in self.places.values()):
                shown[row + 3 : row + 8, column + 3 : column + 8] = 255
        if self.flaw == "channels first":
            shown = np.moveaxis(shown, -1, 0)
        if self.flaw == "float images":
            shown = (shown / 255).astype(np.float32)
        return {"image": shown} if self.flaw == "dict" else shown


class SharedMemory(gymnasium.vector.VectorWrapper):
    """Shows the same array after each step."""

    def step(self, actions):
        shown, *told = self.env.step(actions)
        self.shown = getattr(self, "shown", shown)
        self.shown[:] = shown
        return self.shown, *told


class Worlds:
    """One task a flaw."""

    name, views = "wrong", ("pixels", "figure_ground", "semantic")
    tasks = ("sound", "dict", "plain env", "no mode", "channels first", "float images", "outside its space", "shared")
    tasks += ("raises", "shared generator", "no seed", "not finite", "endless", "blind", "far", "unpaid", "long")
    tasks += ("blank", "alike", "not drawn", "one for all", "all held in", "low", "beyond", "no range")
    tasks += ("noisy", "noisy alike", "noisy blocks")
    ranges = {"low": (-0.9, 1.0), "beyond": (0.0, 0.5), "no range": (None, None), "far": (1.0, 1.1), "blind": (2.5, 10)}
    ranges |= {"unpaid": (0.0, 1.0), "long": (-400.0, 1000.0)}

    @property
    def r_min(self):
        return {task: self.ranges.get(task, (0.0, 1.0))[0] for task in self.tasks}

    @property
    def r_max(self):
        return {task: self.ranges.get(task, (0.0, 1.0))[1] for task in self.tasks}

    def make_vec(self, task, *, view, split, num_envs, seed):
        held_out = split == "eval" and task != "all held in"
        streams = np.random.SeedSequence([0 if task == "one for all" else seed, held_out]).spawn(num_envs)
        flaw, noise = (task.removeprefix("noisy "), 0.3) if task.startswith("noisy") else (task, 0.0)
        made = [lambda stream=stream: Wrong(view, flaw, stream, noise) for stream in streams]
        if task == "plain env":
            return made[0]()
        env = SyncVectorEnv(made, autoreset_mode=AutoresetMode.SAME_STEP, copy=True)
        if task == "no mode":
            env.metadata = {}
        return SharedMemory(env) if task == "shared" else env


class OfOneView(Worlds):
    """Only numbers, or only pixels."""

    tasks, views = ("sound",), ("pixels",)


__all__ = ["OfOneView", "Worlds", "gridworld"]
