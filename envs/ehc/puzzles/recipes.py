"""Which puzzles are looked at: starts by fixed seeds, sizes and levels, all set before H was measured of any."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lcd.envs.ehc.puzzles.cube import cube, scrambled
from lcd.envs.ehc.puzzles.hanoi import hanoi
from lcd.envs.ehc.puzzles.slide import shuffled, slide
from lcd.envs.ehc.puzzles.sokoban import Level, sokoban
from lcd.envs.ehc.recipe import Recipe
from lcd.envs.tabular.mdp import TabularMDP

STARTS = {"slide": "abcd", "cube": "abcde"}
"""Family to the letters of its starts, whose seeds are 0, 1, …"""
DISCS = (3, 4, 5, 6, 7)
LEVELS = {
    "2a": (29, "###### #-.-@# #-$$-# #-.#-# #----# ######"),
    "2b": (29, "###### #@--.# ##$--# #-$.-# #---## ######"),
    "3a": (36, "###### #@--.# #---$# #-$-.# ##$#-# #---.# ######"),
    "3b": (34, "###### ##.#.# #-.--# #-$$-# ##$--# ##@--# ######"),
    "4a": (42, "####### #-$-.## #--$@-# #---$-# ##$-#-# #-...## #######"),
}
"""Sokoban: name, which begins with the number of boxes, to the fewest steps that solve it, and the level.

Levels were drawn at random for each number of boxes, and those kept whose shortest solutions are longest.
"""
SLACK = 1.25
"""A Sokoban level's horizon over its shortest solution."""


def _slide(seed: int, name: str) -> TabularMDP:
    return slide(shuffled(seed), name)


def _cube(seed: int, name: str) -> TabularMDP:
    return cube(scrambled(seed), name)


def _sokoban(level: str, name: str) -> TabularMDP:
    fewest, picture = LEVELS[level]
    return sokoban(Level.drawn(picture), horizon_of(fewest), name)


def horizon_of(fewest: int) -> int:
    """The horizon of a Sokoban level that so many steps solve: a quarter more, rounded up."""
    return -int(-fewest * SLACK // 1)


def _candidates() -> tuple[Recipe, ...]:
    found = _started("slide", _slide)
    for discs in DISCS:
        name = f"hanoi-{discs}"
        found.append(Recipe(name, "hanoi", "puzzle", partial(hanoi, discs, name), f"{discs} discs"))
    for level in LEVELS:
        name = f"sokoban-{level}"
        found.append(Recipe(name, "sokoban", "puzzle", partial(_sokoban, level, name), f"{level[0]} boxes"))
    return (*found, *_started("cube", _cube))


def _started(family: str, make: Callable[[int, str], TabularMDP]) -> list[Recipe]:
    """A family's recipes that differ in their start."""
    found = []
    for seed, letter in enumerate(STARTS[family]):
        name = f"{family}-{letter}"
        found.append(Recipe(name, family, "puzzle", partial(make, seed, name), f"start: seed {seed}"))
    return found


CANDIDATES = _candidates()
"""All that were looked at."""
LEFT_OUT = {
    "cube-b": "random guessing is optimal within 10 million timesteps",
    "hanoi-3": "random guessing is optimal within 10 million timesteps",
    "hanoi-6": "what is best with discount .99 is not best without: to do nothing",
    "hanoi-7": "what is best with discount .99 is not best without: to do nothing",
}
"""Candidates that the paper's conditions leave out, and why."""
RECIPES = tuple(recipe for recipe in CANDIDATES if recipe.name not in LEFT_OUT)
"""The puzzles of the benchmark."""
