"""All states that can be reached from a first one, from rules over a compact code of a state.

Rules are one function on arrays: `rules(codes)` takes (n,) `int64` codes, none of them negative, and returns for every
action the next code, the reward and whether the episode ends, each of the shape (n, actions). States are numbered in
the order in which a breadth-first search first meets them, so that the same rules give the same tables.

Memory: a table of the rewards and transitions, 8 bytes an entry, a look-up table of at most 24 bytes a state at half
load, and what `rules` needs for `ROWS_AT_ONCE` states: 4 million states with 8 actions take under 1 GB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lcd.envs.checks import require_whole_number
from lcd.envs.errors import InputError
from lcd.envs.tabular.mdp import MOST_STATES, TERMINAL, TabularMDP, check_rewards

Rules = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]

ROWS_AT_ONCE = 1 << 17
"""States that are handed to the rules at a time."""
_EMPTY = np.int64(-1)
_FIRST_SLOTS = 1 << 12
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def build(
    rules: Rules,
    start: int,
    horizon: int,
    *,
    most_states: int = MOST_STATES,
    within_horizon: bool = False,
    **fields: Any,
) -> TabularMDP:
    """The MDP of all states that can be reached from a first one.

    Args:
        rules: code array -> next codes, rewards, ends, each (n, actions); codes of steps that end are not looked at.
        start: the first state's code, at least 0.
        horizon: steps after which every episode is over.
        most_states: refuse to build more.
        within_horizon: leave out what no episode can act in: a step into a state that only the horizon's last step
            reaches ends the episode in the tables.
        fields: further attributes of the `TabularMDP`.

    Returns:
        The MDP; its `codes` are the states' codes, its `start` is 0.
    """
    require_whole_number("start", start, 0, 2**63 - 1)
    require_whole_number("most_states", most_states, 1, MOST_STATES)
    require_whole_number("horizon", horizon, 1)
    numbers = _Numbers(most_states)
    frontier = np.array([start], dtype=np.int64)
    numbers.of(frontier, may_add=True)
    transitions: list[np.ndarray] = []
    rewards: list[np.ndarray] = []
    depth = 0
    while frontier.size:
        depth += 1
        last = within_horizon and depth == horizon
        fresh = []
        for rows in np.array_split(frontier, -(-frontier.size // ROWS_AT_ONCE)):
            after, paid, ended = _checked(rules(rows), len(rows), transitions[0].shape[1] if transitions else None)
            check_rewards(paid, sum(map(len, transitions)))
            following, new = numbers.of(np.where(ended, start, after).ravel(), may_add=not last)
            transitions.append(np.where(ended, TERMINAL, following.reshape(after.shape)).astype(np.int32))
            rewards.append(paid.astype(np.float32))
            fresh.append(new)
        frontier = np.concatenate(fresh)
    return TabularMDP(np.concatenate(transitions), np.concatenate(rewards), horizon, codes=numbers.codes(), **fields)


def codes_of(mdp: TabularMDP) -> np.ndarray:
    """The codes that an MDP's states were built from."""
    if mdp.codes is None:
        raise InputError(f"The MDP '{mdp.name}' was not built from codes.")
    return mdp.codes


