"""Random streams: one independent, counter-based generator for every copy of an environment.

The output of copy `c` at position `i` is `mix(key_c + i * increment_c)` (the finaliser of SplitMix64 over a
Weyl sequence of the copy's own odd increment), so that all copies draw in a few array operations, a copy's
numbers depend on nothing but its own seed and position, and the whole state is three small arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lcd.envs.errors import InputError
from lcd.envs.state import State

KEYS: dict[str, int] = {
    "mdp": 0,
    "train": 1,
    "eval": 2,
    "reward": 3,
    "exploration": 4,
    "evaluation": 5,
    "initialisation": 6,
    "shuffle": 7,
    "environment": 8,
    "stage": 9,
    "rank": 10,
    "auxiliary": 11,
    "videos": 14,
    "elsewhere": 16,
    "injection": 40,
    "calibration": 50,
    "gorp": 60,
    "traffic": 70,
}
"""The branches of a run's one SeedSequence. Numbers are never reused: curves depend on them."""

_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_ALTERNATING = np.uint64(0xAAAAAAAAAAAAAAAA)
_ONE, _ELEVEN, _THIRTY_TWO = np.uint64(1), np.uint64(11), np.uint64(32)
_TO_UNIT = 2.0**-53
_FEWEST_BIT_CHANGES = 24
_STATE = ("keys", "increments", "positions")
_BLOCK = 256
"""Words that are worked out at once for a lone copy: by then a word costs little, and few are thrown away."""


def seed_sequence(seed: int, *branch: str | int) -> np.random.SeedSequence:
    """The SeedSequence of one branch of a run.

    Args:
        seed: the run's seed.
        branch: names of `KEYS` and numbers (such as a copy's), outermost first.
    """
    return np.random.SeedSequence(seed, spawn_key=[KEYS[b] if isinstance(b, str) else int(b) for b in branch])


def group_seeds(seed: int | Sequence[int], groups: int) -> list[int]:
    """One seed a group: those given, or, from one number for several groups, as many unrelated ones."""
    if not isinstance(seed, int | np.integer):
        if len(seed) != groups:
            raise InputError(f"seed names {len(seed)} seeds, but the population has {groups}.")
        return [int(s) for s in seed]
    if groups == 1:
        return [int(seed)]
    return [int(s) for s in seed_sequence(int(seed)).generate_state(groups)]


class Streams:
    """One random stream a copy, drawn from together.

    Every method takes `index` (None for all copies, else a boolean mask or an array of copy numbers without
    repetition): only those copies draw, and only they advance.
    """

    def __init__(self, keys: np.ndarray, increments: np.ndarray) -> None:
        """Make streams of the copies' uint64 keys and increments; `spawn` makes those."""
        self.keys = np.array(keys, dtype=np.uint64)
        self.increments = _well_mixing(np.array(increments, dtype=np.uint64))
        self.positions = np.zeros_like(self.keys)

    @classmethod
    def spawn(cls, sequences: Sequence[np.random.SeedSequence], kinds: int = 1) -> list[Streams]:
        """`kinds` unrelated sets of streams, each with one stream for every sequence (that is, copy)."""
        words = np.array([s.generate_state(2 * kinds, np.uint64) for s in sequences]).reshape(-1, kinds, 2)
        return [cls(words[:, kind, 0], words[:, kind, 1]) for kind in range(kinds)]

    def __len__(self) -> int:
        return len(self.keys)

    def bits(self, index: np.ndarray | None = None, count: int | None = None) -> np.ndarray:
        """64 random bits (uint64) a copy, or `count` times that along a last axis."""
        if index is None:
            position, increment, key = self.positions, self.increments, self.keys
        else:
            position, increment, key = self.positions[index], self.increments[index], self.keys[index]
        if count is None:
            words = position * increment
            words += key
        else:
            words = position[:, None] + np.arange(count, dtype=np.uint64)
            words *= increment[:, None]
            words += key[:, None]
        advance = _ONE if count is None else np.uint64(count)
        if index is None:
            self.positions += advance
        else:
            self.positions[index] = position + advance
        return _mix(words)

    def uniform(self, index: np.ndarray | None = None, count: int | None = None) -> np.ndarray:
        """Float64 in [0, 1)."""
        words = self.bits(index, count)
        words >>= _ELEVEN
        return words * _TO_UNIT

    def integers(self, high: int | np.ndarray, index: np.ndarray | None = None, count: int | None = None) -> np.ndarray:
        """Int64 in [0, high); `high` (below 2**32) is a number or broadcasts with the result."""
        words = self.bits(index, count)
        words >>= _THIRTY_TWO
        words *= np.asarray(high, dtype=np.uint64)
        words >>= _THIRTY_TWO
        return words.view(np.int64)

    def normal(self, index: np.ndarray | None = None, count: int | None = None) -> np.ndarray:
        """Float64 from the standard normal distribution (Box and Muller's transform, two draws a number)."""
        uniforms = self.uniform(index, 2 * (count or 1))
        half = uniforms.shape[1] // 2
        normals = _normals(uniforms[:, :half], uniforms[:, half:])
        return normals[:, 0] if count is None else normals

    def get_state(self) -> State:
        """Everything that future draws depend on, as copies."""
        return {
            "keys": self.keys.copy(),
            "increments": self.increments.copy(),
            "positions": self.positions.copy(),
        }

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        self.keys = np.array(state["keys"], dtype=np.uint64)
        self.increments = np.array(state["increments"], dtype=np.uint64)
        self.positions = np.array(state["positions"], dtype=np.uint64)


