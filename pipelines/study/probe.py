"""How fast this machine trains runs: a little of some of them, by as many workers at once as will train.

A worker imports everything before it looks at the clock, and the first run of every kind is only there to be warm
afterwards. What that took counts as the worker's start, which is paid once, and not as training.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from lcd.config.schema_parts import TrackerConfig
from lcd.config.schemas import DiagnoseConfig, TrainConfig
from lcd.envs.errors import InputError
from lcd.pipelines.kinds.kind import Job, kind_of
from lcd.pipelines.kinds.pretrain import before_pretraining
from lcd.pipelines.launch.launchers import calls_at_once, launch
from lcd.pipelines.launch.order import Call, Needs
from lcd.pipelines.publish.track import to_try, tracker_entry
from lcd.pipelines.study.configs import (
    Device,
    JobConfig,
    TrackerEntry,
    canonical,
    is_training,
    longest_first,
    population,
    run_id,
    task_name,
)
from lcd.pipelines.study.cost import units
from lcd.process.children import resolve

PROBE_S = 20.0
"""About how long a probe may take, without what workers need to start."""
PATIENCE = 6
"""How many times as long it may take, where that is needed to time whole rollouts, or all kinds of runs."""


@dataclass(frozen=True)
class Pace:
    """How fast a run is, in seconds and bytes, all its seeds together.

    Attributes:
        fixed_s: what every run takes, however long it is.
        exact: whether whole rollouts were timed, or scaled-down ones.
        unit_steps: how many steps of one seed a unit is.
    """

    fixed_s: float
    unit_s: float
    evaluation_s: float
    run_bytes: float
    evaluation_bytes: float
    exact: bool
    unit_steps: float = 1.0

    def seconds(self, config: JobConfig) -> float:
        """What a run takes."""
        return self.fixed_s + units(config) * self.unit_s + kind_of(config).evaluations(config) * self.evaluation_s

    def size(self, config: JobConfig) -> float:
        """What a run leaves on the disk."""
        return self.run_bytes + kind_of(config).evaluations(config) * self.evaluation_bytes


MEASURED = tuple(entry.name for entry in fields(Pace) if entry.name != "exact")


@dataclass(frozen=True)
class Paces:
    """What a probe found.

    Attributes:
        start_s: what a worker takes to start: processes, imports, whatever is slow only the first time.
        timed: what each timed run is like (`likeness`), and its pace.
    """

    start_s: float
    timed: Sequence[tuple[tuple[Any, ...], Pace]]

    @property
    def exact(self) -> bool:
        """Whether whole rollouts of all kinds were timed."""
        return all(pace.exact for _, pace in self.timed)

    def of(self, run_config: JobConfig) -> Pace:
        """A run's pace: the mean of the timed runs that are most like it."""
        mine = likeness(before_pretraining(run_config))
        for much in range(len(mine), 0, -1):
            if found := [pace for other, pace in self.timed if other[:much] == mine[:much]]:
                mean = {key: fmean(getattr(pace, key) for pace in found) for key in MEASURED}
                return Pace(**mean, exact=all(pace.exact for pace in found))
        # A rollout of one kind may be as long as thousands of another's: what they have in common is the step.
        steps = kind_of(run_config).unit_steps(run_config)
        alike = [replace(pace, unit_s=pace.unit_s * steps / pace.unit_steps, exact=False) for _, pace in self.timed]
        return replace(max(alike, key=lambda pace: pace.seconds(run_config)), unit_steps=steps)

    def lacking(self, jobs: Sequence[Job]) -> list[JobConfig]:
        """One of each kind of runs that there was no time for: they are taken to be as slow as the slowest."""
        known = {mine[0] for mine, _ in self.timed}
        configs = {protocol(config): config for config in (before_pretraining(job.config) for job in jobs)}
        return [config for name, config in configs.items() if name not in known]

    def seconds(self, jobs: Sequence[Job], workers: int) -> float:
        """What the jobs take from start to end with so many workers."""
        free = [self.start_s] * workers
        ended: dict[str, float] = {}
        left = {job.id: job for job in sorted(jobs, key=lambda job: longest_first(job.config))}
        while left:
            # The launcher gives the jobs out in this order, each to whoever is free, once it waits for none.
            job = next(job for job in left.values() if not set(job.after) & set(left))
            worker = free.index(min(free))
            begun = max(free[worker], *(ended.get(name, 0.0) for name in job.after), 0.0)
            free[worker] = ended[job.id] = begun + self.of(job.config).seconds(job.config)
            del left[job.id]
        return max(free)


