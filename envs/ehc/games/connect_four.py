"""Connect Four on boards of any size that fits 62 bits.

A column of `rows` cells takes rows + 1 bits of a code: the second player's men, and above the topmost man a mark. So an
empty column is 1, and one with a man of the first player at the bottom 0b10.
"""

from __future__ import annotations

import numpy as np

from lcd.envs.ehc.games.game import Game, Moves, next_legal
from lcd.envs.errors import InputError

_MOST_BITS = 62


class ConnectFour(Game):
    """Men fall to the lowest empty cell of a column; four in a line win, a full board is a draw.

    An action is a column; where it is full, the next column to the right that is not, beginning again at the left.
    """

    layered = True
    merged = False
    pieces = ("first", "second")

    def __init__(self, rows: int, columns: int) -> None:
        """Make the game.

        Args:
            rows: height of the board.
            columns: width of the board.
        """
        if min(columns, rows) < 1 or columns * (rows + 1) > _MOST_BITS:
            raise InputError(
                f"rows is {rows} and columns is {columns}, but both must be at least 1, and columns * (rows + 1) at "
                f"most {_MOST_BITS}."
            )
        self.name = f"connect-four-{rows}x{columns}"
        self.columns, self.rows, self.board = columns, rows, (rows, columns)
        self.actions = tuple(f"column {column + 1}" for column in range(columns))
        self.turns = -(-columns * rows // 2)
        self._bits = rows + 1
        fields = np.arange(1 << self._bits)
        self._heights = (fields[:, None] >= 2 << np.arange(rows)).sum(axis=1)
        self._marks = np.int64(1) << self._heights
        self.start = sum(1 << self._bits * column for column in range(columns))

    def _fields(self, codes: np.ndarray) -> np.ndarray:
        """The columns' bits: (n, columns)."""
        return codes[:, None] >> self._bits * np.arange(self.columns) & (1 << self._bits) - 1

    def _whole(self, fields: np.ndarray) -> np.ndarray:
        """Columns' bits side by side again."""
        return (fields << self._bits * np.arange(self.columns)).sum(axis=-1)

    def layer(self, codes: np.ndarray) -> np.ndarray:
        """How many men there are."""
        return self._heights[self._fields(codes)].sum(axis=1)

    def second_moves(self, codes: np.ndarray) -> np.ndarray:
        """Is the number of men odd?"""
        return self.layer(codes) % 2 == 1

    def moves(self, codes: np.ndarray) -> Moves:
        """A man into each column."""
        fields = self._fields(codes)
        heights = self._heights[fields]
        men = heights.sum(axis=1)
        second = men % 2 == 1
        legal = heights < self.rows
        # Where the mark was, there is a man now: of the second player it keeps the bit, of the first it gives it up.
        marks = self._marks[fields]
        shifts = self._bits * np.arange(self.columns)
        after = codes[:, None] + (np.where(second[:, None], 2 * marks, marks) << shifts)
        seconds = self._whole(fields ^ marks)
        firsts = self._whole(marks - 1) ^ seconds
        won = self._four(np.where(second, seconds, firsts)[:, None] | marks << shifts) & legal
        result = np.where(won, np.where(second, -1, 1)[:, None], 0).astype(np.int8)
        ended = (won | (men + 1 == self.columns * self.rows)[:, None]) & legal
        return Moves(np.where(legal, after, 0), legal, ended, result)

    def _four(self, men: np.ndarray) -> np.ndarray:
        """Are there four in a line among these cells?"""
        found = np.zeros(men.shape, dtype=bool)
        for step in (1, self._bits - 1, self._bits, self._bits + 1):
            pairs = men & men >> step
            found |= (pairs & pairs >> 2 * step) != 0
        return found

    def canonical(self, codes: np.ndarray) -> np.ndarray:
        """The smaller of a position and its mirror image."""
        return np.minimum(codes, self._whole(self._fields(codes)[:, ::-1]))

    def potential(self, codes: np.ndarray) -> np.ndarray:
        """There is none."""
        return np.zeros(len(codes), dtype=np.int64)

    def played(self, legal: np.ndarray, actions: int) -> np.ndarray:
        """The column, or the next one that is not full."""
        return next_legal(legal)

    def cells(self, codes: np.ndarray) -> np.ndarray:
        """The men, the topmost row first."""
        fields = self._fields(codes)
        heights = np.arange(self.rows)
        filled = heights < self._heights[fields][..., None]
        men = np.where(filled, 1 + (fields[..., None] >> heights & 1), 0)
        return men.transpose(0, 2, 1)[:, ::-1]
