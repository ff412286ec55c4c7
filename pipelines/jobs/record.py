"""What a run leaves behind while it trains: its curve, its checkpoint, its status, in an order that survives a kill.

At an evaluation the rows are appended and flushed first, then those of `train.csv`, then the checkpoint replaces the
last one, then the tracker gets the rows. A run killed in between continues from its checkpoint; rows beyond that are
cut off and come again, the same to the last bit. The checkpoint holds a digest of the rows before it, so that a run
does not go on from rows that it did not write. A run that is told to stop finishes its iteration, keeps a checkpoint
of it and stops. An evaluation is not finished: the checkpoint says that it is owed, and the next start makes it first.
What is not finite gets into neither: the run ends with what it has had before, or goes on without the points whose
members diverged.

Where several processes train the run, all of them bring their part of a checkpoint and the first one writes.
"""

import csv
import hashlib
import io
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lightning.pytorch import Callback, LightningModule, Trainer

from lcd.agents.finite import Lost, lost_of, require_finite_agent
from lcd.agents.rollout import Rollouts
from lcd.agents.scalars import crosses, scalars_of, spacing
from lcd.curves.table import COLUMNS
from lcd.envs.errors import InputError
from lcd.files.atomic import write_atomic
from lcd.files.reading import Unreadable, read_bytes
from lcd.pipelines.jobs.checkpoint import CURVE, STEP, WORLD
from lcd.pipelines.jobs.scalar_file import ScalarLog
from lcd.pipelines.study.hands import require
from lcd.pipelines.study.lease import run_folder
from lcd.process import signals

STATUS_EVERY_S, STATUS_WITHIN_S = 0.5, 60.0
"""Least and longest time between two statuses."""
STATUS_SHARE = 0.01
"""Largest share of a run's time that goes into writing statuses: a thousand workers' are too many for a file server."""
CHECKPOINT_EVERY_S = 5.0
"""Least time between two checkpoints."""
CHECKPOINT_SHARE = 0.05
"""Largest share of a run's time that goes into writing checkpoints, where that takes long."""


