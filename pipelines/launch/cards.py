"""The GPUs of this machine, and which of them a call gets."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lcd.pipelines.launch.order import Needs

VISIBLE = "CUDA_VISIBLE_DEVICES"
MEGABYTE = 1 << 20
PATIENCE_S = 20

Cards = tuple[str, ...]
"""The GPUs of one call, as `CUDA_VISIBLE_DEVICES` names them."""


@dataclass(frozen=True)
class Shelf:
    """The GPUs that may be used.

    Attributes:
        memory: what each has, in bytes; 0 where nobody knows.
        most: calls that share one of them at the most; 0: as many as it has memory for.
    """

    memory: Mapping[str, int] = field(default_factory=dict)
    most: int = 0

    def shared_by(self, together: int) -> int:
        """Into how many parts the memory of each is shared out, where so many calls are made at once."""
        each = -(-together // max(len(self.memory), 1))
        return max(1, min(each, self.most or each))

    def place(self, needs: Needs, at_work: Sequence[tuple[Needs, Cards]]) -> Cards | None:
        """The GPUs that a call gets beside those at work: the least busy ones; None where it has to wait.

        A call that takes none gets none, and on a machine without GPUs so does every call. One alone always gets some.
        """
        many = min(needs.gpus, len(self.memory))
        if not many:
            return ()
        busy = {card: [other for other, cards in at_work if card in cards] for card in self.memory}
        free = [card for card, beside in busy.items() if not beside or self._fits(card, [needs, *beside])]
        if len(free) < many:
            return None
        return tuple(sorted(free, key=lambda card: len(busy[card]))[:many])

    def _fits(self, card: str, every: Sequence[Needs]) -> bool:
        few = not self.most or len(every) <= self.most
        return few and (not self.memory[card] or sum(each.gpu_memory for each in every) <= self.memory[card])


def cards_here() -> dict[str, int]:
    """The GPUs that this process may use, by what `CUDA_VISIBLE_DEVICES` calls them, and their memory in bytes."""
    import torch

    if not torch.cuda.is_available():
        return {}
    chosen = os.environ.get(VISIBLE)
    names = [str(number) for number in range(torch.cuda.device_count())]
    if chosen is not None:
        names = [name.strip() for name in chosen.split(",")][: len(names)]
    known = _memory()
    return {name: known.get(name, 0) for name in names}


def _memory() -> dict[str, int]:
    """What the driver says of all GPUs: by their numbers and by their identifiers."""
    found: dict[str, int] = {}
    # To ask PyTorch would take memory of the first one.
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
        asked = ["nvidia-smi", "--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits"]
        told = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout
        for line in told.splitlines():
            number, identifier, megabytes = (part.strip() for part in line.split(","))
            found |= dict.fromkeys((number, identifier), int(megabytes) * MEGABYTE)
    return found