def protocol(config: JobConfig) -> str:
    """Runs of one protocol train the same networks in the same way."""
    chosen = ("kind", "agent", "frontend", "evaluation", "shaping", "videos", "batch")
    given: Mapping[str, object] = config
    return canonical({key: given[key] for key in chosen if key in given} | {"seeds": population(config)})


def likeness(config: JobConfig) -> tuple[str, ...]:
    """What makes runs equally fast, from what matters most on."""
    return (protocol(config), config["view"], task_name(config)) if is_training(config) else (protocol(config),)


def spread(run_configs: Sequence[JobConfig]) -> list[JobConfig]:
    """Some of the runs, those first that tell most: of every kind one, of every view one, of every task one."""
    found: dict[str, JobConfig] = {}
    for much in (1, 2, 3):
        had = {likeness(config)[:much] for config in found.values()}
        # From both ends, because tasks often come in the order of their size.
        for config in run_configs if much != 2 else reversed(run_configs):
            if likeness(config)[:much] not in had:
                had.add(likeness(config)[:much])
                found[run_id(config)] = config
    return list(found.values())


def probe(jobs: Sequence[Job], cfg: DiagnoseConfig | TrainConfig) -> Paces:
    """Time a little of every kind of job, in workers like those that will train, all at once."""
    devices = getattr(cfg, "devices", 1)
    workers = calls_at_once(cfg.launcher.workers, cfg.launcher.threads * devices, len(jobs))
    configs = [before_pretraining(job.config) for job in jobs]
    kinds, ordered = len({protocol(config) for config in configs}), spread(configs)
    how = (tracker_entry(trial_tracker(cfg)), Device(cfg.device, devices), PROBE_S)
    with tempfile.TemporaryDirectory(prefix="lcd-dry-run-") as place:
        folders = [Path(place) / str(number) for number in range(workers)]
        calls = []
        for number, folder in enumerate(folders):
            # Where there are fewer runs to tell apart than workers, some time the same one.
            mine = [
                dict(ordered[place % len(ordered)]) for place in range(number, max(len(ordered), number + 1), workers)
            ]
            needed = max(1, len(range(number, kinds, workers)))
            folder.mkdir()
            call = Call((mine, needed, str(folder), *how, time.time()), folder / "log.txt")
            calls.append(replace(call, needs=Needs(cores=cfg.launcher.threads * devices)))
        outcomes = launch(
            "local",
            "lcd.pipelines.study.probe:time_runs",
            calls,
            workers=workers,
            threads=cfg.launcher.threads,
            deadlines=cfg.deadlines,
        )
        if errors := [outcome.error for outcome in outcomes if outcome.error is not None]:
            raise InputError(f"The probe failed ({errors[0]}), and so would the runs: mend that first.")
        found = [json.loads((folder / "paces.json").read_text()) for folder in folders]
    timed = [
        (likeness(ordered[(number + workers * index) % len(ordered)]), Pace(**pace))
        for number, (_, paces) in enumerate(found)
        for index, pace in paces
    ]
    return Paces(fmean(start for start, _ in found), timed)


def trial_tracker(cfg: DiagnoseConfig | TrainConfig) -> TrackerConfig:
    """The config's tracker, whose work takes time too, but which tells nobody of what is only tried."""
    return TrackerConfig(**to_try(tracker_entry(cfg.tracker)))


