"""Chess on boards of at most 16 squares.

A code is a number of base 13, a digit a square: 0 is empty, 1 to 6 are the first player's king, queen, rook, bishop,
knight and pawn, 7 to 12 the second player's. In front of it stands whose turn it is. Sets of squares are bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lcd.envs.ehc.games.game import Game, Moves, packed, ranked
from lcd.envs.errors import InputError

KINDS = ("king", "queen", "rook", "bishop", "knight", "pawn")
LETTERS = "KQRBNPkqrbnp"
_KING, _QUEEN, _ROOK, _BISHOP, _KNIGHT, _PAWN = range(1, 7)
_SQUARES, _BASE = 16, 13
_WORTH = (0, 9, 5, 3, 3, 1)
_STRAIGHT = ((-1, 0), (1, 0), (0, -1), (0, 1))
_DIAGONAL = ((-1, -1), (-1, 1), (1, -1), (1, 1))
_LEAPS = tuple((a * x, b * y) for a, b in _DIAGONAL for x, y in ((1, 2), (2, 1)))


class _Side(NamedTuple):
    """Positions as who moves sees them."""

    board: np.ndarray
    """(positions, squares): the kinds 1 to 6 of the mover's men, else 0."""
    own: np.ndarray
    other: np.ndarray
    theirs: dict[int, np.ndarray]
    """The other player's men of each kind, as sets."""
    second: np.ndarray


