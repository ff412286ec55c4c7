"""What a game of two players is here: positions as `int64` codes, and rules on arrays of them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np


class Moves(NamedTuple):
    """The moves in some positions; each array is (positions, moves).

    Attributes:
        after: the code of the position that a move leads to, also where it ends the game; 0 where it is not legal.
        legal: may it be made?
        ended: does it end the game?
        result: what the first player then gets, 1, 0 or -1; 0 where the game goes on.
    """

    after: np.ndarray
    legal: np.ndarray
    ended: np.ndarray
    result: np.ndarray


class Game(Protocol):
    """A game of perfect information without chance; the player who begins is the first one.

    Attributes:
        name: of the game with its board.
        actions: names of the moves by their column in `Moves`; empty where a column is only a move's rank.
        start: the code of the first position.
        turns: most moves of the first player; after them a game that is not over is a draw.
        layered: does every move lead into a layer of its own (`layer`), so that no position ever comes again?
        merged: are positions that are images of each other one state of the MDP?
        board: rows and columns of its picture.
        pieces: the names of what stands on cells: number 1, 2, …
    """

    name: str
    actions: tuple[str, ...]
    start: int
    turns: int
    layered: bool
    merged: bool
    board: tuple[int, int]
    pieces: tuple[str, ...]

    def moves(self, codes: np.ndarray) -> Moves:
        """What may be done in these positions by whoever has to move."""
        ...

    def second_moves(self, codes: np.ndarray) -> np.ndarray:
        """Is it the second player's turn?"""
        ...

    def layer(self, codes: np.ndarray) -> np.ndarray:
        """How many moves were made before these positions, if the game is layered; else 0."""
        ...

    def canonical(self, codes: np.ndarray) -> np.ndarray:
        """One code for all positions that are turned or mirrored images of each other."""
        ...

    def potential(self, codes: np.ndarray) -> np.ndarray:
        """How far the first player is ahead, in 128ths of a win; a whole number below 64 either way."""
        ...

    def played(self, legal: np.ndarray, actions: int) -> np.ndarray:
        """The column of the move that each of so many actions makes: (positions, actions)."""
        ...

    def cells(self, codes: np.ndarray) -> np.ndarray:
        """What stands where, for the picture: (positions, rows, columns), 0 being an empty cell."""
        ...


def next_legal(legal: np.ndarray) -> np.ndarray:
    """For every column the first legal one from there on, beginning again at the left; positions have a legal move."""
    columns = legal.shape[1]
    twice = np.concatenate([legal, legal], axis=1)
    place = np.where(twice, np.arange(2 * columns), 2 * columns)
    return np.minimum.accumulate(place[:, ::-1], axis=1)[:, ::-1][:, :columns] % columns


def ranked(legal: np.ndarray, actions: int) -> np.ndarray:
    """Where legal moves come first: action a makes the move of rank a modulo their number."""
    return np.arange(actions) % np.maximum(legal.sum(axis=1), 1)[:, None]


def packed(positions: int, rows: np.ndarray, after: np.ndarray, ended: np.ndarray, result: np.ndarray) -> Moves:
    """Legal moves, told one by one and in the order of their positions, as arrays in which they come first.

    Args:
        positions: how many there are; each has a move.
        rows: the position of each move.
        after: the code after each move.
        ended: does each end the game?
        result: of those that do.
    """
    number = np.bincount(rows, minlength=positions)
    columns = np.arange(len(rows)) - np.repeat(np.cumsum(number) - number, number)
    legal = np.arange(max(int(number.max(initial=0)), 1)) < number[:, None]
    moves = Moves(
        np.zeros(legal.shape, np.int64), legal, np.zeros(legal.shape, np.bool_), np.zeros(legal.shape, np.int8)
    )
    for whole, part in ((moves.after, after), (moves.ended, ended), (moves.result, result)):
        whole[rows, columns] = part
    return moves
