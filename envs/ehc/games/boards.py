"""Pictures of games: a board of men, those of the second player with a hole."""

from __future__ import annotations

import numpy as np

from lcd.envs.ehc.games.game import Game
from lcd.envs.tabular.pictures import BoardRenderer

CELL = 14
_HOLE = 0.2


class GameBoard(BoardRenderer):
    """Draws the positions of one game. Each kind of man has an outline and, by player, a hole or none."""

    def __init__(self, game: Game, codes: np.ndarray, texture: float = 0.0) -> None:
        """Make the renderer.

        Args:
            game: the game, whose `cells` say what stands where.
            codes: the codes of the states.
            texture: as of a `LabelRenderer`.
        """
        self._game, self._codes = game, codes
        super().__init__(self._of_states, game.pieces, game.board, CELL, texture, sprites(game.pieces))

    def _of_states(self, states: np.ndarray) -> np.ndarray:
        return self._game.cells(self._codes.take(states))


def sprites(pieces: tuple[str, ...]) -> np.ndarray:
    """The outlines of men by their names: a word for the player, then, where there are several kinds, the kind."""
    down, across = np.indices((CELL, CELL)) - (CELL - 1) / 2
    drawn = []
    for piece in pieces:
        player, _, kind = piece.partition(" ")
        mask = _outline(kind, down / CELL, across / CELL)
        if player == "second":
            mask &= np.hypot(down, across) > _HOLE * CELL
        drawn.append(mask)
    return np.stack(drawn)


def _outline(kind: str, down: np.ndarray, across: np.ndarray) -> np.ndarray:
    """The cells' pixels that a kind of man covers; coordinates are from -1/2 to 1/2."""
    side, far = np.abs(across), np.hypot(down, across)
    low = (down > 0.18) & (down < 0.43) & (side < 0.4)
    return {
        "": far < 0.43,
        "man": far < 0.43,
        "king": (np.maximum(side, np.abs(down)) < 0.43) & ((side < 0.15) | (np.abs(down) < 0.15)),
        "queen": side + np.abs(down) < 0.48,
        "rook": (np.maximum(side, np.abs(down)) < 0.4) & ~((down < -0.2) & (side > 0.1) & (side < 0.25)),
        "bishop": (np.abs(down) < 0.45) & (side < (down + 0.45) * 0.45),
        "knight": (np.maximum(side, np.abs(down)) < 0.42) & (across < down + 0.25),
        "pawn": low & (down > 0.25) | (side < 0.2) & (np.abs(down + 0.05) < 0.35),
        "crowned": np.maximum(side, np.abs(down)) < 0.43,
        "mark": (np.abs(down) < 0.12) & (side < 0.3),
        "forbidden": (np.abs(side - np.abs(down)) < 0.1) & (side < 0.35),
    }[kind]
