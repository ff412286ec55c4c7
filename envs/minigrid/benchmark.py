"""The benchmark `minigrid`: worlds of MiniGrid and BabyAI whose mission is always the same, with views for each."""

from __future__ import annotations

import contextlib
import csv
import io
import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import resources
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from lcd.envs.benchmarks import check_task, check_view
from lcd.envs.checks import MOST_STEPS, is_number
from lcd.envs.engines import SeededCopies, seeds_of_copies
from lcd.envs.errors import InputError
from lcd.envs.masks import VIEWS
from lcd.envs.minigrid import tiles

LARGEST = 255
"""The largest number of cells, rooms, things or what else a world is made with."""
MOST_DRAWS = 200_000
"""Whole numbers that a level is drawn by: a second or two."""
IDS: Mapping[str, str] = {
    "minigrid/Empty-Random-6x6": "MiniGrid-Empty-Random-6x6-v0",
    "minigrid/LavaGapS5": "MiniGrid-LavaGapS5-v0",
    "minigrid/SimpleCrossingS9N1": "MiniGrid-SimpleCrossingS9N1-v0",
    "minigrid/FourRooms": "MiniGrid-FourRooms-v0",
    "minigrid/DoorKey-5x5": "MiniGrid-DoorKey-5x5-v0",
    "minigrid/DoorKey-6x6": "MiniGrid-DoorKey-6x6-v0",
    "minigrid/Unlock": "MiniGrid-Unlock-v0",
    "minigrid/MultiRoom-N2-S4": "MiniGrid-MultiRoom-N2-S4-v0",
    "minigrid/RedBlueDoors-6x6": "MiniGrid-RedBlueDoors-6x6-v0",
    "minigrid/MemoryS7": "MiniGrid-MemoryS7-v0",
    "minigrid/GoToRedBallGrey": "BabyAI-GoToRedBallGrey-v0",
    "minigrid/GoToRedBall": "BabyAI-GoToRedBall-v0",
    "minigrid/OpenRedDoor": "BabyAI-OpenRedDoor-v0",
}
"""Task → id. Missions are texts, which no agent here reads: these are the tasks that need none."""
ABOUT: Mapping[str, str] = {
    "minigrid/Empty-Random-6x6": "one room, a goal in its corner, a start anywhere",
    "minigrid/LavaGapS5": "one gap in a strip of lava before the goal",
    "minigrid/SimpleCrossingS9N1": "one gap in a wall across the room",
    "minigrid/FourRooms": "four large rooms, start and goal anywhere",
    "minigrid/DoorKey-5x5": "take a key, open a door, reach the goal",
    "minigrid/DoorKey-6x6": "the same in larger rooms",
    "minigrid/Unlock": "take a key and open a door",
    "minigrid/MultiRoom-N2-S4": "open a door between two rooms, reach the goal",
    "minigrid/RedBlueDoors-6x6": "open the red door, and only then the blue one",
    "minigrid/MemoryS7": "go to the thing that was seen at the start",
    "minigrid/GoToRedBallGrey": "go to the red ball among seven grey things",
    "minigrid/GoToRedBall": "go to the red ball among seven things of any colour",
    "minigrid/OpenRedDoor": "open the red door of the room",
}
RANGES = "ranges.csv"
SIGHT = 7
"""Cells that an agent sees, ahead and across."""


class MiniGrid:
    """MiniGrid and BabyAI: an agent's sight as MiniGrid draws it, and as masks made of its symbolic observation."""

    name = "minigrid"
    tasks: Sequence[str] = tuple(IDS)
    about: Mapping[str, str] = ABOUT
    views: Sequence[str] = VIEWS
    masks_are = (
        "masks are drawn of MiniGrid's symbolic observation, of the same cells that the pixels show. In figure_ground "
        "things are white by their shape and walls are grey, so that colours are lost; in semantic red says what a "
        "thing is, green its colour and blue whether a door is open. φ says how much better agents learn from these."
    )

    @property
    def r_min(self) -> Mapping[str, float]:
        """A random agent's mean return (`lcd.envs.minigrid.shortest`)."""
        return {task: low for task, (low, _) in _ranges().items()}

    @property
    def r_max(self) -> Mapping[str, float]:
        """The mean of the best possible returns of some levels (`lcd.envs.minigrid.shortest`)."""
        return {task: high for task, (_, high) in _ranges().items()}

    def make_vec(self, task: str, *, view: str, split: str, num_envs: int, seed: int, **knobs: Any) -> VectorEnv:
        """Copies of a task; knobs are what MiniGrid's environment is made with (`size`, `max_steps`, …)."""
        check_task(self, task)
        check_view(self, task, view)
        seeds = seeds_of_copies([seed], num_envs, split)
        return Drawn(SeededCopies([partial(single, task, knobs)] * num_envs, seeds), view)


