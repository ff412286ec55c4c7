"""When two numbers count as equal: what rounding alone can make of equal ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lcd.envs.tabular.mdp import TabularMDP

EXACT, ROUNDED = 1e-9, 1e-6
"""Relative tolerances where float32 holds the rewards exactly, and where it had to round them (0.1, say)."""
_GRAIN = 1024
_FLOAT32 = 2.0**-23
_FLOOR = 2.0**-44


@dataclass(frozen=True)
class Ties:
    """Tolerances for one MDP.

    Attributes:
        relative: two Q-values of a state are tied when they differ by at most this share of the greater one's size.
        floor: or by at most this: where rewards of both signs cancel, sums are no more exact than that. Where all have
            one sign it is 0, because the tiny Q-values of sparse rewards are told apart exactly.
        returns: two returns are equal when they differ by at most this.
    """

    relative: float
    floor: float
    returns: float

    @classmethod
    def of(cls, mdp: TabularMDP, relative: float | None = None) -> Ties:
        """The tolerances that fit an MDP's rewards, or a relative one as given."""
        largest = float(np.abs(mdp.rewards).max())
        # Above these sizes float32 has no others left, and would have rounded whatever was given to such.
        exact = (largest < 2.0**13 and _whole(mdp.rewards * _GRAIN)) or (largest < 2.0**24 and _whole(mdp.rewards))
        share = EXACT if exact else ROUNDED
        returns = largest * (EXACT if exact else mdp.horizon * _FLOAT32)
        both_signs = bool((mdp.rewards > 0).any() and (mdp.rewards < 0).any())
        floor = largest * mdp.horizon * _FLOOR if both_signs else 0.0
        return cls(share if relative is None else relative, floor, returns)

    def greedy(self, worth: np.ndarray, axis: int) -> np.ndarray:
        """Which of the values along an axis are tied with the greatest."""
        best = worth.max(axis=axis, keepdims=True)
        return worth >= best - (self.relative * np.abs(best) + self.floor)


def _whole(numbers: np.ndarray) -> bool:
    return bool((numbers == np.rint(numbers)).all())
