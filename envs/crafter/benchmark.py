"""The benchmark `crafter`: survival in a world, and single achievements in it, with masks of the world's own map."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import gymnasium

from lcd.envs.checks import MOST_STEPS, require_whole_number
from lcd.envs.crafter.world import SIDE, Survival, WorldMasks
from lcd.envs.viewed_benchmark import ViewedBenchmark

SMALLEST, LARGEST = 16, 128
"""Height and width of the smallest world, and of the largest, which takes seconds to make."""
ACHIEVEMENTS = 22
"""Each is paid 1, once; health that is lost costs, and gaining it back pays the same."""
LENGTH_AND_AREA = (10_000, 64)
TO_A_GOAL = (500, 32)
"""The same where one achievement is asked for."""
GOALS = ("collect_drink", "collect_wood", "eat_cow", "place_table")
TASKS: Mapping[str, str | None] = {
    "crafter/reward": None,
    **{f"crafter/{goal.replace('_', '-')}": goal for goal in GOALS},
}
"""Task → the achievement that it asks for; None: all of them, as Crafter itself pays."""
ABOUT: Mapping[str, str] = {
    "crafter/reward": "survive, and unlock 22 achievements, each paid once",
    "crafter/collect-drink": "find water and drink",
    "crafter/collect-wood": "find a tree and take wood",
    "crafter/eat-cow": "find a cow, and hit it until it is eaten",
    "crafter/place-table": "take wood until there is enough for a table, and place it",
}


class Crafter(ViewedBenchmark):
    """Crafter, and four of its achievements as tasks of their own."""

    name = "crafter"
    tasks: Sequence[str] = tuple(TASKS)
    about: Mapping[str, str] = ABOUT
    knobs: Mapping[str, Any] = {"size": SIDE, "frames": 1, "length": None, "area": None}
    needs = (("crafter",), "crafter")
    masks_are = (
        "masks are drawn of Crafter's own map of what the player sees, and of what it has, a dot for each thing. "
        "Grass, sand and paths are ground; all else is figure, in semantic a grey for each kind. Night, which darkens "
        "pictures and strews noise over them, is not in masks. φ says how much better agents learn from these than "
        "from pictures."
    )

    @property
    def r_min(self) -> Mapping[str, float]:
        """A random agent's mean return (`lcd.envs.random_means`)."""
        return {task: _random_returns().get(task, math.nan) for task in self.tasks}

    @property
    def r_max(self) -> Mapping[str, float]:
        """What rules allow."""
        return {task: ACHIEVEMENTS if goal is None else 1.0 for task, goal in TASKS.items()}

    def masks(self, task: str, knobs: Mapping[str, Any]) -> WorldMasks:
        """Labels by the world."""
        return WorldMasks()

    def single(self, task: str, knobs: Mapping[str, Any]) -> gymnasium.Env:
        """One world."""
        goal = TASKS[task]
        length, area = LENGTH_AND_AREA if goal is None else TO_A_GOAL
        return Survival(knobs["length"] or length, knobs["area"] or area, goal)

    def check_knobs(self, task: str, knobs: Mapping[str, Any]) -> None:
        """Refuse knobs that the task does not have, or that are no lengths."""
        super().check_knobs(task, knobs)
        for knob, least, most in (("length", 1, MOST_STEPS), ("area", SMALLEST, LARGEST)):
            if knobs.get(knob) is not None:
                require_whole_number(knob, knobs[knob], least, most)


@cache
def _random_returns() -> Mapping[str, float]:
    lines = resources.files(__package__).joinpath("random_returns.csv").read_text(encoding="utf-8").splitlines()
    return {row["task"]: float(row["r_min"]) for row in csv.DictReader(lines)}


CRAFTER = Crafter()
"""Crafter and single achievements in it, with masks of its own map (the extra `crafter`)."""