class Symbols(gymnasium.ObservationWrapper):
    """A world that shows its symbolic observation alone."""

    def __init__(self, env: gymnasium.Env) -> None:
        """Leave out direction, which the sight does not depend on, and mission."""
        super().__init__(env)
        self.observation_space = env.observation_space["image"]
        inside: Any = env.unwrapped
        self._draw, self._drawn = inside._rand_int, 0
        inside._rand_int = self._counted

    def _counted(self, low: int, high: int) -> int:
        """A whole number for the level, as MiniGrid draws it; who draws for ever looks for room that there is not."""
        self._drawn += 1
        if self._drawn > MOST_DRAWS:
            raise InputError(
                f"A level of {self.spec.id if self.spec else self.unwrapped} was not found in {MOST_DRAWS} draws: its "
                "knobs ask for more rooms or things than there is room for."
            )
        return self._draw(low, high)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin a level; BabyAI prints what it draws and rejects, which is nobody's business."""
        self._drawn = 0
        with contextlib.redirect_stdout(io.StringIO()):
            return super().reset(seed=seed, options=options)

    def observation(self, observation: Mapping[str, Any]) -> np.ndarray:
        """The codes of the cells in sight."""
        return observation["image"]


class Drawn(VectorWrapper):
    """Copies whose symbolic observations are drawn under a view."""

    def __init__(self, env: VectorEnv, view: str) -> None:
        """Draw what copies see."""
        super().__init__(env)
        self.view = view
        columns, rows, _ = env.single_observation_space.shape
        shape = (rows * tiles.TILE, columns * tiles.TILE, 3)
        self.single_observation_space = spaces.Box(0, 255, shape, np.uint8)
        self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin new levels."""
        codes, infos = self.env.reset(seed=seed, options=options)
        return tiles.drawn(codes, self.view), infos

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step, and draw what ended episodes, too."""
        codes, rewards, terminated, truncated, infos = self.env.step(actions)
        if "final_obs" in infos:
            last = [each if final is None else final for each, final in zip(codes, infos["final_obs"], strict=True)]
            infos = {**infos, "final_obs": tiles.drawn(np.stack(last), self.view)}
        return tiles.drawn(codes, self.view), rewards, terminated, truncated, infos

    def rest(self, copies: np.ndarray) -> None:
        """Leave out these copies until the next reset."""
        self.env.rest(copies)


def single(task: str, knobs: Mapping[str, Any] | None = None) -> gymnasium.Env:
    """One world."""
    if find_spec("minigrid") is None:
        raise InputError(
            "benchmark=minigrid needs MiniGrid, which is not installed: pip install "
            "'learning-challenge-diagnosticator[minigrid]'."
        )
    import minigrid  # noqa: F401  (it registers its worlds)

    for name, value in (knobs or {}).items():
        most = MOST_STEPS if name == "max_steps" else LARGEST
        if is_number(value) and not abs(value) <= most:
            raise InputError(f"{name} is {value}, but in {task} it may be at most {most}.")
    try:
        return Symbols(gymnasium.make(IDS[task], disable_env_checker=True, **(knobs or {})))
    except (TypeError, ValueError, AssertionError, IndexError) as why:
        reason = (str(why) or "MiniGrid has no such world").splitlines()[0]
        raise InputError(f"{task} cannot be made with {dict(knobs or {})}: {reason}.") from why


@cache
def _ranges() -> Mapping[str, tuple[float, float]]:
    """Task → R_min and R_max, NaN where not known."""
    lines = resources.files(__package__).joinpath(RANGES).read_text(encoding="utf-8").splitlines()
    found = {row["task"]: row for row in csv.DictReader(lines)}
    return {
        task: (float(row["r_min"]), float(row["r_max"])) if (row := found.get(task)) else (math.nan, math.nan)
        for task in IDS
    }


MINIGRID = MiniGrid()
"""MiniGrid and BabyAI: grid worlds under an agent's own sight, with masks of their symbolic observation."""
