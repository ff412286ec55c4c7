"""Where the things of four games are: tables of the bytes of the console's memory (RAM) that say so.

Found by playing: each is the byte that goes with the first column, or row, of what is drawn in the thing's colour. The
test plays each game and asks that the boxes hold those pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class At:
    """A column or row that memory says: `memory[byte] · scale + offset`."""

    byte: int
    offset: int
    scale: int = 1


@dataclass(frozen=True)
class Sprite:
    """A thing: a box, in which all is its own that has its colour; without one, that has none of the ground's."""

    name: str
    column: At | int
    row: At | int
    width: int
    height: int
    colour: int | None = None


@dataclass(frozen=True)
class Game:
    """A game's things, those last that hide others, and the colours of what lies behind them.

    Attributes:
        field: the rows and columns in which they are: above and below stand scores.
    """

    sprites: tuple[Sprite, ...]
    ground: tuple[int, ...]
    field: tuple[int, int, int, int]

    @property
    def names(self) -> tuple[str, ...]:
        """The classes, the background first; several things may be of one class."""
        return ("background", *dict.fromkeys(sprite.name for sprite in self.sprites))

    def labels(self, picture: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """The class that each pixel of the screen belongs to."""
        colours = (picture[..., 0].astype(int) << 16) + (picture[..., 1].astype(int) << 8) + picture[..., 2]
        free = ~np.isin(colours, self.ground)
        top, bottom, left, right = self.field
        found = np.zeros(free.shape, np.uint8)
        names = self.names
        for sprite in self.sprites:
            row, column = (_place(at, memory) for at in (sprite.row, sprite.column))
            rows = slice(max(row, top), max(min(row + sprite.height, bottom), 0))
            columns = slice(max(column, left), max(min(column + sprite.width, right), 0))
            own = free if sprite.colour is None else colours == sprite.colour
            found[rows, columns][own[rows, columns]] = names.index(sprite.name)
        return found


def _place(at: At | int, memory: np.ndarray) -> int:
    return at if isinstance(at, int) else int(memory[at.byte]) * at.scale + at.offset


CARS = tuple(Sprite("car", At(117 - lane, -4), 26 + 16 * lane, 10, 12) for lane in range(10))
GAMES: Mapping[str, Game] = {
    "Pong": Game(
        sprites=(
            Sprite("enemy", 16, At(50, -15), 4, 16),
            Sprite("player", 140, At(51, -13), 4, 16),
            Sprite("ball", At(49, -49), At(54, -14), 2, 4),
        ),
        ground=(0x904811, 0x6D762B, 0x355F18, 0x000000),
        field=(34, 194, 0, 160),
    ),
    "Breakout": Game(
        # Bricks stand where they stand: of each, what is not yet black.
        sprites=(
            *(Sprite(f"bricks {row + 1}", 8, 57 + 6 * row, 144, 6) for row in range(6)),
            Sprite("player", At(72, -47), 189, 16, 4),
            Sprite("ball", At(99, -49), At(101, 9), 2, 4),
        ),
        ground=(0x000000, 0x8E8E8E),
        field=(32, 193, 8, 152),
    ),
    "Freeway": Game(
        sprites=(*CARS, Sprite("player", 44, At(14, 193, -1), 8, 8)),
        ground=(0x8E8E8E, 0xD6D6D6, 0xAAAAAA),
        field=(14, 195, 8, 160),
    ),
    "Boxing": Game(
        sprites=(
            Sprite("enemy", At(33, -14), At(35, 37), 32, 50, colour=0x000000),
            Sprite("player", At(32, 4), At(34, 38), 32, 50, colour=0xD6D6D6),
        ),
        ground=(0x6E9C42, 0xC3903D, 0x143C00),
        field=(36, 178, 32, 128),
    ),
}
