"""`--dry-run`: what a command would train, and what that costs by a probe of some seconds. It leaves nothing behind."""

from __future__ import annotations

import contextlib
import csv
import io
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from lcd.config.schemas import DiagnoseConfig, TrainConfig
from lcd.envs.errors import InputError, Unfinished
from lcd.pipelines.kinds.kind import Job, kind_of, trainings
from lcd.pipelines.kinds.pretrain import before_pretraining
from lcd.pipelines.kinds.train import promise
from lcd.pipelines.launch.launchers import calls_at_once
from lcd.pipelines.study import store
from lcd.pipelines.study.configs import RunConfig, condition, is_training, population
from lcd.pipelines.study.cost import HOUR, hours_text
from lcd.pipelines.study.evaluated import evaluated_by
from lcd.pipelines.study.members import members_of, trained_by
from lcd.pipelines.study.probe import PROBE_S, probe, protocol, trial_tracker

Finish = Callable[[Any, store.Study, Console], Any]
NARROW, WIDE = 1.5, 3.0
"""By what factor an hour may be off: where whole rollouts were timed, and where only scaled-down ones could be."""
REHEARSED_S = 1800.0
"""Studies that train longer than this are not reported on trial: beside that, a report takes no time."""


@dataclass(frozen=True)
class Forecast:
    """What training some jobs takes here, by a probe.

    Attributes:
        training_s: seconds from start to end, with so many workers at once.
        alone_s: seconds with one worker.
        exact: whether whole rollouts of all kinds of runs were timed.
        untimed: the kinds that there was no time for, taken to be as slow as the slowest.
        disk_bytes: what the runs leave.
    """

    training_s: float
    alone_s: float
    workers: int
    exact: bool
    untimed: tuple[str, ...]
    disk_bytes: float

    def time_text(self, around_s: float = 0.0) -> str:
        """The time with its bounds; `around_s` is what comes beside training."""
        return _time(self.training_s + around_s, self.exact and not self.untimed, self.workers)


def forecast(missing: Sequence[Job], cfg: DiagnoseConfig | TrainConfig) -> Forecast:
    """Train a little of each kind of the jobs, and say what all of them take."""
    paces, workers = probe(missing, cfg), workers_of(cfg, missing)
    return Forecast(
        paces.seconds(missing, workers),
        paces.seconds(missing, 1),
        workers,
        paces.exact,
        tuple(kind_of(config).label(config) for config in paces.lacking(missing)),
        sum(paces.of(job.config).size(job.config) for job in missing),
    )