def time_runs(
    run_configs: Sequence[JobConfig],
    needed: int,
    folder: str,
    tracker: TrackerEntry,
    device: Device,
    allowed: float,
    launched: float,
) -> None:
    """What a probing worker does: what it took to start and the paces of runs, as JSON into the folder.

    Args:
        needed: how many runs must be timed; the others are timed while there is time.
        allowed: seconds for all of them.
        launched: when the worker was.
    """
    for work in {kind_of(config).work for config in run_configs}:
        resolve(work)
    start_s = time.time() - launched
    clock = _Clock(Path(folder), tracker, device)
    paces: list[tuple[int, Pace]] = []
    known: dict[str, Pace] = {}
    began = time.perf_counter()
    for number, config in enumerate(run_configs):
        left = allowed - (time.perf_counter() - began)
        if (number >= needed and left < allowed / 10) or (paces and left < allowed * (1 - PATIENCE)):
            break
        if (name := protocol(config)) not in known:
            warm_s, known[name] = _roughly(config, clock, allowed / needed)
            start_s += warm_s
        rough = known[name]
        if (count := _affordable(config, rough, (allowed / needed if number < needed else left) / 2)) > 0:
            known[name] = clock.time(config, count)
        elif paces and rough in [pace for _, pace in paces]:
            continue
        known[name] = replace(known[name], unit_steps=kind_of(config).unit_steps(config))
        paces.append((number, known[name]))
    (Path(folder) / "paces.json").write_text(json.dumps([start_s, [(number, vars(pace)) for number, pace in paces]]))


def _roughly(config: JobConfig, clock: _Clock, allowed: float) -> tuple[float, Pace]:
    """Seconds that are lost only the first time, and the pace as a scaled-down run tells it."""
    small, scale = kind_of(config).scaled_down(config)
    began = time.perf_counter()
    first = second = clock.time(small, 1)
    # What is so slow is not waited for again: beside it, what is lost the first time is nothing.
    if time.perf_counter() - began < allowed:
        second = clock.time(small, 1)
    pace = Pace(
        second.fixed_s * scale.once,
        second.unit_s * scale.unit,
        second.evaluation_s * scale.evaluation,
        second.run_bytes * scale.size,
        second.evaluation_bytes * scale.size,
        exact=False,
    )
    lost = [2 * pace.unit_s + 3 * pace.evaluation_s + pace.fixed_s for pace in (first, second)]
    return max(lost[0] - lost[1], 0.0), pace


def _affordable(config: JobConfig, pace: Pace, seconds: float) -> int:
    """How many whole rollouts between two evaluations can be timed: at best as many as there will be; 0: none."""
    given: Mapping[str, Any] = config
    every = given["evaluation"]["every"] // kind_of(config).unit_steps(config)
    count = min(max(2, every), max(2, units(config) - 1))
    left = seconds - 3 * pace.evaluation_s - pace.fixed_s
    affordable = int(left / max(pace.unit_s, 1e-9)) - 1
    if min(count, affordable) >= 2:
        return min(count, affordable)
    needed = 3 * (pace.unit_s + pace.evaluation_s)
    return 2 if needed <= PATIENCE * 2 * seconds else 0


@dataclass
class _Clock:
    """Trains short runs in a folder and takes the time."""

    folder: Path
    tracker: TrackerEntry
    device: Device
    count: int = 0

    def time(self, config: JobConfig, count: int) -> Pace:
        """Train `count` rollouts and one more, with an evaluation before, between and after them."""
        kind = kind_of(config)
        self.count += 1
        # A tracker takes the folder above for the study's.
        folder = self.folder / "runs" / str(self.count)
        folder.mkdir(parents=True)
        started = time.perf_counter()
        resolve(kind.work)(kind.shortened(config, count + 1, count), folder, self.tracker, self.device)
        return _pace(folder, time.perf_counter() - started, count)


def _pace(folder: Path, total: float, count: int) -> Pace:
    """The pace that a short run's curve tells, with what it left on the disk."""
    import pandas as pd

    curve = folder / "curve.csv"
    rows = pd.read_csv(curve)
    members = ["trained_on", "seed"] if "trained_on" in rows else ["seed"]
    ends = rows[rows["split"] != "train"].groupby([*members, "step"])["wall_s"].max().unstack(members)
    # Members that are trained together are evaluated at the same times; others one after the other.
    ends = ends.T.drop_duplicates().to_numpy()
    first, last = ends[:, 1] - ends[:, 0], ends[:, -1] - ends[:, -2]
    unit, evaluation = float(((first - last) / max(count - 1, 1)).sum()), float(ends[0, 0]) * len(ends)
    if count == 1:
        unit = float(last.sum()) - evaluation
    unit = max(unit, 1e-3)
    evaluation = max(float(first.sum()) - count * unit, 0.0)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and "wandb" not in file.parts)
    of_curve = curve.stat().st_size
    return Pace(
        max(total - (count + 1) * unit - 3 * evaluation, 0.0),
        unit,
        evaluation,
        size - of_curve,
        of_curve / 3,
        exact=True,
    )
