"""Sokoban: a player pushes boxes, one at a time and never pulls, until all stand on targets.

A level is drawn with `#` a wall, `.` a target, `$` a box, `*` a box on a target, `@` the player and `+` the player on a
target. A state's code has the player's cell in six bits, and above them a bit for each cell that a box stands on; cells
are those that are no wall, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lcd.envs.ehc.puzzles.planning import Goal, Moves, planning_rules
from lcd.envs.ehc.puzzles.sprites import block, diamond, disc
from lcd.envs.errors import InputError
from lcd.envs.tabular.closure import build, codes_of
from lcd.envs.tabular.mdp import TabularMDP
from lcd.envs.tabular.pictures import BoardRenderer

ACTIONS = ("up", "down", "left", "right")
"""A step of the player, who pushes what stands there; what cannot be done changes nothing."""
_STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))
MOST_CELLS = 56
PIECES = ("wall", "target", "box", "box on a target", "player", "player on a target")
_PLAYER_BITS, _CELL_PIXELS = 6, 12


@dataclass(frozen=True, eq=False)
class Level:
    """A level as arrays.

    Attributes:
        rows: as it is drawn.
        floor: (cells, 2) row and column of each cell.
        next_cell: (actions, cells) the cell beside each one, or -1 where a wall is.
        targets: the targets' cells.
        start: the first state's code.
    """

    rows: tuple[str, ...]
    floor: np.ndarray
    next_cell: np.ndarray
    targets: np.ndarray
    start: int

    @classmethod
    def drawn(cls, picture: str) -> Level:
        """A level from its picture, which walls enclose."""
        rows = tuple(line.strip() for line in picture.split())
        floor = np.array([(r, c) for r, row in enumerate(rows) for c, mark in enumerate(row) if mark != "#"])
        marks = [rows[r][c] for r, c in floor]
        number = {(int(r), int(c)): cell for cell, (r, c) in enumerate(floor)}
        beside = [[number.get((int(r) + down, int(c) + right), -1) for r, c in floor] for down, right in _STEPS]
        boxes = [cell for cell, mark in enumerate(marks) if mark in "$*"]
        targets = [cell for cell, mark in enumerate(marks) if mark in ".*+"]
        player = [cell for cell, mark in enumerate(marks) if mark in "@+"]
        if len(player) != 1 or len(boxes) != len(targets) or not boxes or len(marks) > MOST_CELLS:
            raise InputError(
                f"A level has {len(player)} players, {len(boxes)} boxes, {len(targets)} targets and {len(marks)} "
                f"cells: it needs one player, a box, a target for each box, and at most {MOST_CELLS} cells."
            )
        start = player[0] | sum(1 << cell for cell in boxes) << _PLAYER_BITS
        return cls(rows, floor, np.array(beside), np.array(targets), start)


def predicates(level: Level) -> tuple[str, ...]:
    """The goal: a box on every target."""
    return tuple(f"box at(row {row}, column {column})" for row, column in level.floor[level.targets])


def goal_of(level: Level) -> Goal:
    """Which targets have a box."""

    def goal(codes: np.ndarray) -> np.ndarray:
        return (codes[:, None] >> (level.targets + _PLAYER_BITS) & 1).astype(bool)

    return goal


def moves_of(level: Level) -> Moves:
    """Where the player's steps lead."""
    # The place after the last stands for a wall, and is beside itself.
    beside = np.concatenate([level.next_cell, np.full((len(ACTIONS), 1), -1)], axis=1)

    def moves(codes: np.ndarray) -> np.ndarray:
        player, boxes = codes & ((1 << _PLAYER_BITS) - 1), codes >> _PLAYER_BITS
        found = np.empty((len(codes), len(ACTIONS)), dtype=np.int64)
        for action in range(len(ACTIONS)):
            ahead = beside[action][player]
            beyond = beside[action][ahead]
            pushes = (ahead >= 0) & _has(boxes, ahead)
            free = np.where(pushes, (beyond >= 0) & ~_has(boxes, beyond), ahead >= 0)
            pushed = boxes ^ _bit(ahead) ^ _bit(beyond)
            after = ahead | np.where(pushes, pushed, boxes) << _PLAYER_BITS
            found[:, action] = np.where(free, after, codes)
        return found

    return moves


def _bit(cells: np.ndarray) -> np.ndarray:
    return np.int64(1) << np.maximum(cells, 0)


def _has(boxes: np.ndarray, cells: np.ndarray) -> np.ndarray:
    return (boxes & _bit(cells)) != 0


def sokoban(level: Level, horizon: int, name: str) -> TabularMDP:
    """A level, for so many steps."""
    rules = planning_rules(moves_of(level), goal_of(level))
    mdp = build(rules, level.start, horizon, actions=ACTIONS, name=name)
    return mdp.changed(renderer=renderer(level, codes_of(mdp)))


def renderer(level: Level, codes: np.ndarray) -> BoardRenderer:
    """Draws the states of these codes."""
    ground = np.ones((len(level.rows), len(level.rows[0])), dtype=np.int64)
    row, column = level.floor.T
    ground[row, column] = 0
    ground[tuple(level.floor[level.targets].T)] = 2

    def cells(states: np.ndarray) -> np.ndarray:
        code = codes[states]
        boards = np.repeat(ground[None], len(code), axis=0)
        boxed = (code[:, None] >> (np.arange(len(level.floor)) + _PLAYER_BITS) & 1).astype(bool)
        on_floor = boards[:, row, column]
        # A box is the piece after the ground's: 3 on plain floor, 4 on a target.
        on_floor = np.where(boxed, 3 + (on_floor == 2), on_floor)
        player = code & ((1 << _PLAYER_BITS) - 1)
        there = np.arange(len(code))
        on_floor[there, player] = np.where(on_floor[there, player] == 2, 6, 5)
        boards[:, row, column] = on_floor
        return boards

    side = _CELL_PIXELS
    box = block(side, 0.85)
    target = diamond(side, 0.5)
    player = disc(side, 0.8)
    sprites = np.stack([np.ones_like(box), target, box & ~block(side, 0.5), box & ~target, player, player & ~target])
    return BoardRenderer(cells, PIECES, ground.shape, side, sprites=sprites)
