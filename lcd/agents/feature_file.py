"""The features of a rollout in a file, where memory is not to hold them: written step by step, read by mapping."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lcd.agents.frozen import FrozenFrontend
from lcd.agents.phase_store import FULL
from lcd.envs.errors import InputError
from lcd.files.atomic import make_folder
from lcd.process.limits import readable_size


class FeatureFile:
    """What front-ends made of one rollout of all seeds, in a file without a name: it goes when the process does.

    A mapping that is written to would kill the process on a full disk, so the room is taken before the first step, and
    every step is written plainly.

    Args:
        folder: on whose disk; None: where temporary files lie.
        length: steps of a rollout.
    """

    def __init__(self, folder: Path | None, length: int):
        self.folder, self.length = folder, length
        self._file: Any = None
        self._steps = 0

    def begin(self) -> FeatureFile:
        """Another rollout takes the place of the last."""
        self._steps = 0
        return self

    def append(self, features: Tensor) -> None:
        """Take in one step, (seeds, copies, …)."""
        given = features.cpu().contiguous().numpy()
        if self._file is None:
            self._open(given)
        each = given[0].nbytes
        for seed, part in enumerate(given):
            data, at = memoryview(part).cast("B"), (seed * self.length + self._steps) * each
            while data:
                written = os.pwrite(self._file.fileno(), data, at)
                data, at = data[written:], at + written
        self._steps += 1

    def stacked(self) -> Tensor:
        """The whole rollout, (seeds, time, copies, …)."""
        return self._rollout

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return 0 if self._file is None else os.fstat(self._file.fileno()).st_size

    def _open(self, first: np.ndarray) -> None:
        if self.folder is not None:
            make_folder(self.folder)
        shape = (len(first), self.length, *first.shape[1:])
        size = first.nbytes * self.length
        self._file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 (it is open as long as this is)
        try:
            os.posix_fallocate(self._file.fileno(), 0, size)
        except OSError as error:
            self._file.close()
            self._file = None
            if error.errno in FULL:
                raise InputError(
                    f"The features of a rollout need {readable_size(size)} in {self.folder or tempfile.gettempdir()}, "
                    "where there is less room: make room, and the same command continues; or give "
                    "frontend.keep=observations."
                ) from None
            raise
        self._rollout = torch.from_numpy(np.memmap(self._file, first.dtype, "r+", shape=shape))


def keeper(frontend: FrozenFrontend, length: int, last: FeatureFile | None) -> FeatureFile | list[Tensor]:
    """Where a rollout's inputs go, step by step: a list, or a file, which is that of the last rollout."""
    if not frontend.in_file:
        return []
    return FeatureFile(frontend.folder, length) if last is None else last.begin()