def print_estimate(
    jobs: Sequence[Job],
    cfg: DiagnoseConfig | TrainConfig,
    out: Path,
    console: Console,
    finish: Finish | None = None,
) -> int:
    """Print what doing these jobs in `out` would cost; returns the exit code.

    Args:
        finish: what the command does when all is trained; None is nothing that takes time.
    """
    missing = store.missing(out, jobs, cfg.retry)
    table = Table(box=box.SIMPLE_HEAD, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    trained = trainings(missing)
    steps = sum(config["steps"] * population(config) for config in trained)
    seeds = sorted({len(config["seeds"]) for config in trained})
    done = f" ({len(jobs) - len(missing)} more are done)" if len(missing) < len(jobs) else ""
    before = [job.label for job in missing if not is_training(job.config)]
    table.add_row("study", str(out))
    table.add_row("runs", f"{len(missing)}{done}")
    if before:
        table.add_row("of them", "; ".join(before))
    untimed: Sequence[str] = ()
    if missing:
        console.print(_what_is_probed(missing, workers_of(cfg, missing)), highlight=False, soft_wrap=True)
        found = forecast(missing, cfg)
        untimed = found.untimed
        around = time.process_time()
        if finish is not None and found.training_s < REHEARSED_S:
            console.print("Timing the report of invented curves …", highlight=False)
            around += _report_s(jobs, cfg, finish)
        table.add_row("seeds a run", " or ".join(map(str, seeds)))
        table.add_row("steps", f"{steps:,} of all seeds together")
        table.add_row("time", found.time_text(around))
        alone = hours_text(found.alone_s / HOUR)
        table.add_row("of it", f"{hours_text(found.training_s / HOUR)} is training; {alone} with one worker")
        # It imports what trains.
        from lcd.pipelines.study.gpu_needs import gpu_sentence

        if sentence := gpu_sentence(map(before_pretraining, trained)):
            table.add_row("on a GPU", sentence)
        table.add_row("disk", f"{_bytes(found.disk_bytes)}, without what a tracker keeps and the report's few MB")
    console.print(table)
    if untimed:
        told = f"Not timed, as others took long, and taken to be as slow as the slowest: {'; '.join(untimed)}."
        console.print(told, highlight=False, soft_wrap=True, markup=False)
    for note in _notes(cfg, missing):
        console.print(note, highlight=False, soft_wrap=True, markup=False)
    return 0


def _what_is_probed(missing: Sequence[Job], workers: int) -> str:
    kinds = len({protocol(before_pretraining(job.config)) for job in missing})
    what = f"{kinds} kinds of runs, a little of each" if kinds > 1 else "a little of a run"
    return (
        f"Probing how fast this machine is: {workers} worker{'s' * (workers > 1)} at {what} (about {PROBE_S:.0f} s and "
        "what imports take; minutes where the machine is busy, or episodes or networks are long) …"
    )


def workers_of(cfg: DiagnoseConfig | TrainConfig, missing: Sequence[Job]) -> int:
    """How many runs will be trained at the same time."""
    return calls_at_once(cfg.launcher.workers, cfg.launcher.threads * cfg.devices, len(missing))


def _time(seconds: float, exact: bool, workers: int) -> str:
    factor = NARROW if exact else WIDE
    least, expected, most = (hours_text(seconds * times / HOUR) for times in (1 / factor, 1, factor))
    return f"about {expected} with {workers} worker{'s' * (workers > 1)} here (likely {least} to {most})"


def _report_s(jobs: Sequence[Job], cfg: DiagnoseConfig | TrainConfig, finish: Finish) -> float:
    """What pictures, diagnosis and report will take: they are made on trial, of invented curves."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="lcd-dry-run-") as folder:
        study = store.Study(Path(folder) / "study", create=True)
        for run in study.ask({}, jobs):
            if is_training(run.config):
                _write_made_up_curve(run.path, run.config)
        # Invented curves may be ones that nothing can be said of.
        with contextlib.suppress(InputError, Unfinished):
            finish(replace(cfg, tracker=trial_tracker(cfg)), study, Console(file=io.StringIO()))
    return time.perf_counter() - began


def _write_made_up_curve(folder: Path, config: RunConfig) -> None:
    """Give a run a curve as long as its own will be."""
    from lcd.curves.table import COLUMNS

    draws, promised = random.Random(0), promise(config)
    shared = condition(config) | {"episodes": 1, "return_std": 0, "length_mean": 1, "wall_s": 0}
    shared |= {"r_min": 0, "r_max": 1}
    with (folder / "curve.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for member, step, each in product(members_of(config), promised.steps, evaluated_by(config)):
            told = {"task": each.task, "context": member.point if each.trained else each.context, "step": step}
            told |= {"trained_on": trained_by(config, member), "seed": member.seed}
            for split in promised.splits if each.trained else promised.splits[:1]:
                writer.writerow(shared | told | {"split": split, "return_mean": draws.random()})
    store.finish(folder)


def _notes(cfg: Any, missing: Sequence[Job]) -> list[str]:
    notes = []
    if missing:
        notes.append(
            "Times are this machine's as busy as it is now; learning may make episodes, and so evaluations, longer."
        )
    if getattr(getattr(cfg, "stopping", None), "name", "none") == "auto":
        notes.append("This is the most it can be: stopping=auto ends tasks sooner.")
    if cfg.launcher.name != "local":
        notes.append(f"The probe ran here, not where launcher={cfg.launcher.name} trains.")
    return notes


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.0f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