def _checked(told: Any, rows: int, actions: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What rules said, if it is of the right shapes and kinds, and of as many actions as before."""
    try:
        after, paid, ended = (np.asarray(part) for part in told)
    except (TypeError, ValueError):
        raise InputError("rules must give three arrays: next codes, rewards, ends.") from None
    if actions is not None and after.shape[1:] != (actions,):
        raise InputError(f"rules gave {after.shape[1:]} actions, but for other codes ({actions},): give all of them.")
    if after.ndim != 2 or len(after) != rows or not after.shape == paid.shape == ended.shape:
        raise InputError(
            f"rules gave arrays of the shapes {after.shape}, {paid.shape} and {ended.shape} for {rows} codes, but must "
            f"give three of the shape ({rows}, actions): next codes, rewards, ends."
        )
    if after.dtype.kind not in "iu" or paid.dtype.kind not in "iufb" or ended.dtype != np.bool_:
        raise InputError(
            f"rules gave next codes, rewards and ends of the types {after.dtype}, {paid.dtype} and {ended.dtype}, but "
            "must give whole numbers, real numbers and truth values."
        )
    after = after.astype(np.int64, copy=False)
    if (after[~ended] < 0).any():
        raise InputError(f"rules gave the next code {after[~ended].min()}, but codes are at least 0.")
    return after, paid, ended


class _Numbers:
    """Numbers of codes in the order in which they first come: a hash table with open addressing, on arrays."""

    def __init__(self, most: int) -> None:
        self.most, self.count = most, 0
        self._in_order: list[np.ndarray] = []
        self._allot(_FIRST_SLOTS)

    def _allot(self, slots: int) -> None:
        self._codes = np.full(slots, _EMPTY)
        self._of_slot = np.full(slots, -1, dtype=np.int32)
        self._shift = np.uint64(64 - slots.bit_length() + 1)

    def codes(self) -> np.ndarray:
        """Every code, in the order of the numbers."""
        return np.concatenate(self._in_order)

    def of(self, codes: np.ndarray, may_add: bool) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of these codes, and those among them that are new, in the order in which they come.

        Args:
            codes: any codes, also the same ones twice.
            may_add: else unknown codes have the number -1, and none is added.
        """
        self._make_room(codes.size if may_add else 0)
        slots = self._find(codes, may_claim=may_add)
        found = self._of_slot.take(slots)
        unknown = np.flatnonzero(found < 0)
        if not may_add or not unknown.size:
            return found, codes[:0]
        # The last of several writes to a slot holds: written backwards, that is a code's first place.
        self._of_slot[slots[unknown[::-1]]] = -2 - unknown[::-1]
        first = unknown[self._of_slot[slots[unknown]] == -2 - unknown]
        if self.count + first.size > self.most:
            raise InputError(
                f"most_states is {self.most:,}, but the rules reach more states than that: give rules, or a start, "
                "with fewer."
            )
        self._of_slot[slots[first]] = np.arange(self.count, self.count + first.size, dtype=np.int32)
        self.count += first.size
        self._in_order.append(codes[first])
        return self._of_slot.take(slots), codes[first]

    def _make_room(self, more: int) -> None:
        """Keep at most half of the slots in use, whatever share of the codes is new."""
        slots, needed = len(self._codes), self.count + min(more, self.most + 1)
        if 2 * needed <= slots:
            return
        while 2 * needed > slots:
            slots *= 2
        known = self.codes() if self._in_order else np.zeros(0, dtype=np.int64)
        self._allot(slots)
        for first in range(0, known.size, ROWS_AT_ONCE):
            part = known[first : first + ROWS_AT_ONCE]
            self._of_slot[self._find(part, may_claim=True)] = np.arange(first, first + part.size, dtype=np.int32)

    def _find(self, codes: np.ndarray, may_claim: bool) -> np.ndarray:
        """The slot of each code: its own, or the free one that it claims, or would."""
        mask = len(self._codes) - 1
        slots = ((codes.view(np.uint64) * _FACTOR) >> self._shift).view(np.int64)
        open_rows = np.arange(codes.size)
        while open_rows.size:
            place = slots[open_rows]
            wanted = codes[open_rows]
            held = self._codes.take(place)
            if may_claim:
                # Of several codes that claim one slot one gets it; the others look further.
                free = held == _EMPTY
                self._codes[place[free]] = wanted[free]
                held = self._codes.take(place)
                open_rows = open_rows[held != wanted]
            else:
                open_rows = open_rows[(held != wanted) & (held != _EMPTY)]
            slots[open_rows] = (slots[open_rows] + 1) & mask
        return slots
