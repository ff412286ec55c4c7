"""The benchmark `gridworld`: three small worlds with a coin and a pit. It runs as it is; make it yours.

What is wrong with it, before anything is trained; what makes its tasks hard; the tests at the end:

    lcd check gridworld:Gridworld
    lcd diagnose benchmark=gridworld:Gridworld
    python -m pytest gridworld.py

Give these commands in the folder of this file.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

# A task is a name and what makes its world: here how many cells a side has, and how much noise lies over its pixels.
TASKS: dict[str, dict[str, Any]] = {
    "gridworld/plain": {"cells": 4, "noise": 0.0},
    "gridworld/noisy": {"cells": 4, "noise": 0.7},  # hard to see
    "gridworld/wide": {"cells": 6, "noise": 0.0},  # the coin is met rarely
}
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
"""Up, right, down, left, as rows and columns."""
PIXELS = 24
"""Height and width of an image; a number that every `cells` divides."""
COLOURS = {"walker": (240, 240, 240), "coin": (250, 200, 40), "pit": (200, 60, 60)}
CLASSES = {"walker": 255, "coin": 170, "pit": 85}
"""The grey of each thing in the semantic mask: two things that must be told apart need two greys."""
SHAPES = {"walker": "full", "coin": "plus", "pit": "frame"}
"""How each thing is drawn: in a mask of one colour (`figure_ground`) only its shape tells what it is."""


class World(gymnasium.Env):
    """One world: reach the coin (+1), keep out of the pit (−1); either ends the episode, and so does time."""

    def __init__(self, view: str, cells: int, noise: float, seed: np.random.SeedSequence) -> None:
        self.view, self.cells, self.noise = view, cells, noise
        self.longest = 4 * cells
        # Images are bytes of (height, width, channels). Numbers without an image: Box(-1, 1, (n,), np.float32).
        self.observation_space = spaces.Box(0, 255, (PIXELS, PIXELS, 3), np.uint8)
        self.action_space = spaces.Discrete(len(MOVES))
        # What only pixels need (noise) is drawn by a generator of its own: the same seed and actions must give the
        # same worlds and rewards under every view.
        dynamics, looks = seed.spawn(2)
        self.rng, self.looks = np.random.default_rng(dynamics), np.random.default_rng(looks)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Put walker, coin and pit into three different cells."""
        super().reset(seed=seed)
        if seed is not None:
            dynamics, looks = np.random.SeedSequence(seed).spawn(2)
            self.rng, self.looks = np.random.default_rng(dynamics), np.random.default_rng(looks)
        places = self.rng.permutation(self.cells**2)[: len(COLOURS)]
        self.places: dict[str, tuple[int, ...]] = {
            thing: divmod(int(place), self.cells) for thing, place in zip(COLOURS, places, strict=True)
        }
        self.steps = 0
        return self.seen(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Walk one cell; walls stop the walker."""
        walker = (
            min(max(at + by, 0), self.cells - 1) for at, by in zip(self.places["walker"], MOVES[action], strict=True)
        )
        self.places["walker"] = tuple(walker)
        self.steps += 1
        reward = float(self.at("coin")) - float(self.at("pit"))
        # `terminated` is an end of the task, `truncated` one of the clock: an agent learns something else from each.
        return self.seen(), reward, reward != 0, reward == 0 and self.steps >= self.longest, {}

    def at(self, thing: str) -> bool:
        """Whether the walker stands where a thing is."""
        return self.places["walker"] == self.places[thing]

    def seen(self) -> np.ndarray:
        """The world under its view: `figure_ground` has all things in white, `semantic` each in a grey of its own."""
        image = np.zeros((PIXELS, PIXELS, 3), np.uint8)
        side = PIXELS // self.cells
        for thing in reversed(COLOURS):  # the walker last, on top
            row, column = (side * at for at in self.places[thing])
            paint: Any = {"pixels": COLOURS[thing], "figure_ground": 255, "semantic": CLASSES[thing]}[self.view]
            image[row : row + side, column : column + side][stencil(SHAPES[thing], side)] = paint
        if self.view == "pixels" and self.noise:
            blur = self.looks.integers(0, 256, image.shape)
            image = ((1 - self.noise) * image + self.noise * blur).astype(np.uint8)
        return image


def stencil(shape: str, side: int) -> np.ndarray:
    """Which of a cell's pixels a shape covers."""
    middle, inside = slice(side // 2 - 1, side // 2 + 1), slice(1, side - 1)
    covered = np.full((side, side), shape != "plus")
    if shape == "plus":
        covered[middle] = covered[:, middle] = True
    elif shape == "frame":
        covered[inside, inside] = False
    return covered


class Gridworld:
    """Three small worlds with a coin and a pit."""

    name = "gridworld"
    tasks = tuple(TASKS)
    # φ compares the first with the other two; ψ thins rewards under the last, in which seeing is done.
    views = ("pixels", "figure_ground", "semantic")
    # A random agent's mean return (`lcd check` measures it) and the best there is; leave out what nobody knows.
    r_min = {"gridworld/plain": 0.0, "gridworld/noisy": 0.0, "gridworld/wide": 0.0}
    r_max = dict.fromkeys(TASKS, 1.0)

    def make_vec(self, task: str, *, view: str, split: str, num_envs: int, seed: int, **knobs: Any) -> VectorEnv:
        """`num_envs` copies of a task. All that is random comes of `seed` and of `split` ("train" or "eval").

        A keyword beyond these is a knob: `lcd train benchmark=gridworld:Gridworld task=gridworld/plain
        task.knobs.noise=0.3`.
        """
        streams = np.random.SeedSequence([seed, split == "eval"]).spawn(num_envs)
        made = [partial(World, view, **{**TASKS[task], **knobs}, seed=stream) for stream in streams]
        # Copies in one step: natively vectorised environments are faster, and asked for in the same way.
        return SyncVectorEnv(made, autoreset_mode=AutoresetMode.SAME_STEP)


def played(task: str, view: str, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rewards and ends that some actions give under a view, (steps, copies) each."""
    env = Gridworld().make_vec(task, view=view, split="train", num_envs=actions.shape[1], seed=7)
    env.reset()
    told = [env.step(each)[1:4] for each in actions]
    rewards, terminated, truncated = (np.array(each) for each in zip(*told, strict=True))
    return rewards, terminated | truncated


def test_every_view_is_the_same_task() -> None:
    actions = np.random.default_rng(0).integers(0, len(MOVES), (100, 4))
    for task in TASKS:
        rewards, ends = played(task, "pixels", actions)
        assert rewards.any(), "nothing was paid, so that nothing is tested"
        for view in ("figure_ground", "semantic"):
            assert np.array_equal(played(task, view, actions)[0], rewards)
            assert np.array_equal(played(task, view, actions)[1], ends)


def test_a_random_agent_gets_what_the_benchmark_says() -> None:
    actions = np.random.default_rng(1).integers(0, len(MOVES), (400, 64))
    for task, said in Gridworld.r_min.items():
        rewards, ends = played(task, "semantic", actions)
        returns = [
            float(part.sum())
            for paid, over in zip(rewards.T, ends.T, strict=True)
            for part in np.split(paid, np.flatnonzero(over) + 1)[:-1]  # what is after the last end is no whole episode
        ]
        mean, error = np.mean(returns), np.std(returns) / np.sqrt(len(returns))
        # Three standard errors; where all episodes are paid alike there is none.
        assert abs(mean - said) <= 3 * error + 0.01, f"r_min['{task}'] is {said}, and a random agent gets {mean:.3f}"
