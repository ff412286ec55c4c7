"""What agents that learn from the past remember: the last transitions of every member of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from lcd.agents.networks import as_float
from lcd.process.limits import require_memory


class Replay:
    """The last transitions of every member, (members, places).

    What belongs to one transition lies together: what is drawn is somewhere in a large memory, which is slow to reach.

    Args:
        members: how many there are.
        size: places of each.
        inputs: numbers of an observation.
        dtype: of observations.
        outputs: numbers of an action; None where an action is one of several.
        one_hot: observations are one-hot vectors, of which the number is kept.
    """

    def __init__(
        self, members: int, size: int, inputs: int, dtype: Any, outputs: int | None = None, one_hot: bool = False
    ):
        self.members, self.size, self.next, self.filled = members, size, 0, 0
        self.inputs, self.of_inputs, self.outputs, self.one_hot = inputs, dtype, outputs, one_hot
        require_memory(f"agent.buffer={size} of {members} member{'s' * (members > 1)} in a run", self.nbytes)
        self.records = np.zeros((members, size), self.dtype(self.kept))

    @property
    def kept(self) -> list[Any]:
        """What is kept of observations, as fields of a record."""
        seen: tuple[Any, ...] = (np.uint16,) if self.one_hot else (self.of_inputs, (self.inputs,))
        return [("seen", *seen), ("reached", *seen)]

    def dtype(self, observations: list[Any]) -> np.dtype:
        """A record that keeps observations so."""
        action = (np.int32,) if self.outputs is None else (np.float32, (self.outputs,))
        fields = [*observations, ("actions", *action)]
        fields += [(name, np.float32) for name in ("rewards", "going_on", "valid")] + [("ended", np.bool_)]
        return np.dtype(fields, align=True)

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return self.members * self.size * self.dtype(self.kept).itemsize

    def add(
        self, seen: Any, actions: Any, rewards: Any, reached: Any, going_on: Any, valid: Any, ended: Any = False
    ) -> None:
        """Keep one step of all copies, in place of the oldest; copies are ordered member by member."""
        members = len(self.records)
        copies = len(seen) // members
        new = self.records[:, self.next : self.next + copies]
        self.put(new, seen, reached)
        new["actions"] = actions.reshape(new["actions"].shape)
        for name, given in {"rewards": rewards, "going_on": going_on, "valid": valid, "ended": ended}.items():
            new[name] = np.reshape(given, (members, copies)) if np.ndim(given) else given
        self.next = (self.next + copies) % self.size
        self.filled = min(self.size, self.filled + copies)

    def put(self, new: np.ndarray, seen: Any, reached: Any) -> None:
        """Keep one step's observations in its new records."""
        if self.one_hot:
            seen, reached = seen.argmax(1), reached.argmax(1)
        new["seen"], new["reached"] = (given.reshape(new["seen"].shape) for given in (seen, reached))

    def at(self, members: slice, places: np.ndarray) -> np.ndarray:
        """The records of some members at these places, (members, …)."""
        own = self.records[members]
        first = np.arange(len(own)).reshape(-1, *[1] * (places.ndim - 1)) * self.size
        return own.reshape(-1).take(first + places)

    def sample(self, members: slice, places: np.ndarray) -> dict[str, Tensor]:
        """The transitions of some members at these places, (members, batch, …)."""
        return self.tensors(self.at(members, places))

    def tensors(self, found: np.ndarray, numbers: bool = False) -> dict[str, Tensor]:
        """Records as what networks learn from; one-hot observations as their numbers, if these are wanted."""
        names = ("seen", "reached", "actions", "rewards", "going_on", "valid")
        batch = {name: torch.from_numpy(np.ascontiguousarray(found[name])) for name in names}
        if numbers:
            return batch
        return batch | {name: self._observations(batch[name]) for name in ("seen", "reached")}

    def _observations(self, kept: Tensor) -> Tensor:
        if self.one_hot:
            return functional.one_hot(kept.long(), self.inputs).float()
        return as_float(kept)
