"""The benchmark `atari`: games whose things are drawn as masks, by tables of the console's memory or by OCAtari."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import TimeLimit

from lcd.envs.atari.memory_tables import GAMES
from lcd.envs.atari.objects import LIBRARY, ObjectMasks
from lcd.envs.checks import MOST_STEPS, is_number, require_whole_number
from lcd.envs.engines import FRAMES_A_STEP
from lcd.envs.errors import InputError
from lcd.envs.masks import ALL_WHITE, Moment
from lcd.envs.viewed_benchmark import ViewedBenchmark

SIDE, FRAMES = 84, 4
STICKY = 0.25
"""Probability that the console takes the last action again: without it every episode begins and goes on alike."""
LONGEST = 27000
"""Steps of an episode, half an hour of play."""

# Random agents: Mnih et al. 2015, "Human-level control through deep reinforcement learning". The best: the rules.
RANGES: Mapping[str, tuple[float, float]] = {
    "atari/Pong": (-20.7, 21.0),
    "atari/Breakout": (1.7, 864.0),
    "atari/Freeway": (0.0, 34.0),
    "atari/Boxing": (0.1, 100.0),
    "atari/Bowling": (23.1, 300.0),
    "atari/Tennis": (-23.8, 24.0),
    "atari/FishingDerby": (-91.7, 99.0),
    "atari/Asterix": (210.0, math.nan),
    "atari/Kangaroo": (52.0, math.nan),
    "atari/Seaquest": (68.4, math.nan),
    "atari/SpaceInvaders": (148.0, math.nan),
}
"""Task → R_min and R_max, NaN where rules set no limit.

The first four have tables of ours, the others are OCAtari's: of its games some in which all that counts has a box, and
nothing depends on what colour it has (as cubes in Qbert, ghosts in MsPacman, floes in Frostbite do).
"""

ABOUT: Mapping[str, str] = {
    "atari/Pong": "return the ball past the other paddle, to 21",
    "atari/Breakout": "bounce a ball to break six rows of bricks",
    "atari/Freeway": "lead a chicken over ten lanes of cars",
    "atari/Boxing": "land more punches than the other boxer in two minutes",
    "atari/Bowling": "bowl ten frames",
    "atari/Tennis": "win sets against the other player",
    "atari/FishingDerby": "catch more fish than the other angler, past a shark",
    "atari/Asterix": "run between lanes for cauldrons, away from lyres",
    "atari/Kangaroo": "climb to the joey, past apples and monkeys",
    "atari/Seaquest": "shoot sharks, take divers aboard, and surface for air",
    "atari/SpaceInvaders": "shoot rows of invaders before they land",
}


class MemoryMasks:
    """Labels by the console's memory."""

    ground = 1
    figure = ALL_WHITE

    def __init__(self, game: str) -> None:
        """Take a game's table."""
        self.game, self.names = GAMES[game], GAMES[game].names

    def __call__(self, moment: Moment) -> np.ndarray:
        """The class of each pixel of the screen."""
        return self.game.labels(moment.picture, moment.env.ale.getRAM())

    def __str__(self) -> str:
        return "the console's memory"


class Atari(ViewedBenchmark):
    """Games in grey, four frames as channels, four skipped; their things are found in the console's memory."""

    name = "atari"
    tasks: Sequence[str] = tuple(RANGES)
    about: Mapping[str, str] = ABOUT
    r_min: Mapping[str, float] = {task: low for task, (low, _) in RANGES.items()}
    r_max: Mapping[str, float] = {task: high for task, (_, high) in RANGES.items()}
    knobs: Mapping[str, Any] = {"size": SIDE, "frames": FRAMES, "sticky": STICKY, "longest": LONGEST}
    needs = (("ale_py",), "atari")
    grey = True
    masks_are = (
        "masks are drawn of where the console's memory says that things are (paddles, ball, bricks by their rows, "
        "cars, chickens, boxers), of further games as OCAtari's boxes; scores and walls are background. φ says how "
        "much better agents learn from these than from the grey screen."
    )

    def check_installed(self, task: str) -> None:
        """Refuse to play without the games, and those without tables without OCAtari."""
        super().check_installed(task)
        if task.removeprefix("atari/") not in GAMES and find_spec(LIBRARY) is None:
            raise InputError(
                f"{task} takes its masks from OCAtari, which is not installed: pip install "
                "'learning-challenge-diagnosticator[ocatari-needs]', then pip install --no-deps ocatari (its numpy < 2 "
                "is metadata only)."
            )

    def check_knobs(self, task: str, knobs: Mapping[str, Any]) -> None:
        """Refuse knobs that the task does not have, or that are no probability and no length."""
        super().check_knobs(task, knobs)
        sticky = knobs.get("sticky", STICKY)
        if not is_number(sticky) or not 0 <= sticky <= 1:
            raise InputError(f"sticky is {sticky!r}, but it must be a number from 0 to 1.")
        require_whole_number("longest", knobs.get("longest", LONGEST), 1, MOST_STEPS)

    def masks(self, task: str, knobs: Mapping[str, Any]) -> MemoryMasks | ObjectMasks:
        """Labels by the game's table, else by OCAtari."""
        game = task.removeprefix("atari/")
        return MemoryMasks(game) if game in GAMES else ObjectMasks(game)

    def single(self, task: str, knobs: Mapping[str, Any]) -> gymnasium.Env:
        """One console."""
        env = gymnasium.make(
            f"ale_py:ALE/{task.removeprefix('atari/')}-v5",
            frameskip=1,
            repeat_action_probability=knobs["sticky"],
            disable_env_checker=True,
        )
        return TimeLimit(FramesSkipped(env), max_episode_steps=knobs["longest"])


class FramesSkipped(gymnasium.Wrapper):
    """A step is several frames under one action; what flickers is shown by the brighter of the last two."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step."""
        total, shown = 0.0, []
        for _ in range(FRAMES_A_STEP):
            screen, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            shown.append(screen)
            if terminated or truncated:
                break
        return np.max(shown[-2:], axis=0), total, terminated, truncated, info


ATARI = Atari()
"""Atari games as they are usually learned, with masks by the console's memory: four by our tables, seven by OCAtari."""
