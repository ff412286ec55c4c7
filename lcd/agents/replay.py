"""What agents that learn from the past remember: the last transitions of every member of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lcd.agents.networks import as_float


class Replay:
    """The last transitions of every member, in arrays (members, places, …).

    Args:
        members: how many there are.
        size: places of each.
        inputs: numbers of an observation.
        dtype: of observations.
        outputs: numbers of an action; None where an action is one of several.
    """

    def __init__(self, members: int, size: int, inputs: int, dtype: Any, outputs: int | None = None):
        self.size, self.next, self.filled = size, 0, 0
        self.seen, self.reached = (np.zeros((members, size, inputs), dtype) for _ in range(2))
        one = (members, size)
        self.actions = np.zeros(one, np.int32) if outputs is None else np.zeros((*one, outputs), np.float32)
        self.rewards, self.going_on, self.valid = (np.zeros(one, np.float32) for _ in range(3))

    def add(self, seen: Any, actions: Any, rewards: Any, reached: Any, going_on: Any, valid: Any) -> None:
        """Keep one step of all copies, in place of the oldest; copies are ordered member by member."""
        new = {"seen": seen, "actions": actions, "rewards": rewards}
        new |= {"reached": reached, "going_on": going_on, "valid": valid}
        members = len(self.seen)
        copies = len(seen) // members
        places = slice(self.next, self.next + copies)
        for name, given in new.items():
            kept = getattr(self, name)
            kept[:, places] = given.reshape(members, copies, *kept.shape[2:])
        self.next = (self.next + copies) % self.size
        self.filled = min(self.size, self.filled + copies)

    def sample(self, members: slice, places: np.ndarray) -> dict[str, Tensor]:
        """The transitions of some members at these places, (members, batch, …)."""
        row = np.arange(len(places))[:, None]
        names = ("seen", "reached", "actions", "rewards", "going_on", "valid")
        found = {name: torch.from_numpy(getattr(self, name)[members][row, places]) for name in names}
        return found | {name: as_float(found[name]) for name in ("seen", "reached")}
