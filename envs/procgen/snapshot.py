"""Procgen's serialised state of one copy: the entities, the grid, the view and a few of a game's own variables.

A state is written without padding: 32-bit integers and floats, strings as a length and bytes, vectors as a length and
elements. `Snapshot` keeps a mutable copy, so that what is changed here is in `bytes(snapshot)`.
"""

from __future__ import annotations

import numpy as np

_FLOAT, _WHOLE = np.dtype(np.float32), np.dtype(np.int32)


def _record(text: str) -> np.dtype:
    """Names in the order in which they are written; those with a tilde are floats."""
    return np.dtype([(name.strip("~"), _FLOAT if "~" in name else _WHOLE) for name in text.split()])


ENTITY = _record(
    "~x ~y ~vx ~vy ~rx ~ry type image_type image_theme render_z will_erase collides ~collision_margin ~rotation ~vrot "
    "reflected fire_time spawn_time life_time expire_time absolute ~friction smart_step avoids auto_erase ~alpha "
    "~health ~theta ~grow_rate ~alpha_decay ~spawn_x"
)
_OPTIONS = _record(
    "paint_vel_info generated monochrome restrict_themes use_backgrounds center_agent debug_mode mode sequential "
    "easy_jump plain physics"
)
_LEVELS = _record("grid_step low high kind copy")
_VIEW = _record("~unit ~view_dim ~x_off ~y_off ~visibility ~min_visibility")

PLAYER, SPACE, WALL = 0, 100, 51


class Snapshot:
    """What is read of a state. Arrays are views of it: writing to them changes it."""

    def __init__(self, state: bytes) -> None:
        """Read a state of any of the games, as `Engine.get_state` gives it."""
        self._data = bytearray(state)
        self._at = 4
        self.game = self._string()
        self.options = self._take(_OPTIONS, 1)
        self.levels = self._take(_LEVELS, 1)
        self._random()
        self._random()
        self._skip(9)  # the last step's outcome, the action, the time limit, the level's seed, the episode's end
        self._skip(4)  # the last reward's timer and size, the default action, the assets' seed
        self.time = int(self.integers(2)[0])
        self._skip(1)
        self.entities = self.read_entities()
        self._skip(4 + 1)
        self.last_move = int(self.integers(1)[0])
        self._skip(2 + 3)
        self.action_vx, self.action_vy, _ = (float(v) for v in self.floats(3))
        self.center = tuple(float(v) for v in self.floats(2))
        self._skip(3)
        self._random()
        self.width, self.height, self.outside = (int(v) for v in self.integers(3))
        self.view = self._take(_VIEW, 1)[0]
        columns, rows, cells = (int(v) for v in self.integers(3))
        assert columns * rows == cells
        self.grid = self.integers(cells).reshape(rows, columns)
        self.own = self._at  # where the game's own variables begin

    def __bytes__(self) -> bytes:
        return bytes(self._data)

    def rewind(self) -> None:
        """Read on from the game's own variables."""
        self._at = self.own

    def integers(self, count: int) -> np.ndarray:
        """The next integers."""
        return self._take(_WHOLE, count)

    def floats(self, count: int) -> np.ndarray:
        """The next floats."""
        return self._take(_FLOAT, count)

    def vector(self) -> np.ndarray:
        """The next vector of integers or truth values."""
        return self.integers(int(self.integers(1)[0]))

    def read_entities(self) -> np.ndarray:
        """The next list of entities, as records."""
        return self._take(ENTITY, int(self.integers(1)[0]))

    def of_type(self, *types: int) -> np.ndarray:
        """The entities of some types, as a copy."""
        return self.entities[np.isin(self.entities["type"], types)]

    @property
    def player(self) -> np.void:
        """The player's record."""
        return self.of_type(PLAYER)[0]

    def _take(self, dtype: np.dtype, count: int) -> np.ndarray:
        taken = np.frombuffer(self._data, dtype, count, self._at)
        self._at += count * dtype.itemsize
        return taken

    def _string(self) -> str:
        length = int(self.integers(1)[0])
        self._at += length
        return self._data[self._at - length : self._at].decode()

    def _random(self) -> None:
        self._skip(1)
        self._string()

    def _skip(self, count: int) -> None:
        self._at += 4 * count


def laser_themes(state: Snapshot) -> np.ndarray:
    """Bossfight: the sprites of the player's and of the boss' lasers on this level (a view of two integers)."""
    state.rewind()
    state.vector()
    state.integers(10)
    return state.integers(2)


def waiting(state: Snapshot) -> np.ndarray:
    """Starpilot: the entities that are still to come (a view)."""
    state.rewind()
    return state.read_entities()


def cue_theme(state: Snapshot) -> int:
    """Plunder: the number of the ship that is to be shot on this level."""
    state.rewind()
    state.integers(1)
    state.vector()
    return int(np.flatnonzero(state.vector())[0])


def keys_held(state: Snapshot) -> np.ndarray:
    """Heist: which keys the player has."""
    state.rewind()
    state.integers(2)
    return state.vector().astype(bool)


def lanes(state: Snapshot) -> np.ndarray:
    """Leaper: the rows that are road or river, from below."""
    state.rewind()
    rows: list[int] = []
    for _ in range(2):
        lowest = int(state.integers(1)[0])
        rows += range(lowest, lowest + len(state.vector()))
    return np.array(rows, dtype=np.int64)