class CurveFile:
    """A run's `curve.csv`: appended row by row, cut back to a checkpoint's step.

    Args:
        path: the file; made with its header when it is not there.
        columns: of its rows.
    """

    def __init__(self, path: Path, columns: Sequence[str] = COLUMNS):
        self.path, self.columns = path, columns
        self._hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        """The hash of the rows that stayed at the last cut and of those appended since."""
        return self._hash.hexdigest()

    def append(self, rows: list[dict[str, Any]]) -> None:
        """Add rows and see them onto the disk."""
        require(self.path.parent)
        text = self._text(rows)
        with self.path.open("a", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self._hash.update(text.encode())

    def cut(self, step: int, digest: str | None = None) -> list[dict[str, str]]:
        """Drop whatever lies beyond `step`, a half-written last line too; returns the rows that stay.

        Args:
            digest: of the rows that must be there. If they are not, the file is left alone and an `InputError` says so.
        """
        try:
            rows = self._read(step)
            kept = self._text(rows)
        except (Unreadable, csv.Error, KeyError, TypeError, ValueError):
            raise self._not_ours() from None
        self.refuse_others(rows, digest)
        self._hash = hashlib.sha256(kept.encode())
        write_atomic(self.path, self._text([], header=True) + kept)
        return rows

    def refuse_others(self, rows: Sequence[Mapping[str, Any]], digest: str | None) -> None:
        """Refuse rows that are not those with a digest, if one was kept."""
        if digest not in (None, self.digest_of(rows)):
            raise self._not_ours()

    def digest_of(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """The hash of rows as they are written."""
        return hashlib.sha256(self._text(rows).encode()).hexdigest()

    def _read(self, step: int) -> list[dict[str, str]]:
        """The whole rows of the file up to a step; none are looked for before the first one."""
        if step < 0 or not os.path.lexists(self.path):
            return []
        text = read_bytes(self.path).decode()
        whole = text[: text.rfind("\n") + 1]
        return [row for row in csv.DictReader(io.StringIO(whole)) if int(row["step"]) <= step]

    def _not_ours(self) -> InputError:
        run = run_folder(self.path.parent)
        return InputError(
            f"{self.path.name} of run {run.name} is not what the run wrote before it was stopped: put "
            f"it back as it was, or move {run} away to train the run anew."
        )

    def _text(self, rows: Sequence[Mapping[str, Any]], header: bool = False) -> str:
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        if header:
            writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()


def believed(rows: list[dict[str, Any]], lost: Lost) -> list[dict[str, Any]]:
    """An evaluation's rows without those of points of which a member diverged; its returns may be what tells."""
    for split in dict.fromkeys(row["split"] for row in rows):
        of_split = [row for row in rows if row["split"] == split]
        wrong = {_member(row, lost) for row in of_split if not math.isfinite(row["return_mean"])}
        members = zip(lost.points.tolist(), lost.seeds, strict=True)
        finite = np.array([member not in wrong for member in members])
        lost.take(f"the mean return ({split})", finite, of_split[0]["step"])
    return [row for row in rows if row["trained_on"] not in lost.why]


def _member(row: Mapping[str, Any], lost: Lost) -> tuple[str, int]:
    return row["trained_on"] if row["trained_on"] in lost.points else "", row["seed"]


class Timekeeper(Callback):
    """Knows how long a run has been trained, and when the next checkpoint is due."""

    trained_s = 0.0
    """Seconds that earlier starts of the run have taken."""
    _started = _saved = _reported = _save_took = _report_took = 0.0

    @property
    def wall_s(self) -> float:
        """Seconds that the run has taken so far, resumed parts included."""
        return self.trained_s + time.perf_counter() - self._started

    def on_fit_start(self, trainer: Trainer, module: LightningModule) -> None:
        self._started = self._saved = time.perf_counter()
        self._reported = 0.0

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        # By now Lightning has put a handler of its own around ours, which has several processes exchange something
        # there and then, where the others do not expect it. It puts ours back at the end.
        signals.handle_stop_signals()

    @property
    def save_due(self) -> bool:
        """Is it time for a checkpoint? The pause is long enough for the share of the time that may go into them."""
        pause = max(CHECKPOINT_EVERY_S, self._save_took * (1 / CHECKPOINT_SHARE - 1))
        return time.perf_counter() - self._saved >= pause

    def save(self, trainer: Trainer, checkpoint: Path) -> None:
        """Write the checkpoint, and note how long that takes."""
        begun = time.perf_counter()
        trainer.save_checkpoint(checkpoint, weights_only=False)
        self._saved = time.perf_counter()
        self._save_took = self._saved - begun

    @property
    def report_due(self) -> bool:
        """Is it time to tell the status? The pause is long enough for the share of the time that may go into that."""
        pause = min(max(STATUS_EVERY_S, self._report_took * (1 / STATUS_SHARE - 1)), STATUS_WITHIN_S)
        return time.perf_counter() - self._reported >= pause

    def tell(self, report: Callable[..., Any], **progress: Any) -> None:
        """Tell the status, and note how long that takes."""
        begun = time.perf_counter()
        report(**progress)
        self._reported = time.perf_counter()
        self._report_took = self._reported - begun

    def state_dict(self) -> dict[str, float]:
        """What a checkpoint keeps."""
        return {"wall_s": self.wall_s}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Continue from a checkpoint's state."""
        self.trained_s = state["wall_s"]


Play = Callable[[Mapping[str, Callable[[Any, int], list[dict[str, float]]]], Any, int], dict[str, Any]]


def _play(evaluators: Mapping[str, Callable[[Any, int], list[dict[str, float]]]], agent: Any, step: int) -> Any:
    return {split: evaluator(agent, step) for split, evaluator in evaluators.items()}


class Recorder(Timekeeper):
    """Evaluates at step 0, every so many steps and at the end, and keeps curve, checkpoint and status.

    Args:
        rollouts: the run's training data; it knows the step.
        evaluators: play the held-out copies; by the split that their rows get. Only the first of several processes
            plays.
        every: environment steps of a seed between two evaluations.
        shared: for each split, `train` too, the columns that all rows share, for each evaluated task and member.
        curve: the run's curve file.
        checkpoint: where the run's one checkpoint lives.
        report: called with the `device` once, with `step`, `steps_per_s` (of all seeds) and `wall_s` now and then.
        mirror: called with rows of the curve, and with those of `scalars`, once a checkpoint holds them.
        scalars: what the updates tell; of the first of several processes.
        play: how evaluators are played, if otherwise than one by one.
    """

    def __init__(
        self,
        rollouts: Rollouts,
        evaluators: Mapping[str, Callable[[Any, int], list[dict[str, float]]]],
        every: int,
        shared: Mapping[str, Sequence[Mapping[str, Any]]],
        curve: CurveFile,
        checkpoint: Path,
        report: Callable[..., Any],
        mirror: Callable[[list[dict[str, Any]], list[dict[str, Any]]], None],
        scalars: ScalarLog | None = None,
        play: Play | None = None,
    ):
        self.rollouts, self.evaluators, self.every, self.shared = rollouts, evaluators, every, shared
        self.curve, self.checkpoint, self.report, self.mirror = curve, checkpoint, report, mirror
        self.play = play or _play
        self.scalars, self.spacing = scalars, spacing(rollouts.steps)
        self.pending: list[dict[str, Any]] = []
        self.owed = False
        self.lost = lost_of(rollouts.agent, rollouts.seeds)
        self.ranks = rollouts.ranks
        self._first_step = rollouts.step

    def on_train_start(self, trainer: Trainer, agent: LightningModule) -> None:
        super().on_train_start(trainer, agent)
        # A checkpoint is loaded after on_fit_start, so only here is it known whether the run starts or goes on.
        self._first_step = self.rollouts.step
        if self.scalars is not None:
            self.scalars.begin(self._first_step)
        if self.ranks.rank == 0:
            self.report(device=agent.device.type, precision=str(trainer.precision))
        if self.owed and self.ranks.rank == 0:
            # An earlier start may have been killed after it had made up for it.
            self.curve.cut(self.rollouts.step - 1)
        if self.owed or self.rollouts.step == 0:
            self._record(trainer, agent)
            if self.owed:
                raise signals.Stopped

    def on_train_batch_end(self, trainer: Trainer, agent: LightningModule, *_: Any) -> None:
        rollouts = self.rollouts
        require_finite_agent(agent, rollouts.seeds, rollouts.step, trainer.optimizers)
        last = rollouts.iteration >= rollouts.total
        before = rollouts.step - rollouts.steps_each
        if last or rollouts.stage_ended or crosses(before, rollouts.step, self.spacing):
            self._tell(agent)
        if last or rollouts.stage_ended or crosses(before, rollouts.step, self.every):
            self._record(trainer, agent)
        due, stop = self._agreed(last or self.save_due, signals.stop_requested())
        if last and self.owed:
            # A run that stands at its end is not trained any further, and so it must not be kept there.
            raise signals.Stopped
        if due or stop:
            told = [] if self.scalars is None else self.scalars.write()
            self.save(trainer, self.checkpoint)
            self.mirror(self.pending, told)
            self.pending = []
        if self.ranks.rank == 0 and (self.report_due or last):
            steps = (rollouts.step - self._first_step) * len(rollouts.seeds)
            rate = steps / max(time.perf_counter() - self._started, 1e-9)
            self.tell(self.report, step=rollouts.step, steps_per_s=rate, wall_s=self.wall_s)
        if stop and not last:
            raise signals.Stopped

    def _tell(self, agent: LightningModule) -> None:
        """The scalars of the last iteration; all processes have their part of the episodes."""
        episodes = self.rollouts.episodes.look(self.ranks)
        if self.scalars is not None:
            moment = (self.rollouts.step, self.wall_s, self.rollouts.stage, agent.device)
            self.scalars.add(scalars_of(agent), episodes, *moment)

    def _agreed(self, due: bool, stop: bool) -> tuple[bool, bool]:
        """The first process decides whether a checkpoint is due; one that is told to stop stops all."""
        every = self.ranks.gather((due, stop))
        return every[0][0], any(asked for _, asked in every)

    def _record(self, trainer: Trainer, agent: LightningModule) -> None:
        """One evaluation's rows; it is owed if the first process was told to stop meanwhile."""
        step = self.rollouts.step
        found: dict[str, list[Any]] | None = {}
        try:
            if self.ranks.rank == 0:
                found = self.play(self.evaluators, agent, step)
        except signals.Stopped:
            found = None
        self.owed = self.ranks.gather(found is None)[0]
        if found is None or self.owed:
            return
        found["train"] = self.rollouts.episodes.pop(self.ranks)
        if self.ranks.rank > 0:
            return
        moment: dict[str, Any] = {"stage": self.rollouts.stage, "step": step, "wall_s": round(self.wall_s, 3)}
        shared = dict(self.shared)
        if self.rollouts.task is not None:
            shared["train"] = [row for row in shared["train"] if row["task"] == self.rollouts.task]
        rows = [
            {**row, "split": split, **moment, **statistics}
            for split, columns in found.items()
            for row, statistics in zip(shared[split], columns, strict=True)
            if statistics is not None
        ]
        rows = believed(rows, self.lost)
        if self.lost.why:
            self.report(diverged=dict(self.lost.why))
        self.curve.append(rows)
        self.pending += rows

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return super().state_dict() | {"owed": self.owed, "lost": dict(self.lost.why)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint's state."""
        super().load_state_dict(state)
        self.owed = state["owed"]
        self.lost.why |= state.get("lost", {})

    def on_save_checkpoint(self, trainer: Trainer, agent: LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint[STEP] = self.rollouts.step
        checkpoint[WORLD] = self.ranks.world
        checkpoint[CURVE] = self.curve.digest
