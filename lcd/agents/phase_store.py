"""The rollouts of one phase of PPG: inputs, value targets, weights, in memory or in memory-mapped files.

Each rollout is kept as the networks' inputs came. An image whose three channels are the same bytes (a mask) is kept as
one channel and spread again when it is read, which changes nothing.

A rollout's file is written once, whole, before a checkpoint relies on it: beside a checkpoint a phase costs no more
than each of its rollouts once. Files are read by mapping, never written so: on a full disk a mapped write would kill
the process, where a plain one says what is wrong.
"""

import contextlib
import errno
import json
import os
import shutil
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lcd.envs.errors import InputError
from lcd.files.atomic import make_folder, replacing
from lcd.process.limits import readable_size

MEMORY_SHARE = 0.25
"""Of the memory that is free when training starts, what the stores of all runs at work may take together."""
TARGET_BYTES = 5  # a value target of single precision, and a weight
OUTPUT_BYTES = 4  # one of the policy's outputs, kept while the auxiliary phase clones them
PAGE = 4096
FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class StoreSize:
    """What a phase's rollouts take.

    Attributes:
        rollouts: iterations in a phase.
        length: steps of each copy in a rollout.
        copies: environment copies of each seed.
        seeds: number of seeds.
        shape: of one of the networks' inputs.
        itemsize: bytes of one of its numbers.
        outputs: the policy's outputs.
        mask: are its three channels the same bytes?
        runs: how many runs share the machine's memory.
    """

    rollouts: int
    length: int
    copies: int
    seeds: int
    shape: tuple[int, ...]
    itemsize: int = 1
    outputs: int = 1
    mask: bool = False
    runs: int = 1

    @property
    def bytes(self) -> int:
        """All of it: inputs, value targets, and the cloned policy's outputs."""
        numbers = int(np.prod(self.shape)) // (3 if self.mask else 1)
        each = numbers * self.itemsize + TARGET_BYTES + OUTPUT_BYTES * self.outputs
        return self.rollouts * self.length * self.copies * self.seeds * each

    @property
    def spilled(self) -> bool:
        """Is it more than its share of the memory that is free now?"""
        return self.bytes > MEMORY_SHARE * free_memory() / self.runs

    def sentence(self) -> str:
        """What a user is told before training starts."""
        seeds = f" of {self.seeds} seeds" if self.seeds > 1 else ""
        rollouts = f"{self.rollouts} rollout{'s' * (self.rollouts > 1)}"
        kept = "masks as one channel" if self.mask else "inputs as they are"
        memory = f"{MEMORY_SHARE:.0%} of the {readable_size(free_memory())} of free memory"
        memory += f", shared by {self.runs} runs" if self.runs > 1 else ""
        where = f"in files of the run's folder, for it is more than {memory}" if self.spilled else "in memory"
        return (
            f"PPG keeps {rollouts} of {self.copies} copies x {self.length} steps{seeds} for its "
            f"auxiliary phase, {kept}: {readable_size(self.bytes)}, {where}."
        )


def free_memory() -> int:
    """Bytes that a process may still take, by the machine and by its control group."""
    limits = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits.append(int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]) * 1024)
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limits.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    if not limits and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
    return max(min(limits, default=0), 0)


def is_mask(inputs: Tensor) -> int | None:
    """The axis, counted from the end, of three equal channels in images (seeds, time, copies, …); None without one."""
    if inputs.dtype != torch.uint8 or inputs.ndim < 6:
        return None
    for axis in (-3, -1):
        if inputs.shape[axis] == 3:
            one, two, three = inputs.unbind(axis)
            if torch.equal(one, two) and torch.equal(one, three):
                return axis
    return None


class Stored:
    """One rollout in the store: tensors (seeds, copies, time, …), and on which axis a mask was made one channel."""

    def __init__(self, parts: dict[str, Tensor], mask: int | None):
        self.parts, self.mask = parts, mask

    @classmethod
    def of(cls, inputs: Tensor, targets: Tensor, weights: Tensor) -> "Stored":
        """From tensors (seeds, time, copies, …) of any device."""
        mask = is_mask(inputs)
        if mask is not None:
            inputs = inputs.narrow(mask, 0, 1)
        parts = {"inputs": inputs, "targets": targets, "weights": weights.bool()}
        return cls({name: part.transpose(1, 2).contiguous().cpu() for name, part in parts.items()}, mask)

    def write(self, path: Path, iteration: int) -> None:
        """Into a file that is there as a whole or not at all."""
        layout: dict[str, Any] = {}
        content = []
        offset = 0
        for name, part in self.parts.items():
            data = part.numpy() if part.dtype != torch.bfloat16 else part.view(torch.int16).numpy()
            layout[name] = {"dtype": str(part.dtype).removeprefix("torch."), "shape": list(part.shape), "at": offset}
            content.append(memoryview(data).cast("B"))
            offset += -(-data.nbytes // PAGE) * PAGE
        check = 0
        for data in content:
            check = zlib.crc32(data, check)
        head = {"iteration": iteration, "mask": self.mask, "crc32": check, "parts": layout}
        try:
            with replacing(path) as file:
                file.write(json.dumps(head).encode().ljust(PAGE))
                for name, data in zip(layout, content, strict=True):
                    file.seek(PAGE + layout[name]["at"])
                    file.write(data)
        except OSError as error:
            if error.errno in FULL:
                raise not_enough_room(path.parent, sum(data.nbytes for data in content)) from None
            raise

    @classmethod
    def read(cls, path: Path, iteration: int, mapped: bool, checked: bool = True) -> "Stored":
        """From a file, `checked` to the last byte; `mapped` leaves it on the disk."""
        try:
            head = json.loads(path.open("rb").read(PAGE))
            data = np.memmap(path, np.uint8, "c", offset=PAGE) if mapped else np.fromfile(path, np.uint8, offset=PAGE)
            parts, check = {}, 0
            for name, part in head["parts"].items():
                dtype = getattr(torch, part["dtype"])
                size = int(np.prod(part["shape"])) * dtype.itemsize
                piece = data[part["at"] : part["at"] + size]
                check = zlib.crc32(piece.data, check) if checked else head["crc32"]
                parts[name] = torch.from_numpy(piece).view(dtype).view(part["shape"])
            good = check == head["crc32"] and head["iteration"] == iteration
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError):
            good = False
        if not good:
            raise InputError(
                f"{path}, which the run's checkpoint needs, is missing or damaged: put it back, or delete the folder "
                f"{path.parent.parent} to train the run anew."
            )
        return cls(parts, head["mask"])


