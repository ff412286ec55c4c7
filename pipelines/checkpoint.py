"""A run's checkpoint: data only, written beside the last good one, and what a start finds of it."""

import contextlib
import logging
import os
import warnings
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins import TorchCheckpointIO

from lcd.envs.errors import InputError
from lcd.pipelines.store import Run

STEP = "lcd_step"
"""The checkpoint's key for the environment steps of a seed; Lightning's own count is of optimiser steps."""
WORLD = "lcd_processes"
"""The checkpoint's key for the number of processes that train the run."""
PARTS = {STEP, "state_dict", "optimizer_states", "loops", "callbacks", "pytorch-lightning_version"}
"""What a checkpoint must hold to be continued."""

logger = logging.getLogger(__name__)


class AtomicCheckpoints(TorchCheckpointIO):
    """Writes a checkpoint beside the last good one and then takes its place."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        partial = Path(f"{path}.partial")
        try:
            # Lightning's own way makes a copy in memory first, which for a large checkpoint may not be there.
            with partial.open("wb") as file:
                torch.save(checkpoint, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
        except BaseException:
            # What is half written would take the room that whatever else must be written needs.
            with contextlib.suppress(OSError):
                partial.unlink()
            raise
        _sync(partial.parent)


def _sync(folder: Path) -> None:
    """See a renamed file onto the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def reached_step(checkpoint: Path, world: int) -> int | None:
    """The step of a run's checkpoint, None without one that can be read.

    world: the processes that train the run; those that began it must have been as many.
    """
    try:
        content = torch.load(checkpoint, map_location="cpu", weights_only=True, mmap=True)
        if set(content) >= PARTS:
            _refuse_other_number(checkpoint, content.get(WORLD, 1), world)
            return int(content[STEP])
        error: Exception = KeyError(*PARTS - set(content))
    except FileNotFoundError:
        return None
    except InputError:
        raise
    except Exception as unreadable:
        error = unreadable
    warnings.warn(f"{checkpoint.name} of run {checkpoint.parts[-3]} is unreadable: training it anew.", stacklevel=2)
    logger.debug("unreadable checkpoint", exc_info=error)
    return None


def drop_without_curve(checkpoint: Path, run: Run, world: int) -> None:
    """Delete the checkpoint of a run whose curve has lost rows: going on would never bring them back."""
    reached = reached_step(checkpoint, world)
    if reached is not None and (wrong := run.broken_promise(reached)):
        warnings.warn(f"The curve of run {run.path.name} {wrong}: training it anew.", stacklevel=2)
        checkpoint.unlink(missing_ok=True)


def _refuse_other_number(checkpoint: Path, before: int, now: int) -> None:
    if before != now:
        processes = f"{before} processes" if before > 1 else "one process"
        raise InputError(
            f"Run {checkpoint.parts[-3]} was begun by {processes} (devices x num_nodes), and each keeps its own "
            f"environments: go on with devices={before}, not {now}, or give another folder with out=."
        )
