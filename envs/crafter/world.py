"""Crafter's world as an environment of Gymnasium's, to the same last bit in every process, and what is where in it."""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import cache
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from lcd.envs.masks import ALL_WHITE, BACKGROUND, Moment

SIGHT = (9, 7)
"""Columns and rows of the world that are seen, the player in the middle."""
CELL = 7
"""Height and width of a cell in the picture of 64 × 64."""
SIDE = 64
GROUND = (BACKGROUND, "grass", "sand", "path")
MATERIALS = ("water", "stone", "tree", "lava", "coal", "iron", "diamond", "table", "furnace")
OUTSIDE, FACES, ASLEEP, ARROWS = "outside", "player faces", "player asleep", "arrow flies"
SIDES = {(-1, 0): "left", (1, 0): "right", (0, -1): "up", (0, 1): "down"}
LIVING = {"Cow": "cow", "Zombie": "zombie", "Skeleton": "skeleton"}
PLANTS = {False: "sapling in the ground", True: "ripe plant"}
ITEMS = (
    *("health", "food", "drink", "energy", "sapling", "wood", "stone", "coal", "iron", "diamond"),
    *("wood_pickaxe", "stone_pickaxe", "iron_pickaxe", "wood_sword", "stone_sword", "iron_sword"),
)
NAMES = (
    *GROUND,
    *MATERIALS,
    OUTSIDE,
    *(f"{FACES} {side}" for side in SIDES.values()),
    ASLEEP,
    *LIVING.values(),
    *(f"{ARROWS} {side}" for side in SIDES.values()),
    *PLANTS.values(),
    *(f"has {item}" for item in ITEMS),
)
NUMBER = {name: number for number, name in enumerate(NAMES)}
POINTED = 4
"""Of a cell's seven rows or columns, those that are filled of what looks somewhere."""
DOT = 2
"""Height and width of one thing that the player has: nine of them at most."""


class Survival(gymnasium.Env):
    """A world, anew in each episode."""

    def __init__(self, length: int, area: int, goal: str | None = None) -> None:
        """Make it.

        Args:
            length: steps of an episode at most.
            area: height and width of the world; making it takes most of the time of short episodes.
            goal: the achievement that is paid 1 and ends an episode; None: Crafter's own rewards.
        """
        crafter = _package()
        self.goal = goal
        self.inside = crafter.Env(area=(area, area), length=length, seed=0)
        kind: Any = type(self.inside._world)
        self.inside._world.__class__ = _orderly(kind)
        self.observation_space = spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)
        self.action_space = spaces.Discrete(len(self.inside.action_names))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        if seed is not None:
            self.inside._seed, self.inside._episode = seed, 0
        return self.inside.reset(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step."""
        picture, reward, over, info = self.inside.step(int(action))
        died, reached = info["discount"] == 0, False
        if self.goal is not None:
            reached = info["achievements"][self.goal] > 0
            reward = float(reached)
        return picture, float(reward), bool(died or reached), bool(over and not died and not reached), {}


class WorldMasks:
    """Labels by the world: a class for all that looks different, and a dot for each thing that the player has."""

    names = NAMES
    ground = len(GROUND)
    figure = ALL_WHITE

    def __call__(self, moment: Moment) -> np.ndarray:
        """The class of each pixel of the picture."""
        world, player = moment.env.inside._world, moment.env.inside._player
        found = np.zeros((SIDE, SIDE), np.uint8)
        middle = np.array(SIGHT) // 2
        for column in range(SIGHT[0]):
            for row in range(SIGHT[1]):
                material, thing = world[player.pos + np.array([column, row]) - middle]
                cell = found[row * CELL : (row + 1) * CELL, column * CELL : (column + 1) * CELL]
                cell[:] = NUMBER[OUTSIDE if material is None else material]
                if thing is not None:
                    _draw(thing, cell)
        for place, item in enumerate(ITEMS):
            top, left = (SIGHT[1] + place // SIGHT[0]) * CELL, place % SIGHT[0] * CELL
            for dot in range(player.inventory[item]):
                row, column = top + DOT * (dot // 3), left + DOT * (dot % 3)
                found[row : row + DOT, column : column + DOT] = NUMBER[f"has {item}"]
        return found

    def __str__(self) -> str:
        return "Crafter's map"


def _draw(thing: Any, cell: np.ndarray) -> None:
    """Draw what stands in a cell; what looks somewhere covers the half that is there."""
    kind = type(thing).__name__
    if kind in LIVING:
        cell[:] = NUMBER[LIVING[kind]]
    elif kind == "Plant":
        cell[:] = NUMBER[PLANTS[bool(thing.ripe)]]
    elif kind == "Player" and thing.sleeping:
        cell[:] = NUMBER[ASLEEP]
    else:
        x, y = (int(part) for part in thing.facing)
        rows, columns = _half(y), _half(x)
        cell[rows, columns] = NUMBER[f"{FACES if kind == 'Player' else ARROWS} {SIDES[x, y]}"]


def _half(where: int) -> slice:
    return slice(None) if where == 0 else slice(POINTED) if where < 0 else slice(CELL - POINTED, None)


def _package() -> Any:
    """Crafter without gym, of which it needs nothing, and which complains of itself wherever it is found."""
    hidden = "gym" not in sys.modules
    if hidden:
        sys.modules["gym"] = None  # type: ignore[assignment]
    try:
        import crafter
    finally:
        if hidden:
            del sys.modules["gym"]
    return crafter


class _Ordered(dict):
    """A set that keeps its order: that of Python's own depends on where in memory things are."""

    def add(self, thing: Any) -> None:
        self[thing] = None

    def remove(self, thing: Any) -> None:
        del self[thing]


@cache
def _orderly(world: Any) -> Any:
    """A world whose creatures have an order, since chance picks among them."""

    class Orderly(world):
        def reset(self, seed: Any = None) -> None:
            super().reset(seed)
            self._chunks: Any = defaultdict(_Ordered)

    return Orderly