class RolloutStore:
    """A phase's rollouts.

    Args:
        folder: where their files are; None keeps them in memory and in the checkpoint itself.
        spilled: leave them in their files rather than in memory.
    """

    def __init__(self, folder: Path | None = None, spilled: bool = False):
        self.folder: Any = folder
        self.spilled = spilled and folder is not None
        self.rollouts: dict[int, Stored] = {}
        self._relied_on: set[int] = set()

    def __len__(self) -> int:
        return len(self.rollouts)

    def add(self, iteration: int, inputs: Tensor, targets: Tensor, weights: Tensor) -> None:
        """Take in the rollout of an iteration, (seeds, time, copies, …)."""
        stored = Stored.of(inputs, targets, weights)
        if self.spilled:
            self._write(iteration, stored)
            stored = Stored.read(self._path(iteration), iteration, mapped=True, checked=False)
        self.rollouts[iteration] = stored

    def take(self, chosen: np.ndarray, device: torch.device) -> dict[str, Tensor]:
        """Whole rollouts of copies, each seed's own, (seeds, chosen x time, …).

        Args:
            chosen: numbers (seeds, chosen) that count the copies of the first rollout, then those of the second, …
            device: where to.
        """
        kept = list(self.rollouts.values())
        copies = kept[0].parts["targets"].shape[1]
        places = [[(kept[number // copies], number % copies) for number in row] for row in chosen.tolist()]
        batch = {"inputs": self._inputs(places, device)}
        for name in ("targets", "weights"):
            rows = [
                torch.stack([stored.parts[name][seed, copy] for stored, copy in row]) for seed, row in enumerate(places)
            ]
            batch[name] = torch.stack(rows).float().to(device)
        return {name: value.flatten(1, 2) for name, value in batch.items()}

    def _inputs(self, places: list[list[tuple[Stored, int]]], device: torch.device) -> Tensor:
        masks = {stored.mask for row in places for stored, _ in row}
        one = len(masks) == 1
        rows = []
        for seed, row in enumerate(places):
            pieces = [(stored.parts["inputs"][seed, copy], stored.mask) for stored, copy in row]
            rows.append(torch.stack([piece if one else spread(piece, mask) for piece, mask in pieces]))
        # What is one channel everywhere travels so, and is spread where it is used, without a copy.
        inputs = torch.stack(rows).to(device)
        return spread(inputs, masks.pop()) if one else inputs

    def clear(self) -> None:
        """Forget the phase; its files stay until no checkpoint needs them."""
        self.rollouts.clear()

    # Checkpoints

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps: the rollouts themselves, or, of those in files, their iterations."""
        if self.folder is None:
            return {"iterations": {i: {**kept.parts, "mask": kept.mask} for i, kept in self.rollouts.items()}}
        for iteration, stored in self.rollouts.items():
            if not self.spilled and iteration not in self._relied_on:
                self._write(iteration, stored)
        # The checkpoint before this one is whole, and is the last good one until this one is.
        needed = set(self.rollouts)
        self._drop(needed | self._relied_on)
        self._relied_on = needed
        return {"iterations": sorted(needed)}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.rollouts = {}
        if self.folder is None:
            for iteration, parts in state["iterations"].items():
                self.rollouts[iteration] = Stored({k: v for k, v in parts.items() if k != "mask"}, parts["mask"])
            return
        for iteration in state["iterations"]:
            self.rollouts[iteration] = Stored.read(self._path(iteration), iteration, self.spilled)
        self._relied_on = set(self.rollouts)

    def _path(self, iteration: int) -> Path:
        return self.folder / f"rollout-{iteration:08d}.bin"

    def _write(self, iteration: int, stored: Stored) -> None:
        make_folder(self.folder)
        stored.write(self._path(iteration), iteration)

    def _drop(self, needed: Iterable[int]) -> None:
        keep = {self._path(iteration).name for iteration in needed}
        for path in self.folder.glob("rollout-*"):
            if path.name not in keep:
                path.unlink(missing_ok=True)


def spread(inputs: Tensor, mask: int | None) -> Tensor:
    """One channel of a mask as three."""
    if mask is None:
        return inputs
    shape = list(inputs.shape)
    shape[mask] = 3
    return inputs.expand(shape)


def require_room(folder: Path, size: int) -> None:
    """Refuse to begin what the disk cannot hold."""
    while not folder.exists():
        folder = folder.parent
    if shutil.disk_usage(folder).free < size:
        raise not_enough_room(folder, size)


def not_enough_room(folder: Path, size: int) -> InputError:
    """The sentence about a disk without room for so many bytes."""
    free = shutil.disk_usage(folder).free
    return InputError(
        f"The rollouts of PPG need {readable_size(size)} in {folder}, where {readable_size(free)} are free: make room, "
        "and the same command continues; or give fewer agent.copies, a shorter agent.rollout or agent.phase."
    )
