"""The benchmark `ehc`: puzzles, and games against a fixed opponent, that take a long look ahead to play well."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from gymnasium.vector import VectorEnv

from lcd.envs.benchmarks import NativeBenchmark
from lcd.envs.checks import require_whole_number
from lcd.envs.ehc import kept, returns
from lcd.envs.ehc.games.boards import GameBoard
from lcd.envs.ehc.games.cases import BOARDS
from lcd.envs.ehc.games.recipes import RECIPES as GAMES
from lcd.envs.ehc.known import HorizonRow, rows
from lcd.envs.ehc.puzzles.recipes import RECIPES as PUZZLES
from lcd.envs.ehc.recipe import Recipe
from lcd.envs.errors import InputError, nearest
from lcd.envs.native import IMAGE_VIEWS
from lcd.envs.tabular.mdp import TabularMDP
from lcd.envs.tabular.vector import TabularVectorEnv

NAME = "ehc"


def _drawn(recipe: Recipe) -> Recipe:
    """A game's recipe that can be kept: its tables, and what draws them."""
    game = BOARDS[recipe.name.rpartition("-")[0]][1]
    return replace(recipe, draw=lambda codes: GameBoard(game(), codes))


RECIPES: dict[str, Recipe] = {f"{NAME}/{recipe.name}": recipe for recipe in (*PUZZLES, *map(_drawn, GAMES))}
"""Task to its recipe."""
FAMILIES: Mapping[str, str] = {
    "slide": "slide eight tiles into order",
    "hanoi": "move a tower to the last peg, no disc on a smaller one",
    "sokoban": "push boxes onto targets",
    "cube": "turn a tower cube until each face has one colour",
    "connect-four": "Connect Four against a fixed opponent",
    "go": "Go against a fixed opponent",
    "checkers": "draughts against a fixed opponent",
    "chess": "chess on a small board against a fixed opponent",
}
"""What a family of recipes asks for."""
CHANGES = ("horizon", "sticky", "left")
"""Knobs that change the MDP: fewer steps, repeated actions, and how many steps of the best play are left at first."""
SHOWN = ("observation",)


class EHCBenchmark(NativeBenchmark):
    """Deterministic tasks with small tables; a seed changes nothing in them but the streams of random numbers."""

    name = NAME
    tasks: Sequence[str] = tuple(RECIPES)
    views: Sequence[str] = (*IMAGE_VIEWS, "state")

    @property
    def about(self) -> Mapping[str, str]:
        """What is asked for, and what sets a task apart from others of its family."""
        return {task: f"{FAMILIES[recipe.family]} ({recipe.about})" for task, recipe in RECIPES.items()}

    @property
    def horizons(self) -> Mapping[str, HorizonRow]:
        """What is known of the tasks' effective horizons."""
        return rows()

    def tabular(self, task: str, seed: int = 0, **knobs: Any) -> TabularMDP:
        """A task's tables; the same for all seeds."""
        for key in knobs:
            if key not in CHANGES:
                raise InputError(f"knobs.{key} is no knob of {task}'s tables: {nearest(key, CHANGES)}")
        mdp = _made(task)
        left = knobs.pop("left", None)
        if left is not None:
            require_whole_number("knobs.left", left, 1, mdp.horizon)
            mdp = _begun_late(task, left)
        if knobs.get("horizon") is not None and knobs["horizon"] > mdp.horizon:
            raise InputError(
                f"knobs.horizon is {knobs['horizon']}, but {task} is made for {mdp.horizon} steps: give at most that."
            )
        return mdp.changed(**{key: value for key, value in knobs.items() if value is not None})

    def reward_range(self, task: str, seed: int, **knobs: Any) -> tuple[float, float]:
        """The exact mean return of random actions, and the best return; NaN where sticky actions change them."""
        changes = {key: value for key, value in knobs.items() if key in CHANGES and value is not None}
        if changes.get("sticky"):
            return math.nan, math.nan
        known = rows().get(task)
        if known is not None and not changes:
            return known.random_return, known.optimal_return
        return _range(task, tuple(sorted(changes.items())))

    def make_population(
        self, task: str, *, seeds: Sequence[int], copies: int, view: str, split: str, **knobs: Any
    ) -> VectorEnv:
        """Copies of a task for several seeds, in one environment; the view `state` shows the board."""
        for key in knobs:
            if key not in (*CHANGES, *SHOWN):
                raise InputError(f"knobs.{key} is no knob of {task}: {nearest(key, (*CHANGES, *SHOWN))}")
        mdp = self.tabular(task, **{key: value for key, value in knobs.items() if key in CHANGES})
        observation = knobs.get("observation", "board")
        return TabularVectorEnv(len(seeds) * copies, mdp, view, split, seeds, observation=observation)


@lru_cache(maxsize=2)
def _made(task: str) -> TabularMDP:
    return kept.made(RECIPES[task]).changed(name=task)


@lru_cache(maxsize=2)
def _begun_late(task: str, left: int) -> TabularMDP:
    return returns.near_the_end(_made(task), left)


@lru_cache(maxsize=64)
def _range(task: str, changes: tuple[tuple[str, Any], ...]) -> tuple[float, float]:
    return returns.reward_range(EHC.tabular(task, **dict(changes)))


EHC = EHCBenchmark()
"""The Effective Horizon Challenge: puzzles and games that take a long look ahead."""
