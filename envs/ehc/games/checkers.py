"""Checkers (English draughts) on boards with at most 16 dark squares.

A code has 16 bits each for the first player's men and kings together, for the second player's, and for all kings; 5 for
the square of a man that has to go on jumping (counted from 1; 0: none), and one for the second player's turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lcd.envs.ehc.games.game import Game, Moves, packed, ranked
from lcd.envs.errors import InputError

_SQUARES = 16
_SECOND, _KINGS, _GOING, _TURN = 16, 32, 48, 53
_ALL = (1 << _SQUARES) - 1
_COUNTS = sum((np.arange(1 << _SQUARES) >> s & 1 for s in range(_SQUARES)), np.zeros(1 << _SQUARES, dtype=np.int64))
"""How many squares there are in each set."""
_MAN, _KING = 4, 8
"""What they count as potential, in 128ths."""


class _Side(NamedTuple):
    """Positions as who moves sees them; each array is (positions, 1)."""

    own: np.ndarray
    other: np.ndarray
    kings: np.ndarray
    going: np.ndarray
    second: np.ndarray


class Checkers(Game):
    """Men go a square diagonally forwards, kings also backwards; who can jump has to, and who cannot move has lost.

    A jump is a move of its own: while the man that jumped can jump on, it is its player's turn again, and only that man
    moves. A man that reaches the far row becomes a king, which ends its turn. The first player's men go up. No
    repetition is forbidden; what is not over at the move limit is a draw. An action is the rank of a legal move, by
    square and direction, modulo their number.
    """

    layered = False
    merged = False
    actions = ()
    pieces = ("first man", "second man", "first king", "second king", "first mark")

    def __init__(self, rows: int, columns: int, filled: int, turns: int = 40) -> None:
        """Make the game.

        Args:
            rows: height of the board, whose upper left square is dark.
            columns: width of the board.
            filled: how many rows of men each player begins with.
            turns: most moves of a player.
        """
        self.name = f"checkers-{rows}x{columns}"
        self.board, self.turns = (rows, columns), turns
        self._dark = [(r, c) for r in range(rows) for c in range(columns) if (r + c) % 2 == 0]
        if len(self._dark) > _SQUARES or not 0 < 2 * filled <= rows:
            raise InputError(
                f"rows is {rows}, columns is {columns} and filled is {filled}, but at most {_SQUARES} squares may be "
                "dark, and men fill at most half of the rows."
            )
        self._tabulate(rows)
        second = sum(1 << s for s, (r, _) in enumerate(self._dark) if r < filled)
        first = sum(1 << s for s, (r, _) in enumerate(self._dark) if r >= rows - filled)
        self.start = first | second << _SECOND
        mirrored = [(r, columns - 1 - c) for r, c in self._dark]
        self._image = _image([self._dark.index(place) for place in mirrored]) if columns % 2 else None

    def _tabulate(self, rows: int) -> None:
        """For every square and direction: from where, over what, to where; bits, 0 being off the board."""
        number = {place: s for s, place in enumerate(self._dark)}
        table = []
        for s, (r, c) in enumerate(self._dark):
            for down, right in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
                near, far = (number.get((r + n * down, c + n * right), -1) for n in (1, 2))
                table.append((s, 1 << near if near >= 0 else 0, 1 << far if far >= 0 else 0, far, down))
        square, near_bit, far_bit, far, down = np.array(table, dtype=np.int64).T
        self._square, self._near, self._far, self._landing = square, near_bit, far_bit, far
        self._from, self._up = 1 << square, down < 0
        ends = [sum(1 << s for s, (r, _) in enumerate(self._dark) if r == row) for row in (0, rows - 1)]
        self._crown = np.array(ends, dtype=np.int64)

    def layer(self, codes: np.ndarray) -> np.ndarray:
        """One for all."""
        return np.zeros(len(codes), dtype=np.int64)

    def second_moves(self, codes: np.ndarray) -> np.ndarray:
        """Is it the second player's turn?"""
        return (codes >> _TURN & 1) == 1

    def _side(self, codes: np.ndarray) -> _Side:
        second = self.second_moves(codes)[:, None]
        one, two = (codes & _ALL)[:, None], (codes >> _SECOND & _ALL)[:, None]
        own, other = np.where(second, two, one), np.where(second, one, two)
        return _Side(own, other, (codes >> _KINGS & _ALL)[:, None], (codes >> _GOING & 31)[:, None], second)

    def _jumps(self, side: _Side) -> np.ndarray:
        """Which squares and directions jump?"""
        empty = ~(side.own | side.other)
        return self._may(side) & (side.other & self._near != 0) & (empty & self._far != 0)

    def _may(self, side: _Side) -> np.ndarray:
        """On which squares stands a man, or king, of who moves, that may go in this direction?"""
        return (side.own & self._from != 0) & ((self._up ^ side.second) | (side.kings & self._from != 0))

    def _steps(self, side: _Side) -> np.ndarray:
        return self._may(side) & (~(side.own | side.other) & self._near != 0)

    def moves(self, codes: np.ndarray) -> Moves:
        """Each square and direction that may go, in this order."""
        side = self._side(codes)
        jumps = self._jumps(side) & ((side.going == 0) | (side.going == self._square + 1))
        must = jumps.any(axis=1, keepdims=True)
        row, way = np.nonzero(np.where(must, jumps, self._steps(side)))
        after = self._after(_Side(*(part[row] for part in side)), way, must[row])
        ended = ~self._can_move(after)
        result = np.where(ended, np.where(side.second[row, 0], -1, 1), 0).astype(np.int8)
        return packed(len(codes), row, after, ended, result)

    def _after(self, side: _Side, way: np.ndarray, jumped: np.ndarray) -> np.ndarray:
        """The codes after one move each."""
        here = self._from[way][:, None]
        near = self._near[way][:, None]
        to = np.where(jumped, self._far[way][:, None], near)
        own = side.own ^ here | to
        other = np.where(jumped, side.other & ~near, side.other)
        was_king = side.kings & here != 0
        crowned = ~was_king & (to & self._crown[side.second.astype(np.int64)] != 0)
        kings = side.kings & ~here & (own | other) | np.where(was_king | crowned, to, 0)
        on = self._jumps(_Side(own, other, kings, side.going, side.second))
        landing = self._landing[way][:, None]
        goes_on = jumped & ~crowned & (on & (self._square == landing)).any(axis=1, keepdims=True)
        first, second = np.where(side.second, other, own), np.where(side.second, own, other)
        going = np.where(goes_on, landing + 1, 0) << _GOING
        turn = (side.second == goes_on).astype(np.int64) << _TURN
        return (first | second << _SECOND | kings << _KINGS | going | turn)[:, 0]

    def _can_move(self, codes: np.ndarray) -> np.ndarray:
        side = self._side(codes)
        return (self._jumps(side) | self._steps(side)).any(axis=1)

    def canonical(self, codes: np.ndarray) -> np.ndarray:
        """The smaller of a position and its mirror image, where the board has one."""
        if self._image is None:
            return codes
        sets, squares = self._image
        mirrored = codes >> _TURN << _TURN | squares[codes >> _GOING & 31] << _GOING
        for place in (0, _SECOND, _KINGS):
            mirrored |= sets[codes >> place & _ALL] << place
        return np.minimum(codes, mirrored)

    def potential(self, codes: np.ndarray) -> np.ndarray:
        """What men and kings count, of the first player less of the second."""
        first, second, kings = (codes >> place & _ALL for place in (0, _SECOND, _KINGS))
        return _worth(first, kings) - _worth(second, kings)

    def played(self, legal: np.ndarray, actions: int) -> np.ndarray:
        """The legal move of the action's rank, modulo their number."""
        return ranked(legal, actions)

    def cells(self, codes: np.ndarray) -> np.ndarray:
        """Men and kings; while one has to jump on, a mark on a light square in the corner."""
        shown = np.zeros((len(codes), *self.board), dtype=np.int64)
        first, second, kings = (codes >> place & _ALL for place in (0, _SECOND, _KINGS))
        for square, (row, column) in enumerate(self._dark):
            man = (first >> square & 1) + 2 * (second >> square & 1)
            shown[:, row, column] = man + np.where(man > 0, 2 * (kings >> square & 1), 0)
        shown[:, 0, 1] = np.where(codes >> _GOING & 31, 5, 0)
        return shown


def _worth(men: np.ndarray, kings: np.ndarray) -> np.ndarray:
    """What these men count, some of whom are kings."""
    return _MAN * _COUNTS[men & ~kings] + _KING * _COUNTS[men & kings]


def _image(to: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """What every set of squares, and every square counted from 1, becomes when each goes where it is told."""
    sets = np.arange(1 << len(to))
    images = sum(((sets >> s & 1) << place for s, place in enumerate(to)), np.zeros_like(sets))
    return images, np.array([0, *(place + 1 for place in to)], dtype=np.int64)
