"""A run's checkpoint: data only, written beside the last good one, and what a start finds of it."""

import errno
import logging
import stat
import warnings
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins import TorchCheckpointIO

from lcd.envs.errors import InputError
from lcd.files.atomic import disk_full_error, replacing
from lcd.pipelines.study.hands import require
from lcd.pipelines.study.store import Run

STEP = "lcd_step"
"""The checkpoint's key for the environment steps of a seed; Lightning's own count is of optimiser steps."""
WORLD = "lcd_processes"
"""The checkpoint's key for the number of processes that train the run."""
CURVE = "lcd_curve"
"""The checkpoint's key for the digest of the curve's rows up to its step."""
PARTS = {STEP, "state_dict", "optimizer_states", "loops", "callbacks", "pytorch-lightning_version"}
"""What a checkpoint must hold to be continued."""

logger = logging.getLogger(__name__)


class AtomicCheckpoints(TorchCheckpointIO):
    """Writes a checkpoint beside the last good one and then takes its place."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        # Lightning's own way makes a copy in memory first, which for a large checkpoint may not be there.
        save(checkpoint, path)


def save(content: dict[str, Any], path: str | Path) -> None:
    """Write a checkpoint that is there as a whole or not at all."""
    require(Path(path).parents[1])
    with replacing(path) as file:
        try:
            torch.save(content, file)
        except Exception as error:
            # Where a write fails torch closes its archive and complains of what it finds there, not of the disk.
            if (full := disk_full_error(error)) is not None:
                raise full from None
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            raise


def read_checkpoint(checkpoint: Path, world: int = 1) -> dict[str, Any] | None:
    """The content of a run's checkpoint, None without one that can be read.

    Args:
        checkpoint: the file.
        world: the processes that train the run; those that began it must have been as many.
    """
    try:
        if not stat.S_ISREG(checkpoint.stat().st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(checkpoint))
        content = torch.load(checkpoint, map_location="cpu", weights_only=True, mmap=True)
        if set(content) >= PARTS:
            _refuse_other_number(checkpoint, content.get(WORLD, 1), world)
            return content
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


def reached_step(checkpoint: Path, world: int) -> int | None:
    """The step of a run's checkpoint, None without one that can be read."""
    content = read_checkpoint(checkpoint, world)
    return None if content is None else int(content[STEP])


def kept_curve(checkpoint: Path) -> str | None:
    """The digest of the rows that belong to a checkpoint; None where it was not kept or cannot be read."""
    try:
        return torch.load(checkpoint, map_location="cpu", weights_only=True, mmap=True).get(CURVE)
    except Exception:  # whatever is wrong with a file, torch says it in its own way
        return None


def drop_without_curve(checkpoint: Path, run: Run, world: int) -> None:
    """Delete the checkpoint of a run whose curve has lost rows: going on would never bring them back."""
    reached = reached_step(checkpoint, world)
    if reached is not None and (wrong := run.broken_promise(reached - _owes_an_evaluation(checkpoint))):
        warnings.warn(f"Of run {run.path.name} the {wrong}: training it anew.", stacklevel=2)
        checkpoint.unlink(missing_ok=True)


def _owes_an_evaluation(checkpoint: Path) -> bool:
    """Whether the evaluation at the checkpoint's step is still to be made, which the next start does first."""
    content = torch.load(checkpoint, map_location="cpu", weights_only=True, mmap=True)
    states = content.get("callbacks", {}).values()
    return any(isinstance(state, dict) and bool(state.get("owed")) for state in states)


def _refuse_other_number(checkpoint: Path, before: int, now: int) -> None:
    if before != now:
        processes = f"{before} processes" if before > 1 else "one process"
        raise InputError(
            f"Run {checkpoint.parts[-3]} was begun by {processes} (devices x num_nodes), and each keeps its own "
            f"environments: go on with devices={before}, not {now}, or give another folder with out=."
        )
