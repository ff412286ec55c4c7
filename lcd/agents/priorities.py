"""How often each transition of a member's memory is learned from (Schaul et al. 2016, proportional priorities)."""

from __future__ import annotations

import numpy as np


class Priorities:
    """Sums over ever larger parts of each member's memory, so that a place is found by its share in a few steps.

    Args:
        members: how many there are.
        size: places of each.
    """

    def __init__(self, members: int, size: int):
        self.levels = max(1, (size - 1).bit_length())
        self.first = 1 << self.levels
        self.sums = np.zeros((members, 2 * self.first))
        """Node n is the sum of nodes 2n and 2n + 1; the places are the last level."""
        self.largest = np.ones(members)

    def set(self, members: slice, places: np.ndarray, values: np.ndarray) -> None:
        """Give places of some members these priorities, (members, places) each."""
        sums = self.sums[members]
        row, node = np.arange(len(sums))[:, None], self.first + places
        sums[row, node] = values
        self.largest[members] = np.maximum(self.largest[members], values.max(1))
        for _ in range(self.levels):
            node = node >> 1
            sums[row, node] = sums[row, 2 * node] + sums[row, 2 * node + 1]

    def find(self, members: slice, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places at which these shares, below 1, of all priorities are reached, and how probable those are.

        Args:
            members: whose.
            shares: (members, how many).
        """
        sums = self.sums[members]
        row, left = np.arange(len(sums))[:, None], shares * sums[:, 1:2]
        node = np.ones(shares.shape, np.int64)
        for _ in range(self.levels):
            node = 2 * node
            lower = sums[row, node]
            # What rounding leaves over must not lead to places that are empty.
            right = (left >= lower) & (sums[row, node + 1] > 0)
            left = np.where(right, left - lower, left)
            node = node + right
        return node - self.first, sums[row, node] / sums[:, 1:2]
