"""What agents remember of stacks of frames: each frame as it came in, once a step, and no longer with every stack."""

from __future__ import annotations

from typing import Any

import numpy as np

from lcd.agents.replay import Replay


class FrameReplay(Replay):
    """A `Replay` of images whose channels are an episode's last frames, the newest last.

    Of a transition it keeps the newest frame of what was seen and of what was reached; what it is asked for, stacks
    again, is made of these. Where an episode begins, all frames of the stack are the first one.

    Args:
        members: how many there are.
        size: places of each.
        inputs: numbers of an observation.
        stacked: how many frames it is.
        copies: environment copies of each member.
    """

    def __init__(self, members: int, size: int, inputs: int, stacked: int, copies: int):
        self.stacked, self.copies, self.pixels = stacked, copies, inputs // stacked
        # Of the oldest transitions the frames before are needed, too.
        self.rows = size // copies + stacked - 1
        self.added = 0
        super().__init__(members, size, inputs, np.uint8)
        self.frames = np.zeros((members, self.rows * copies, self.pixels), np.uint8)
        self.age = np.zeros(members * copies, np.uint8)
        """How many frames before its newest one a copy's stack has of its episode."""

    @property
    def kept(self) -> list[Any]:
        """What is kept of observations: where the newest frame seen lies, how many came before, and the one reached."""
        return [("frame", np.int64), ("age", np.uint8), ("newest", np.uint8, (self.pixels,))]

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return super().nbytes + self.members * self.rows * self.copies * self.pixels

    def put(self, new: np.ndarray, seen: Any, reached: Any) -> None:
        """Keep the newest frames of one step's observations."""
        seen, reached = (given.reshape(len(seen), self.pixels, self.stacked) for given in (seen, reached))
        begun = (seen[..., :-1] == seen[..., -1:]).all((1, 2))
        self.age = np.where(begun, 0, np.minimum(self.age + 1, self.stacked - 1)).astype(np.uint8)
        places = self.added % self.rows * self.copies + np.arange(self.copies)
        self.added += 1
        self.frames[:, places] = seen[..., -1].reshape(len(new), self.copies, self.pixels)
        new["frame"], new["age"] = places, self.age.reshape(new["age"].shape)
        new["newest"] = reached[..., -1].reshape(new["newest"].shape)

    def at(self, members: slice, places: np.ndarray) -> np.ndarray:
        """The records of some members at these places, (members, …), with whole observations."""
        kept = super().at(members, places)
        found = np.empty(kept.shape, self.dtype(super().kept))
        for name in found.dtype.names or ():
            if name not in ("seen", "reached"):
                found[name] = kept[name]
        before = np.minimum(np.arange(self.stacked)[::-1], kept["age"][..., None]).astype(np.int64)
        own = self.frames[members]
        count = self.rows * self.copies
        first = np.arange(len(own)).reshape(-1, *[1] * places.ndim) * count
        frames = own.reshape(-1, self.pixels)[first + (kept["frame"][..., None] - before * self.copies) % count]
        stacks = np.concatenate([frames, kept["newest"][..., None, :]], axis=-2).swapaxes(-1, -2)
        found["seen"], found["reached"] = (
            part.reshape(*kept.shape, self.inputs) for part in (stacks[..., :-1], stacks[..., 1:])
        )
        return found
