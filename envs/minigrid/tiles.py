"""What the codes of MiniGrid's symbolic observation look like under each view: a table of tiles.

A cell's code is its thing's type, colour and state. The pixels that MiniGrid itself draws of what an agent sees are a
function of these codes, so that all views are drawn from them, many copies at once.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lcd.envs.masks import FIGURE_GROUND, PIXELS, SEMANTIC

TILE = 8
"""Height and width of a cell."""
TYPES, COLOURS, STATES = 11, 6, 3
UNSEEN, EMPTY, WALL, FLOOR, DOOR, LAVA = 0, 1, 2, 3, 4, 9
LOCKED = 2
GROUND = (UNSEEN, EMPTY, FLOOR)
AGENT_FACES = 3
"""Up: the agent looks up from the middle of the lowest row of what it sees."""
GREY_OF_WALLS = 127


def drawn(codes: np.ndarray, view: str) -> np.ndarray:
    """Symbolic observations (copies, columns, rows, 3) under a view: uint8 (copies, height, width, 3)."""
    copies, columns, rows, _ = codes.shape
    numbers = number_of(*np.moveaxis(codes.astype(np.intp), -1, 0))
    numbers[:, columns // 2, rows - 1] += TYPES * COLOURS * STATES
    tiles = atlas(view)[numbers]
    # A code's first place is its column.
    return tiles.transpose(0, 2, 3, 1, 4, 5).reshape(copies, rows * TILE, columns * TILE, 3)


def number_of(kind: np.ndarray, colour: np.ndarray, state: np.ndarray) -> np.ndarray:
    """The place of a code in an atlas."""
    return (kind * COLOURS + colour) * STATES + state


@cache
def atlas(view: str) -> np.ndarray:
    """The tile of every code, and behind them all those of the cell in which the agent stands."""
    from minigrid.core.world_object import WorldObj

    paint = {PIXELS: _pixels, FIGURE_GROUND: _figure, SEMANTIC: _classes}[view]
    found = np.zeros((2, TYPES * COLOURS * STATES, TILE, TILE, 3), np.uint8)
    for kind in range(TYPES):
        for colour in range(COLOURS):
            for state in range(STATES):
                # The symbolic observation has no agent, and nothing but doors has states.
                if kind == TYPES - 1:
                    continue
                thing = WorldObj.decode(kind, colour, state) if kind > EMPTY else None
                number = int(number_of(np.array(kind), np.array(colour), np.array(state)))
                for agent in (False, True):
                    found[int(agent), number] = paint(thing, (kind, colour, state), agent)
    return found.reshape(-1, TILE, TILE, 3)


def _pixels(thing: Any, code: tuple[int, int, int], agent: bool) -> np.ndarray:
    """MiniGrid's own picture; what the agent does not see is not lit."""
    from minigrid.core.grid import Grid

    seen = code[0] != UNSEEN or agent
    return Grid.render_tile(thing, AGENT_FACES if agent else None, highlight=seen, tile_size=TILE)


def _figure(thing: Any, code: tuple[int, int, int], agent: bool) -> np.ndarray:
    """Things in white by their shape, walls in grey; the agent, or what it carries."""
    from minigrid.core.grid import Grid

    if code[0] == WALL:
        return np.full((TILE, TILE, 3), GREY_OF_WALLS, np.uint8)
    alone = agent and code[0] in GROUND
    if code[0] in GROUND and not alone:
        return np.zeros((TILE, TILE, 3), np.uint8)
    shown = Grid.render_tile(None if alone else thing, AGENT_FACES if alone else None, tile_size=TILE)
    covered = (shown.astype(int) != Grid.render_tile(None, tile_size=TILE)).any(-1)
    # What fills its cell in colours alone gets a shape: only a goal is all white.
    if code[0] == LAVA:
        covered[1::2] = False
    elif code[0] == DOOR and code[2] == LOCKED:
        covered[2:-2, 2:-2] = False
    return np.repeat(np.where(covered, 255, 0).astype(np.uint8)[..., None], 3, -1)


def _classes(thing: Any, code: tuple[int, int, int], agent: bool) -> np.ndarray:
    """The code itself, flat: its type in red, its colour in green, its state in blue; ground is black."""
    kind, colour, state = code
    if kind in GROUND and not agent:
        # What is out of sight is told from what is empty: an agent knows where it did not look.
        return np.full((TILE, TILE, 3), 0 if kind == UNSEEN else 24, np.uint8)
    if kind in GROUND:
        kind = TYPES - 1
    levels = (255 * kind // (TYPES - 1), 255 * (colour + 1) // COLOURS, 127 * state)
    return np.full((TILE, TILE, 3), levels, np.uint8)