class Chess(Game):
    """The rules of chess without castling, double steps and en passant; a pawn becomes a queen.

    A mate wins, a stalemate is a draw, and so is what is not over at the move limit; no repetition is forbidden or
    counted, and no material is too little. The first player's pawns go up. An action is the rank of a legal move, by
    the squares that it comes from and goes to, modulo their number.
    """

    layered = False
    merged = False
    actions = ()
    pieces = tuple(f"{player} {kind}" for player in ("first", "second") for kind in KINDS)

    def __init__(self, rows: tuple[str, ...], turns: int = 40, name: str = "") -> None:
        """Make the game.

        Args:
            rows: the first position from the top, a letter a square: `KQRBNP` are the first player's men, small
                letters the second player's, a dot an empty square.
            turns: most moves of a player.
            name: of the game; by default `chess` with the board.
        """
        down, across = len(rows), len(rows[0]) if rows else 0
        if not 0 < down * across <= _SQUARES or any(len(row) != across for row in rows):
            raise InputError(f"rows is {rows!r}, but must be rows of one length, of at most {_SQUARES} squares in all.")
        placed = "".join(rows)
        if placed.count("K") != 1 or placed.count("k") != 1 or set(placed) - {*LETTERS, "."}:
            raise InputError(
                f"rows is {rows!r}, but must have one K, one k, and else only letters of {LETTERS} and '.'."
            )
        self.name = name or f"chess-{down}x{across}"
        self.board, self.turns, self.squares = (down, across), turns, down * across
        self._powers = _BASE ** np.arange(self.squares)
        self._turn = int(_BASE**self.squares)
        digits = np.array([LETTERS.find(letter) + 1 for letter in placed], dtype=np.int64)
        self.start = int(digits @ self._powers)
        self._bits = 1 << np.arange(self.squares)
        self._rook, self._bishop = self._slides(_STRAIGHT), self._slides(_DIAGONAL)
        self._knight, self._king = self._leaps(_LEAPS), self._leaps(_STRAIGHT + _DIAGONAL)
        self._forward = np.stack([self._leaps(((step, 0),)) for step in (-1, 1)])
        self._strike = np.stack([self._leaps(((step, -1), (step, 1))) for step in (-1, 1)])
        self._last = np.array([self._bits[:across].sum(), self._bits[-across:].sum()])

    def _place(self, square: int, step: tuple[int, int], far: int) -> int:
        """The square so many steps away; -1 off the board."""
        row, column = square // self.board[1] + far * step[0], square % self.board[1] + far * step[1]
        return row * self.board[1] + column if 0 <= row < self.board[0] and 0 <= column < self.board[1] else -1

    def _leaps(self, steps: tuple[tuple[int, int], ...]) -> np.ndarray:
        """For each square the squares one of these steps away."""
        places = [[self._place(square, step, 1) for step in steps] for square in range(self.squares)]
        return np.array([sum(1 << place for place in found if place >= 0) for found in places], dtype=np.int64)

    def _slides(self, steps: tuple[tuple[int, int], ...]) -> np.ndarray:
        """For each square and each set of taken squares, where men that slide get to: (squares, sets)."""
        taken = np.arange(1 << self.squares)
        reached = np.zeros((self.squares, taken.size), dtype=np.int64)
        for square in range(self.squares):
            for step in steps:
                free, far = np.ones(taken.size, dtype=bool), 1
                while (place := self._place(square, step, far)) >= 0:
                    reached[square] |= np.where(free, 1 << place, 0)
                    free &= taken >> place & 1 == 0
                    far += 1
        return reached

    def layer(self, codes: np.ndarray) -> np.ndarray:
        """One for all."""
        return np.zeros(len(codes), dtype=np.int64)

    def second_moves(self, codes: np.ndarray) -> np.ndarray:
        """Is it the second player's turn?"""
        return codes >= self._turn

    def _digits(self, codes: np.ndarray) -> np.ndarray:
        """What stands on each square: (positions, squares)."""
        left = codes % self._turn
        digits = np.empty((len(codes), self.squares), dtype=np.int64)
        for square in range(self.squares):
            left, digits[:, square] = np.divmod(left, _BASE)
        return digits

    def _side(self, codes: np.ndarray) -> _Side:
        digits, second = self._digits(codes), self.second_moves(codes)
        kinds = (digits - 1) % 6 + 1
        mine = (digits > 6) == second[:, None]
        filled = digits > 0
        own, other = ((filled & who) @ self._bits for who in (mine, ~mine))
        theirs = {kind: (filled & ~mine & (kinds == kind)) @ self._bits for kind in range(1, 7)}
        return _Side(np.where(filled & mine, kinds, 0), own, other, theirs, second)

    def _targets(self, side: _Side) -> np.ndarray:
        """Where each of the mover's men may go if no king minded: (positions, squares), sets."""
        place, taken, forth = np.arange(self.squares), (side.own | side.other)[:, None], side.second.astype(np.int64)
        rook, bishop = self._rook[place, taken], self._bishop[place, taken]
        pawn = self._forward[forth] & ~taken | self._strike[forth] & side.other[:, None]
        goes = (self._king[place], rook | bishop, rook, bishop, self._knight[place], pawn)
        found = np.zeros_like(rook)
        for kind, to in enumerate(goes, start=1):
            found |= np.where(side.board == kind, to, 0)
        return found & ~side.own[:, None]

    def _safe(self, side: _Side, row: np.ndarray, here: np.ndarray, to: np.ndarray) -> np.ndarray:
        """Is the mover's king unharmed after each of these moves?"""
        left = ~self._bits[to]
        taken = (side.own | side.other)[row] & ~self._bits[here] | self._bits[to]
        homes = (side.board == _KING).argmax(axis=1)[row]
        king = np.where(homes == here, to, homes)
        men = {kind: sets[row] & left for kind, sets in side.theirs.items()}
        harm = self._rook[king, taken] & (men[_ROOK] | men[_QUEEN])
        harm |= self._bishop[king, taken] & (men[_BISHOP] | men[_QUEEN])
        harm |= self._knight[king] & men[_KNIGHT] | self._king[king] & men[_KING]
        harm |= self._strike[side.second[row].astype(np.int64), king] & men[_PAWN]
        return harm == 0

    def _legal(self, side: _Side) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All legal moves: of which position, from where, to where; in this order."""
        open_to = self._targets(side)[:, :, None] & self._bits != 0
        row, here, to = np.nonzero(open_to)
        safe = self._safe(side, row, here, to)
        return row[safe], here[safe], to[safe]

    def moves(self, codes: np.ndarray) -> Moves:
        """The legal moves by the squares that they come from and go to."""
        side = self._side(codes)
        row, here, to = self._legal(side)
        digits, second = self._digits(codes), side.second[row]
        man = digits[row, here]
        promoted = (side.board[row, here] == _PAWN) & (self._last[second.astype(np.int64)] & self._bits[to] != 0)
        men = np.where(promoted, man - _PAWN + _QUEEN, man)
        after = codes[row] - man * self._powers[here] + (men - digits[row, to]) * self._powers[to]
        after += np.where(second, -self._turn, self._turn)
        ended, mate = self._ends(after)
        result = np.where(mate, np.where(second, -1, 1), 0).astype(np.int8)
        return packed(len(codes), row, after, ended, result)

    def _ends(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """In which positions is there no legal move, and in which of these is it mate?"""
        distinct, back = np.unique(codes, return_inverse=True)
        side = self._side(distinct)
        stuck = np.ones(distinct.size, dtype=bool)
        stuck[self._legal(side)[0]] = False
        mate = np.zeros(distinct.size, dtype=bool)
        rows = np.flatnonzero(stuck)
        home = (side.board[rows] == _KING).argmax(axis=1)
        mate[rows] = ~self._safe(side, rows, home, home)
        return stuck[back], mate[back]

    def canonical(self, codes: np.ndarray) -> np.ndarray:
        """The smaller of a position and its mirror image."""
        across = self.board[1]
        mirrored = np.arange(self.squares).reshape(self.board)[:, ::-1].ravel()
        digits = self._digits(codes)[:, mirrored]
        return np.minimum(codes, digits @ self._powers + codes // self._turn * self._turn) if across > 1 else codes

    def potential(self, codes: np.ndarray) -> np.ndarray:
        """What the first player's men count, less what the second player's do: a pawn 1, in 128ths."""
        worth = np.array([0, *_WORTH, *(-each for each in _WORTH)])
        return worth[self._digits(codes)].sum(axis=1)

    def played(self, legal: np.ndarray, actions: int) -> np.ndarray:
        """The legal move of the action's rank, modulo their number."""
        return ranked(legal, actions)

    def cells(self, codes: np.ndarray) -> np.ndarray:
        """What stands on each square."""
        return self._digits(codes).reshape(-1, *self.board)