class LoneStream:
    """The stream of an only copy, in plain numbers: those that `Streams` would draw, worked out a block at a time."""

    _words: list[int]
    _normals: list[float]
    _block: np.ndarray
    _key: np.uint64
    _increment: np.uint64
    _position: np.uint64
    _at: int
    _worked_out: int

    def __init__(self, streams: Streams) -> None:
        """Begin where the streams of one copy are."""
        self.set_state(streams.get_state())

    def bits(self) -> int:
        """64 random bits."""
        at = self._at
        if at >= self._worked_out:
            at = self._work_out()
        self._at = at + 1
        return self._words[at]

    def uniform(self) -> float:
        """In [0, 1)."""
        return (self.bits() >> 11) * _TO_UNIT

    def integer(self, high: int) -> int:
        """In [0, high), which is below 2**32."""
        return (self.bits() >> 32) * high >> 32

    def normal(self) -> float:
        """From the standard normal distribution, by two draws."""
        at = self._at
        if at >= self._worked_out:
            at = self._work_out()
        if not self._normals:
            # By numpy's functions, whose last bits are not always those of Python's.
            uniforms = (self._block >> _ELEVEN) * _TO_UNIT
            self._normals = _normals(uniforms[:-1], uniforms[1:]).tolist()
        self._at = at + 2
        return self._normals[at]

    def _work_out(self) -> int:
        """The next block, and its first place; one word more than it has places, for normals of two."""
        self._position += np.uint64(self._at)
        self._block = self._key + (self._position + np.arange(_BLOCK + 1, dtype=np.uint64)) * self._increment
        self._words, self._normals = _mix(self._block).tolist(), []
        self._at, self._worked_out = 0, _BLOCK
        return 0

    def get_state(self) -> State:
        """As that of `Streams`."""
        position = self._position + np.uint64(self._at)
        return {name: np.array([n]) for name, n in zip(_STATE, (self._key, self._increment, position), strict=True)}

    def set_state(self, state: State) -> None:
        """Continue exactly where `get_state` was called."""
        self._key, self._increment, self._position = (np.uint64(state[name][0]) for name in _STATE)
        self._words, self._normals = [], []
        self._at = self._worked_out = 0


def _normals(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Box and Muller's transform of two uniform numbers into a normal one."""
    return np.sqrt(-2.0 * np.log1p(-one)) * np.cos((2.0 * np.pi) * other)


def _mix(words: np.ndarray) -> np.ndarray:
    words ^= words >> _SHIFTS[0]
    words *= _FACTORS[0]
    words ^= words >> _SHIFTS[1]
    words *= _FACTORS[1]
    words ^= words >> _SHIFTS[2]
    return words


def _well_mixing(increments: np.ndarray) -> np.ndarray:
    """Odd increments whose bits alternate often enough: the mixer is weak for long runs of equal bits."""
    odd = increments | _ONE
    alternations = odd ^ (odd >> _ONE)
    changes = np.unpackbits(alternations.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=1)
    return np.where(changes < _FEWEST_BIT_CHANGES, odd ^ _ALTERNATING, odd)
