"""Go on boards of at most 16 points, counted as Tromp and Taylor do.

A code has 16 bits of black stones, 16 of white ones, 5 for the point that the ko rule forbids (counted from 1; 0 is
none), one for a pass just made and one for the second player's turn. Black is the first player.
"""

from __future__ import annotations

import numpy as np

from lcd.envs.ehc.games.game import Game, Moves
from lcd.envs.errors import InputError

_POINTS = 16
_KO, _PASSED, _TURN = np.int64(32), np.int64(37), np.int64(38)


class Go(Game):
    """Stones on points, captured when without a liberty; the larger area wins when both players pass.

    Positions that are turned or mirrored images of each other are one state of the MDP: 4 × 4 points have too many.
    The ko rule is the simple one: a lone stone that has just captured a single stone, and whose only liberty is that
    stone's point, may not be recaptured at once. Suicide is not allowed. Longer cycles are ended by the move limit, a
    draw. The last action passes, and so does one that is not allowed.
    """

    layered = False
    merged = True

    def __init__(self, rows: int, columns: int, turns: int = 40) -> None:
        """Make the game.

        Args:
            rows: height of the board.
            columns: width of the board.
            turns: most moves of a player.
        """
        if min(rows, columns) < 1 or rows * columns > _POINTS:
            raise InputError(
                f"rows is {rows} and columns is {columns}, but both must be at least 1, and the board at most "
                f"{_POINTS} points."
            )
        self.name = f"go-{rows}x{columns}"
        self.rows, self.columns, self.points, self.turns = rows, columns, rows * columns, turns
        self.board = (rows + 1, columns)
        self.pieces = ("first", "second", "first forbidden", "first mark")
        self.actions = (*(f"{'abcdefghijklmnop'[p % columns]}{p // columns + 1}" for p in range(self.points)), "pass")
        self.start = 0
        self._bits = (1 << np.arange(self.points)).astype(np.uint16)
        self._all = np.uint16((1 << self.points) - 1)
        across = np.arange(self.points) % columns
        self._not_first = self._bits[across > 0].sum(dtype=np.uint16)
        self._not_last = self._bits[across < columns - 1].sum(dtype=np.uint16)
        self._images, self._image_points = self._symmetries()

    def _symmetries(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """For each symmetry but the identity the image of every set of points, and of every point counted from 1."""
        grid = np.arange(self.points).reshape(self.rows, self.columns)
        images = [grid[::-1], grid[:, ::-1], grid[::-1, ::-1]]
        if self.rows == self.columns:
            images += [image.T for image in (grid, *images)]
        sets = np.arange(1 << self.points)
        tables, points = [], []
        for image in images:
            to = image.ravel()
            tables.append(sum((sets >> p & 1) << to[p] for p in range(self.points)).astype(np.int64))
            points.append(np.concatenate([[0], to + 1]).astype(np.int64))
        return tables, points

    def _near(self, stones: np.ndarray) -> np.ndarray:
        """The points beside these."""
        width = np.uint16(self.columns)
        one = np.uint16(1)
        sides = (stones & self._not_last) << one | (stones & self._not_first) >> one
        return sides | stones << width & self._all | stones >> width

    def _spread(self, seeds: np.ndarray, within: np.ndarray) -> np.ndarray:
        """All points that are connected to seeds within a set."""
        reached = seeds & within
        while True:
            further = reached | self._near(reached) & within
            if np.array_equal(further, reached):
                return reached
            reached = further

    def layer(self, codes: np.ndarray) -> np.ndarray:
        """One for all."""
        return np.zeros(len(codes), dtype=np.int64)

    def second_moves(self, codes: np.ndarray) -> np.ndarray:
        """Is it White's turn?"""
        return (codes >> _TURN & 1) == 1

    def moves(self, codes: np.ndarray) -> Moves:
        """A stone on each point, then the pass."""
        black, white = _stones(codes)
        second = self.second_moves(codes)
        own, other = np.where(second, white, black)[:, None], np.where(second, black, white)[:, None]
        empty = self._all & ~(own | other)
        placed = own | self._bits
        left = self._spread(self._near(empty & ~self._bits), np.broadcast_to(other, placed.shape))
        taken = other & ~left
        free = self._all & ~(placed | left)
        safe = placed & ~self._spread(self._near(free), placed) == 0
        forbidden = codes >> _KO & 31
        legal = np.ones((len(codes), self.points + 1), dtype=bool)
        legal[:, :-1] = (empty & self._bits != 0) & safe & (forbidden[:, None] != 1 + np.arange(self.points))
        alone = self._near(self._bits) & own == 0
        ko = alone & (taken & (taken - np.uint16(1)) == 0) & (taken == self._near(self._bits) & free)
        ko_points = np.where(ko, _number(taken), 0)
        firsts, seconds = np.where(second[:, None], left, placed), np.where(second[:, None], placed, left)
        turn = (~second).astype(np.int64)[:, None] << _TURN
        after = np.empty(legal.shape, dtype=np.int64)
        after[:, :-1] = firsts.astype(np.int64) | seconds.astype(np.int64) << 16 | ko_points << _KO | turn
        stay = (black.astype(np.int64) | white.astype(np.int64) << 16)[:, None] | turn
        after[:, -1:] = stay | 1 << _PASSED
        ended = np.zeros(legal.shape, dtype=bool)
        ended[:, -1] = codes >> _PASSED & 1
        result = np.zeros(legal.shape, dtype=np.int8)
        over = ended[:, -1]
        result[over, -1] = np.sign(self.score(codes[over]))
        return Moves(np.where(legal, after, 0), legal, ended, result)

    def canonical(self, codes: np.ndarray) -> np.ndarray:
        """The smallest code of a position's images; the board's symmetries alone."""
        black, white = codes & 0xFFFF, codes >> 16 & 0xFFFF
        ko, rest = codes >> _KO & 31, codes >> _PASSED << _PASSED
        least = codes
        for sets, points in zip(self._images, self._image_points, strict=True):
            least = np.minimum(least, sets[black] | sets[white] << 16 | points[ko] << _KO | rest)
        return least

    def score(self, codes: np.ndarray) -> np.ndarray:
        """Black's area minus White's: stones, and empty points that reach stones of one colour alone."""
        black, white = _stones(codes)
        empty = self._all & ~(black | white)
        blacks, whites = self._spread(self._near(black), empty), self._spread(self._near(white), empty)
        first, second = black | blacks & ~whites, white | whites & ~blacks
        return _count(first) - _count(second)

    def potential(self, codes: np.ndarray) -> np.ndarray:
        """The score, a point counting 1/64."""
        return 2 * self.score(codes)

    def played(self, legal: np.ndarray, actions: int) -> np.ndarray:
        """The point, or, where that is not allowed, the pass."""
        return np.where(legal, np.arange(self.points + 1), self.points)

    def cells(self, codes: np.ndarray) -> np.ndarray:
        """The stones, a mark on the point that ko forbids, and below the board one for a pass just made."""
        black, white = (stones.astype(np.int64)[:, None] for stones in _stones(codes))
        points = np.arange(self.points)
        shown = (black >> points & 1) + 2 * (white >> points & 1)
        shown += 3 * ((codes >> _KO & 31)[:, None] == points + 1)
        below = np.zeros((len(codes), self.columns), dtype=np.int64)
        below[:, 0] = 4 * (codes >> _PASSED & 1)
        return np.concatenate([shown, below], axis=1).reshape(-1, self.rows + 1, self.columns)


def _stones(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Black's and White's stones as sets."""
    return (codes & 0xFFFF).astype(np.uint16), (codes >> 16 & 0xFFFF).astype(np.uint16)


def _count(sets: np.ndarray) -> np.ndarray:
    """How many points there are in each set."""
    bits = sets[:, None] >> np.arange(_POINTS, dtype=np.uint16) & np.uint16(1)
    return bits.sum(axis=1, dtype=np.int64)


def _number(sets: np.ndarray) -> np.ndarray:
    """The number of a set's only point, counted from 1; 0 for the empty set."""
    bits = np.zeros(sets.shape, dtype=np.int64)
    for p in range(_POINTS):
        bits += (p + 1) * (sets >> np.uint16(p) & np.uint16(1))
    return bits
