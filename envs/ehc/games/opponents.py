"""What an opponent does: one move for every position, drawn once from a Boltzmann distribution over its Q-values.

The draw takes nothing but the seed and the position's code, so it does not matter in which order positions are looked
at. Values are whole numbers, and the exponential is made of additions, multiplications and divisions alone, which all
machines round alike: the same opponent comes out everywhere, bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lcd.envs.errors import InputError

UNIT = 1 << 20
"""A value of 1 as a whole number."""
NOISE_PARTS = 64
"""Noise is told as a number of 64ths."""
_WEIGHT = 1 << 24
_LEAST_EXPONENT = -40.0
_HALVINGS, _TERMS = 10, 9
_WEYL = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


@dataclass(frozen=True)
class Opponent:
    """How an opponent is drawn.

    Attributes:
        temperature: of the Boltzmann distribution; a result counts 1 or -1.
        noise: 64ths; at each later move of either player the best move is made, but with this probability any legal
            one. 0: Q-values of optimal play. Above that: of noisy-optimal play.
        seed: of the draws.
    """

    temperature: float
    noise: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise InputError(f"temperature is {self.temperature!r}, but must be a number above 0.")
        if not 0 <= self.noise <= NOISE_PARTS:
            raise InputError(f"noise is {self.noise!r}, but must be a number of 64ths from 0 to {NOISE_PARTS}.")

    def choose(self, codes: np.ndarray, values: np.ndarray, legal: np.ndarray) -> np.ndarray:
        """The column of the move that is made in each position.

        Args:
            codes: (n,) the positions.
            values: (n, moves) Q-values for who moves, in units of 1 / `UNIT`.
            legal: (n, moves) which of them may be made; at least one in every position.
        """
        shown = np.where(legal, values, -(1 << 40))
        behind = shown - shown.max(axis=1, keepdims=True)
        weights = np.where(legal, (exponential(behind / (UNIT * self.temperature)) * _WEIGHT).astype(np.int64), 0)
        upto = np.cumsum(weights, axis=1)
        drawn = (random_words(codes, self.seed) >> np.uint64(32)).astype(np.int64)
        threshold = drawn * upto[:, -1] >> 32
        return (upto <= threshold[:, None]).sum(axis=1)


def exponential(exponents: np.ndarray) -> np.ndarray:
    """The exponential of numbers that are at most 0, the same to the last bit on every machine; 0 below e^-40."""
    small = np.maximum(exponents, _LEAST_EXPONENT) / (1 << _HALVINGS)
    total = np.ones_like(small)
    for term in range(_TERMS, 0, -1):
        total = 1.0 + total * small / term
    for _ in range(_HALVINGS):
        total = total * total
    return np.where(exponents < _LEAST_EXPONENT, 0.0, total)


def random_words(codes: np.ndarray, seed: int) -> np.ndarray:
    """A random 64-bit word for every code."""
    with np.errstate(over="ignore"):
        key = _mixed(np.array([seed], dtype=np.uint64) * _WEYL + _WEYL)
        return _mixed(_mixed(codes.astype(np.uint64) * _WEYL + key) ^ key)


def _mixed(words: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64."""
    words = (words ^ words >> _SHIFTS[0]) * _FACTORS[0]
    words = (words ^ words >> _SHIFTS[1]) * _FACTORS[1]
    return words ^ words >> _SHIFTS[2]
