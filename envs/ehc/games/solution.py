"""The two-player solution: what every position that can come about is worth to the first player.

All positions are enumerated from the first one, images of each other as one, and kept as sorted codes with one `int32`
value each. A layered game is solved backwards, a layer at a time. In any other game positions come again: there values
are those with n moves to go, for n = 1, 2, … up to the game's limit or until nothing changes, and successors are kept
as `int32` too. Nothing is discounted, and nothing is rounded but the mean that noise takes, which is rounded down.

Shaping telescopes: up to a constant that all moves of a position share, Q-values with shaping are those of a game that
pays, beside its result, the potential of the position in which it ends or is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from lcd.envs.ehc.games.game import Game, Moves
from lcd.envs.ehc.games.opponents import NOISE_PARTS, UNIT
from lcd.envs.errors import InputError

ROWS_AT_ONCE = 1 << 14
MOST_POSITIONS = 120_000_000
POTENTIAL_PARTS = 128
"""Potentials are whole numbers of 128ths, below 64 either way."""
_POTENTIALS = 64
_FAR = np.int64(1 << 40)


class Positions:
    """All positions of a game in which somebody has to move, one for all that are images of each other.

    Attributes:
        game: the game.
        layers: the sorted codes; of a game that is not layered there is one layer.
        most_moves: the most moves that the first player has in any of them.
    """

    def __init__(self, game: Game, most: int = MOST_POSITIONS) -> None:
        """Enumerate them.

        Args:
            game: the game.
            most: refuse more than these.
        """
        self.game, self.most_moves = game, 1
        first = game.canonical(np.array([game.start], dtype=np.int64))
        self.layers = [first] if game.layered else [np.zeros(0, dtype=np.int64)]
        frontier, count = first, 1
        while frontier.size:
            following = self._following(frontier)
            if game.layered:
                if following.size:
                    self.layers.append(following)
            else:
                self.layers[0] = _merged(self.layers[0], frontier)
                following = following[~_among(following, self.layers[0])]
            count += following.size
            if count > most:
                raise InputError(f"most is {most:,}, but {game.name} has more positions than that: give a smaller one.")
            frontier = following

    def __len__(self) -> int:
        return sum(layer.size for layer in self.layers)

    def _following(self, codes: np.ndarray) -> np.ndarray:
        """The codes of what a move from these leads to, sorted, each once."""
        found = []
        for rows in parts(codes):
            moves = self.game.moves(rows)
            own = moves.legal[~self.game.second_moves(rows)].sum(axis=1)
            self.most_moves = max(self.most_moves, int(own.max(initial=0)))
            found.append(distinct(self.game.canonical(distinct(moves.after[moves.legal & ~moves.ended]))))
            if len(found) == 64:
                found = [distinct(np.concatenate(found))]
        return distinct(np.concatenate(found))

    def find(self, codes: np.ndarray, layer: int) -> np.ndarray:
        """Where these positions, or images of them, stand in a layer."""
        return np.searchsorted(self.layers[layer], self.game.canonical(codes))

    @cached_property
    def successors(self) -> tuple[np.ndarray, np.ndarray]:
        """Of a game that is not layered for each move its position's number, all in a row; where each position's begin.

        Numbers behind those of the positions are ends, each with its result and potential (`_all_ends`).
        """
        codes = self.layers[0]
        after, numbers = [], [np.zeros(1, dtype=np.int64)]
        for rows in parts(codes):
            moves = self.game.moves(rows)
            live = moves.legal & ~moves.ended
            reached, back = np.unique(moves.after[live], return_inverse=True)
            to = codes.size + _POTENTIALS + 2 * _POTENTIALS * (moves.result.astype(np.int64) + 1)
            to[live] = self.find(reached, 0)[back]
            to[moves.ended] += self.game.potential(moves.after[moves.ended])
            after.append(to[moves.legal].astype(np.int32))
            numbers.append(moves.legal.sum(axis=1))
        return np.concatenate(after), np.cumsum(np.concatenate(numbers))


class Solution:
    """The values of all positions under noisy-optimal, or optimal, play of both players.

    Attributes:
        positions: the positions.
        values: for each layer of them what each is worth to the first player, in units of 1 / `UNIT`.
    """

    def __init__(self, positions: Positions, noise: int = 0, shaped: bool = False) -> None:
        """Solve the game.

        Args:
            positions: all of them.
            noise: as of an `Opponent`.
            shaped: are the potentials paid, too?
        """
        self.positions, self.noise, self.shaped = positions, noise, shaped
        self.values: list[np.ndarray] = [np.zeros(0, dtype=np.int32) for _ in positions.layers]
        if positions.game.layered:
            for layer in reversed(range(len(positions.layers))):
                found = [self._one_move(rows) for rows in parts(positions.layers[layer])]
                self.values[layer] = np.concatenate(found).astype(np.int32)
        else:
            self.values[0] = self._many_moves()

    def of(self, moves: Moves) -> np.ndarray:
        """What each move is worth to the first player, (positions, moves); 0 where it is not legal."""
        return np.where(moves.ended, self.paid(moves), self._goes_on(moves))

    def paid(self, moves: Moves) -> np.ndarray:
        """What is paid at the end of the game where a move ends it."""
        paid = moves.result.astype(np.int64) * UNIT
        if self.shaped:
            paid[moves.ended] += self._potential(moves.after[moves.ended])
        return paid

    def _potential(self, codes: np.ndarray) -> np.ndarray:
        return self.positions.game.potential(codes).astype(np.int64) * (UNIT // POTENTIAL_PARTS)

    def _goes_on(self, moves: Moves) -> np.ndarray:
        """The values of the positions that moves lead to."""
        live = (moves.legal & ~moves.ended).T
        codes = moves.after.T[live]
        values = np.zeros(live.shape, dtype=np.int64)
        worth = np.zeros(codes.size, dtype=np.int64)
        layers = self.positions.game.layer(codes)
        for layer in np.flatnonzero(np.bincount(layers)).tolist():
            rows = layers == layer
            worth[rows] = self.values[layer][self.positions.find(codes[rows], layer)]
        values[live] = worth
        return values.T

    def _one_move(self, codes: np.ndarray) -> np.ndarray:
        """Values of positions from those of the layer behind them."""
        moves = self.positions.game.moves(codes)
        sign = np.where(self.positions.game.second_moves(codes), -1, 1)
        values = self.of(moves)
        best = sign * np.where(moves.legal, values * sign[:, None], -_FAR).max(axis=1)
        total = np.where(moves.legal, values, 0).sum(axis=1)
        return self._mixed(best, total, moves.legal.sum(axis=1))

    def _mixed(self, best: np.ndarray, total: np.ndarray, number: np.ndarray) -> np.ndarray:
        """The value of a position with this best value, and this sum over so many moves."""
        if not self.noise:
            return best
        return ((NOISE_PARTS - self.noise) * best * number + self.noise * total) // (NOISE_PARTS * number)

    def _many_moves(self) -> np.ndarray:
        """Values with as many moves to go as the game has at most, or as it takes until none changes."""
        codes = self.positions.layers[0]
        after, begins = self.positions.successors
        sign = np.where(self.positions.game.second_moves(codes), -1, 1)
        values = np.concatenate([np.zeros(codes.size, dtype=np.int32), _all_ends(self.shaped)])
        if self.shaped:
            for first in range(0, codes.size, ROWS_AT_ONCE):
                rows = slice(first, min(first + ROWS_AT_ONCE, codes.size))
                values[rows] = self._potential(codes[rows])
        for _ in range(2 * self.positions.game.turns):
            following = values.copy()
            for first in range(0, codes.size, ROWS_AT_ONCE):
                rows = slice(first, min(first + ROWS_AT_ONCE, codes.size))
                edges = slice(begins[rows.start], begins[rows.stop])
                starts = begins[rows] - edges.start
                worth = values.take(after[edges]).astype(np.int64)
                number = np.diff(begins[rows.start : rows.stop + 1])
                best = sign[rows] * np.maximum.reduceat(worth * np.repeat(sign[rows], number), starts)
                following[rows] = self._mixed(best, np.add.reduceat(worth, starts), number)
            same = np.array_equal(values, following)
            values = following
            if same:
                break
        return values[: codes.size]


def _all_ends(shaped: bool) -> np.ndarray:
    """What is paid at every end that there may be: each result with each potential, which counts if it is paid."""
    result, potential = np.meshgrid([-1, 0, 1], np.arange(-_POTENTIALS, _POTENTIALS), indexing="ij")
    return (result * UNIT + shaped * potential * (UNIT // POTENTIAL_PARTS)).ravel().astype(np.int32)


def distinct(codes: np.ndarray) -> np.ndarray:
    """The codes in order, each once; several times as fast as `np.unique`, which hashes them."""
    codes = np.sort(codes, axis=None)
    keep = np.ones(codes.size, dtype=bool)
    np.not_equal(codes[1:], codes[:-1], out=keep[1:])
    return codes[keep]


def parts(codes: np.ndarray) -> Iterator[np.ndarray]:
    """The codes, so many at a time."""
    for first in range(0, codes.size, ROWS_AT_ONCE):
        yield codes[first : first + ROWS_AT_ONCE]


def _among(codes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which of these codes are among the sorted known ones?"""
    place = np.searchsorted(known, codes)
    return known.take(place, mode="clip") == codes


def _merged(known: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Two sorted arrays that share nothing as one."""
    merged = np.empty(known.size + more.size, dtype=np.int64)
    place = np.searchsorted(known, more) + np.arange(more.size)
    free = np.ones(merged.size, dtype=bool)
    free[place] = False
    merged[place], merged[free] = more, known
    return merged
