"""What a pretraining leaves behind while it trains: its curve, its pictures, its tables, its checkpoint, its status."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor, nn

from lcd.agents.finite import require_finite, require_finite_agent
from lcd.files.atomic import write_atomic
from lcd.files.spreadsheets import csv_text
from lcd.pipelines.jobs.checkpoint import CURVE, STEP
from lcd.pipelines.jobs.record import CurveFile, Timekeeper
from lcd.pipelines.jobs.videos import Pairs
from lcd.pipelines.publish.flow_pictures import save_sheet
from lcd.pipelines.publish.track import Tracker
from lcd.pipelines.study.store import update_status
from lcd.process import signals
from lcd.process.deadlines import beat

COLUMNS = (
    *("task", "frontend", "seed", "split", "stage", "step", "wall_s"),
    *("pairs", "loss", "static_loss", "speed", "outside"),
)
"""Of a pretraining's curve: `loss` beside that of knowing nothing (no flow, or one guess for all pixels), mean length
of what moves in pixels, and the part of the pixels that are lost (their flow leaves the frame by more than a pixel, or
they are not found again)."""
Table = Callable[[nn.Module], pd.DataFrame]
"""A measurement: from a front-end (with `maps(observations)`) to a table."""


class PretrainRecorder(Timekeeper):
    """Measures at the start, every so many batches and at the end; keeps curve, pictures, checkpoint and status.

    Args:
        pairs: the training data.
        held_out: pairs of each task.
        every: batches between two measurements.
        row: the columns that all rows share.
        folder: the run's.
        tracker: mirrors what a checkpoint holds.
        tables: measurements of the front-end by name; each is kept as `<name>.csv`.
    """

    def __init__(
        self,
        pairs: Pairs,
        held_out: Mapping[str, Tensor],
        every: int,
        row: Mapping[str, Any],
        folder: Path,
        tracker: Tracker,
        tables: Mapping[str, Table],
    ):
        self.pairs, self.held_out, self.every, self.row = pairs, held_out, every, dict(row)
        self.folder, self.tracker, self.tables = folder, tracker, tables
        self.curve = CurveFile(folder / "curve.csv", COLUMNS)
        self.pending: list[dict[str, Any]] = []

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        super().on_train_start(trainer, module)
        # A checkpoint is loaded after on_fit_start, so only here is it known whether the run starts or goes on.
        self._first = self.pairs.iteration
        update_status(self.folder, device=module.device.type)
        if self._first == 0:
            self._record(module)

    def on_train_batch_end(self, trainer: Trainer, module: LightningModule, *_: Any) -> None:
        beat()
        step = self.pairs.iteration
        last = step >= self.pairs.total
        stop = signals.stop_requested()
        measured, kept = last or step % self.every == 0, last or stop or self.save_due
        if measured or kept:
            require_finite_agent(module, [self.row["seed"]], step)
        if measured:
            self._record(module)
        if kept:
            self.save(trainer, self.folder / "checkpoints" / "last.ckpt")
            mirror(self.tracker, self.pending, self.folder, self.tables)
            self.pending = []
        if self.report_due or last:
            rate = (step - self._first) / max(time.perf_counter() - self._started, 1e-9)
            self.tell(partial(update_status, self.folder), step=step, steps_per_s=rate, wall_s=self.wall_s)
        if stop and not last:
            raise signals.Stopped

    def _record(self, module: Any) -> None:
        """One measurement's rows, tables and pictures; training goes on as if there had been none."""
        step, training = self.pairs.iteration, module.training
        moment = self.row | {"step": step, "wall_s": round(self.wall_s, 3)}
        rows = []
        if (loss := module.training_loss()) is not None:
            rows.append(moment | {"task": "all", "split": "train", "loss": loss})
        module.eval()
        try:
            found = {task: module.measure(pairs) for task, pairs in self.held_out.items()}
            rows += [moment | {"task": task, "split": "eval"} | columns for task, columns in found.items()]
            require_finite("a loss", np.array([row["loss"] for row in rows]), [self.row["seed"]], step)
            with torch.no_grad():
                shown = torch.cat([pairs[:, :1] for pairs in self.held_out.values()], 1)
                seen = module.see(shown.to(module.device))
                save_sheet(
                    picture(self.folder, step), list(self.held_out), seen, module.heads, f"after {step:,} batches"
                )
                beat()
                for name, table in self.tables.items():
                    keep_table(self.folder / f"{name}.csv", step, table(module.frontend))
        finally:
            module.train(training)
        self.curve.append(rows)
        self.pending += rows

    def on_save_checkpoint(self, trainer: Trainer, module: LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint[STEP] = self.pairs.iteration
        checkpoint[CURVE] = self.curve.digest


def picture(folder: Path, step: int) -> Path:
    """Where the picture of a step is."""
    return folder / "pictures" / f"step-{step:06d}.png"


def keep_table(path: Path, step: int, table: pd.DataFrame) -> None:
    """Add a step's table to a file, in place of an earlier one of that step or a later one."""
    table = table.assign(step=step)
    if path.exists():
        earlier = pd.read_csv(path)
        table = pd.concat([earlier[earlier.step < step], table], ignore_index=True)
    write_atomic(path, csv_text(table))


def mirror(tracker: Tracker, rows: list[dict[str, Any]], folder: Path, tables: Mapping[str, Table]) -> None:
    """Send the pictures and tables of rows' steps, and the rows."""
    for step in sorted({int(row["step"]) for row in rows}):
        if picture(folder, step).exists():
            tracker.log_pictures(step, {"what it sees": picture(folder, step)})
        for name in tables:
            path = folder / f"{name}.csv"
            if path.exists() and not (found := pd.read_csv(path).query("step == @step")).empty:
                tracker.log_table(step, name, found)
    tracker.log_rows(rows)
