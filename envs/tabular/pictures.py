"""Pictures of tabular states: the three views from one label image, boards of pieces, and stored screens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lcd.envs.errors import InputError
from lcd.envs.hardness.shapes import figure_radii, label_colours, noise_tiles, polygon_mask
from lcd.envs.native import IMAGE_VIEWS

_TILE = 128
_GREY = 96
_PIECE_RADIUS = 0.42
_MOST_PIXELS = 512


class LabelRenderer:
    """The views of label images, which a subclass draws.

    `semantic` has a colour for each label, `figure_ground` is white where there is any, and `pixels` shows the colours
    on grey, both under the texture. A label's place and outline are the same in all three.
    """

    views: Sequence[str] = IMAGE_VIEWS

    def __init__(self, labels: Sequence[str], shape: tuple[int, int], texture: float = 0.0) -> None:
        """Name the labels.

        Args:
            labels: what each label stands for; the first is the background.
            shape: height and width in pixels.
            texture: strength of the textures in `pixels`, 0 (none) to 1; new ones every frame.
        """
        if not 0 <= texture <= 1:
            raise InputError(f"texture is {texture!r}, but it must be a number from 0 to 1.")
        if not 1 <= min(shape) <= max(shape) <= _MOST_PIXELS:
            raise InputError(f"shape is {shape!r}, but height and width must be from 1 to {_MOST_PIXELS} pixels.")
        self.labels, self.shape, self.texture = tuple(labels), shape, float(texture)
        self.words = 2 if texture else 0
        colours = label_colours(max(len(self.labels) - 1, 1))
        self._colours = np.concatenate([np.zeros((1, 3), np.uint8), colours])
        self._lit = np.concatenate([np.full((1, 3), _GREY, np.uint8), colours])

    def draw(self, states: np.ndarray) -> np.ndarray:
        """The label images of these states: (n, height, width) `uint8`."""
        raise NotImplementedError

    def paint(self, states: np.ndarray, view: str, words: np.ndarray | None = None) -> np.ndarray:
        """Frames of these states under a view; `words` are random numbers for textures."""
        labels = self.draw(states)
        if view == "figure_ground":
            return np.repeat(np.where(labels > 0, np.uint8(255), np.uint8(0))[..., None], 3, axis=3)
        if view == "semantic":
            return self._colours.take(labels, axis=0)
        frames = self._lit.take(labels, axis=0)
        if words is None or not self.words:
            return frames
        ground, figures = (self._texture(words[:, column]) for column in range(2))
        noise = np.where((labels > 0)[..., None], figures, ground)
        return np.clip(frames + 127.5 * self.texture * noise, 0, 255).astype(np.uint8)

    def _texture(self, words: np.ndarray) -> np.ndarray:
        """A random cut-out of a random texture for every frame."""
        tiles = noise_tiles(_TILE)
        kind, down, right = (
            ((words >> np.uint64(shift)) % np.uint64(many)).astype(np.int64)
            for shift, many in ((0, len(tiles)), (16, _TILE), (32, _TILE))
        )
        rows = (down[:, None] + np.arange(self.shape[0])) % _TILE
        columns = (right[:, None] + np.arange(self.shape[1])) % _TILE
        return tiles[kind[:, None, None], rows[:, :, None], columns[:, None, :]]


class BoardRenderer(LabelRenderer):
    """A board of cells, each empty or with a piece; every kind of piece has an outline of its own."""

    def __init__(
        self,
        cells: Callable[[np.ndarray], np.ndarray],
        pieces: Sequence[str],
        board: tuple[int, int],
        cell: int = 12,
        texture: float = 0.0,
        sprites: np.ndarray | None = None,
    ) -> None:
        """Make a board's renderer.

        Args:
            cells: states -> (n, rows, columns) pieces, 0 being an empty cell.
            pieces: the pieces' names, of number 1, 2, ….
            board: rows and columns.
            cell: side of a cell in pixels.
            texture: as in `LabelRenderer`.
            sprites: (pieces, cell, cell) truth values, the pieces' outlines; by default polygons.
        """
        super().__init__(("empty", *pieces), (board[0] * cell, board[1] * cell), texture)
        if sprites is None:
            sprites = np.stack(
                [polygon_mask(cell, figure_radii(n, 0), _PIECE_RADIUS * cell) > 0 for n in range(len(pieces))]
            )
        numbered = sprites.astype(np.uint8) * np.arange(1, len(pieces) + 1, dtype=np.uint8)[:, None, None]
        self._sprites = np.concatenate([np.zeros((1, cell, cell), np.uint8), numbered])
        self._cells, self._board, self._cell = cells, board, cell
        self.kinds = 1 + len(pieces)

    def cells(self, states: np.ndarray) -> np.ndarray:
        """(n, cells) the number of the piece in each cell, row by row; 0 where there is none."""
        return self._cells(states).reshape(len(states), -1)

    def draw(self, states: np.ndarray) -> np.ndarray:
        """Each cell's piece in its place."""
        rows, columns = self._board
        drawn = self._sprites.take(self._cells(states).reshape(-1, rows, columns), axis=0)
        return drawn.transpose(0, 1, 3, 2, 4).reshape(-1, rows * self._cell, columns * self._cell)


class Screens:
    """Stored pictures, of which a state has one: the view `pixels` alone."""

    views: Sequence[str] = ("pixels",)
    words = 0

    def __init__(self, screens: np.ndarray, of_state: np.ndarray, states: int) -> None:
        """Keep the pictures.

        Args:
            screens: (pictures, height, width, 3) `uint8`.
            of_state: (states,) the number of each state's picture.
            states: how many states there are.
        """
        if screens.ndim != 4 or screens.shape[-1] != 3 or screens.dtype != np.uint8 or 0 in screens.shape:
            raise InputError(
                f"screens has the shape {screens.shape} and type {screens.dtype}, but must be "
                "(pictures, height, width, 3) of uint8."
            )
        if of_state.shape != (states,) or of_state.min() < 0 or of_state.max() >= len(screens):
            raise InputError(
                f"screen_mapping must hold a picture's number from 0 to {len(screens) - 1} for each of {states} states."
            )
        self._screens, self._of_state = screens, of_state.astype(np.int64)
        self.shape = screens.shape[1:3]

    def paint(self, states: np.ndarray, view: str, words: np.ndarray | None = None) -> np.ndarray:
        """The stored pictures of these states."""
        return self._screens.take(self._of_state.take(states), axis=0)
