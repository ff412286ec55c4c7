"""Beginning a run with what the same run left that was asked for with fewer steps."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import cast

from lcd.agents.protocols import KnowsTheEnd
from lcd.envs.protocols import offers
from lcd.files.atomic import make_folder, sha256_of, write_atomic
from lcd.files.reading import Unreadable, read_bytes
from lcd.pipelines.jobs.checkpoint import read_checkpoint, save
from lcd.pipelines.kinds.kind import CURVE_FILE, TRAIN_FILE
from lcd.pipelines.study import store
from lcd.pipelines.study.configs import RunConfig, run_id
from lcd.pipelines.study.lease import run_folder
from lcd.pipelines.study.longer import why_anew

CHECKPOINT = "checkpoints/last.ckpt"


def take_over(run: store.Run, kind: type, world: int) -> None:
    """Give a run that has no checkpoint yet the curve and the checkpoint of the shorter one that its status tells of.

    Args:
        run: the run, with the folder that is written to.
        kind: the class of its agent.
        world: the processes that train it.
    """
    steps = run.status["continues"]
    if not 0 < steps < run.config["steps"] or (run.path / CHECKPOINT).exists():
        return
    config = cast(RunConfig, {**run.config, "steps": steps})
    shorter = store.Run(config, run_folder(run.path).parent / run_id(config))
    if why_anew(cast(RunConfig, run.config), steps) or (offers(kind, KnowsTheEnd) and kind.knows_the_end):
        return
    try:
        _copy(shorter, run.path, world)
    except (Unreadable, OSError, LookupError, TypeError) as why:
        warnings.warn(f"Run {shorter.path.name} of {steps:,} steps cannot be gone on from ({why}).", stacklevel=2)


def _copy(shorter: store.Run, folder: Path, world: int) -> None:
    """Copy what a run left that is done: the checkpoint, which relies on the rest, comes last."""
    seal = shorter.status["seal"]
    if not shorter.whole or any(sha256_of(shorter.path / name) != seal[name] for name in (CURVE_FILE, CHECKPOINT)):
        raise Unreadable("it is not as it was when it was done")
    content = read_checkpoint(shorter.path / CHECKPOINT, world)
    if content is None:
        raise Unreadable("its checkpoint cannot be read")
    # Lightning would not ask for another rollout after the last one.
    content["loops"]["fit_loop"]["epoch_loop.batch_progress"]["is_last_batch"] = False
    for name in (CURVE_FILE, TRAIN_FILE):
        if name == CURVE_FILE or (shorter.path / name).is_file():
            write_atomic(folder / name, read_bytes(shorter.path / name))
    make_folder((folder / CHECKPOINT).parent)
    save(content, folder / CHECKPOINT)
