"""Training one run: all seeds of one condition, from its configuration to its held-out curve."""

import os
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightning.pytorch import LightningModule
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lcd.agents import agents, validate
from lcd.agents.evaluate import EveryTask
from lcd.agents.learner import Learner, spaces_for
from lcd.agents.ranks import ALONE, Ranks
from lcd.agents.rollout import Rollouts
from lcd.config.schemas import TrainConfig
from lcd.consoles import console_for_tables
from lcd.curves.names import evaluated_name
from lcd.curves.table import COLUMNS
from lcd.envs.errors import InputError
from lcd.files.atomic import make_folder
from lcd.pipelines.jobs.build import (
    build_agent,
    build_environments,
    build_evaluators,
    build_rollouts,
    measured_besides,
    shared_columns,
)
from lcd.pipelines.jobs.checkpoint import drop_without_curve, kept_curve, reached_step
from lcd.pipelines.jobs.films import Films
from lcd.pipelines.jobs.fitting import fit
from lcd.pipelines.jobs.learn import learn_run
from lcd.pipelines.jobs.ranks import PATIENCE, MeetingPlace, join_ranks, node_rank
from lcd.pipelines.jobs.record import CurveFile, Recorder
from lcd.pipelines.jobs.scalar_file import ScalarFile, ScalarLog
from lcd.pipelines.jobs.taking_over import take_over
from lcd.pipelines.kinds.kind import TRAIN_FILE, Job
from lcd.pipelines.kinds.train import label
from lcd.pipelines.launch.launchers import launch
from lcd.pipelines.launch.order import Call
from lcd.pipelines.publish.track import open_tracker
from lcd.pipelines.study import determinism, dry_run
from lcd.pipelines.study.attempts import device_of
from lcd.pipelines.study.configs import Device, RunConfig, TrackerEntry, agent_of, run_id, task_name
from lcd.pipelines.study.devices import check_share
from lcd.pipelines.study.point_choices import remember
from lcd.pipelines.study.runs import choices_of_run, run_config_from
from lcd.pipelines.study.store import RUNNING, Run, Study, default_folder, finish, missing, read_status, update_status
from lcd.pipelines.study.training import check_trainable, opening, train_missing
from lcd.process import signals
from lcd.statistics.intervals import iqm

POINTS_TOLD = 20
"""Points of a family whose returns a terminal shows one by one."""


def run(cfg: TrainConfig) -> int:
    """`lcd train`: one run, in a study of its own unless `out` names another; returns the exit code."""
    console = console_for_tables()
    run_config = run_config_from(cfg)
    job = Job(run_config)
    check_trainable(cfg, [job])
    if cfg.num_nodes > 1 and node_rank() > 0:
        return _join_in(cfg, run_config, console)
    folder = _folder(cfg, run_config)
    if cfg.dry_run:
        return dry_run.print_estimate([job], cfg, folder, console)
    determinism.refuse_chance(missing(folder, [job]), console, cfg.deadlines)
    study = Study(folder, create=True)
    with signals.keeping("what is trained"), study.at_work():
        (made,) = study.ask({"train": run_config}, [job])
        remember(study, choices_of_run(cfg), {task_name(run_config)} if "points" in run_config else ())
        console.print(opening(study, [made]), highlight=False, soft_wrap=True, markup=False)
        if not made.done and not train_missing(cfg, study, [made], console):
            return 1
    console.print(_summary(run_config, made.path), highlight=False)
    for name, file in {"curve": "curve.csv", "checkpoint": "checkpoints/last.ckpt"}.items():
        console.print(f"{name:<10} {made.path / file}", highlight=False, soft_wrap=True, markup=False)
    return 0


def _folder(cfg: TrainConfig, run_config: RunConfig) -> Path:
    return Path(cfg.out or default_folder(f"train-{run_config['task']}", run_config))


def _join_in(cfg: TrainConfig, run_config: RunConfig, console: Console) -> int:
    """Train beside the first machine, whose the study is; returns the exit code."""
    folder = _folder(cfg, run_config) / "runs" / run_id(run_config)
    if Run(run_config, folder).done:
        return 0
    console.print(f"Training {folder} beside the first machine.", highlight=False, soft_wrap=True, markup=False)
    call = Call((run_config, str(folder), {"name": "none"}, device_of(cfg)))
    # While the first machine evaluates the others wait; it is the one that notices what hangs.
    longest = int(PATIENCE.total_seconds())
    deadlines = replace(cfg.deadlines, start=longest, heartbeat=longest)
    knobs: dict[str, Any] = {"threads": cfg.launcher.threads, "grace": cfg.launcher.grace, "deadlines": deadlines}
    (outcome,) = launch("local", f"{__name__}:train_run", [call], workers=1, **knobs)
    if outcome.stopped:
        raise signals.Stopped
    if outcome.error:
        console.print(f"This machine's part failed: {outcome.error}", highlight=False, soft_wrap=True, markup=False)
    return int(outcome.error is not None)


def _summary(run_config: RunConfig, folder: Path) -> Table:
    """The held-out return of each seed, and the seeds' interquartile mean, before and after training."""
    curve = pd.read_csv(folder / "curve.csv")
    curve = curve[~curve["trained_on"].isin(list(Run(run_config, folder).lost))]
    held_out = curve[curve.split == "eval"]
    table = Table(
        "seed",
        "first return",
        "last return",
        "random",
        "best",
        title=Text(label(run_config)),
        title_justify="left",
        box=None,
    )
    held_out = held_out.assign(context=held_out["context"].astype(object).fillna(""))
    if "points" in run_config:
        _add_points(table, held_out)
        return table
    groups = held_out.groupby(["task", "context"], sort=False)
    for key, of_task in groups:
        names, ends = _ends(of_task)
        # A quarter of three seeds, rounded down, is none: nothing is cut off.
        pooled = "IQM" if len(names) > 3 else "IQM (of so few: the mean)"
        for name, numbers in zip([*names, pooled], [*ends.T, iqm(ends)], strict=True):
            whose = f"{evaluated_name(*key)}, {name}" if len(groups) > 1 else name
            _add(table, whose, numbers, bold=name == pooled)
    return table


def _add_points(table: Table, held_out: pd.DataFrame) -> None:
    """A row for each of the first points, the seeds' interquartile mean, and one for all points together."""
    # What points reach in further contexts and on other tasks is too much for a terminal.
    own = [evaluated_name(*names) for names in zip(held_out["task"], held_out["context"], strict=True)]
    groups = held_out[held_out["trained_on"] == own].groupby("trained_on", sort=False)
    found = {str(name): _ends(of_point)[1] for name, of_point in groups}
    for name, ends in list(found.items())[:POINTS_TOLD]:
        _add(table, name, iqm(ends))
    _add(table, f"all {len(found)} points", iqm(np.concatenate(list(found.values()), axis=1)), bold=True)


def _ends(of_task: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """The seeds, and their first and last returns with their range, (4, seeds)."""
    seeds = of_task.groupby("seed", sort=False)
    ends = [seeds.return_mean.first(), seeds.return_mean.last(), seeds.r_min.first(), seeds.r_max.first()]
    return [*map(str, seeds.groups)], np.stack(ends)


def _add(table: Table, whose: str, numbers: np.ndarray, bold: bool = False) -> None:
    table.add_row(whose, *("–" if np.isnan(x) else f"{x:.3g}" for x in numbers), style="bold" if bold else None)


def train_run(run_config: RunConfig, run_dir: str | Path, tracker: TrackerEntry, device: Device) -> None:
    """Train one run to its end, from its checkpoint if it has one.

    Args:
        run_config: the condition, the protocol and the seeds: what the run's id is the hash of.
        run_dir: the run's folder in its study.
        tracker: the tracker's configuration.
        device: where, and by how many processes.
    """
    name, params = agent_of(run_config)
    kind = agents.resolve(name)
    check_share(name, params, device)
    if isinstance(kind, type) and issubclass(kind, Learner):
        _learn(run_config, Path(run_dir), kind, validate(name, params), tracker)
        return
    run = Run(run_config, Path(run_dir))
    if device.num_nodes == 1 or node_rank() == 0:
        take_over(run, kind, device.processes)
        drop_without_curve(run.path / "checkpoints" / "last.ckpt", run, device.processes)
    arguments = (run_config, run_dir, tracker, device)
    with join_ranks(f"{__name__}:train_rank", arguments, device, str(run_dir)) as (ranks, place):
        train_rank(*arguments, ranks, place)


def train_rank(
    run_config: RunConfig,
    run_dir: str | Path,
    tracker: TrackerEntry,
    device: Device,
    ranks: Ranks = ALONE,
    place: MeetingPlace | None = None,
) -> None:
    """What each of the processes that train a run does: it collects with its share of the copies, and learns from all.

    The first one alone evaluates and writes.
    """
    name, params = agent_of(run_config)
    folder = Path(place.folder if place and place.folder else run_dir)
    kind, copies = agents.resolve(name), validate(name, params).copies
    training, held_out = build_environments(run_config, copies // ranks.world, ranks.rank == 0)
    training = [spaces_for(kind, env) for env in training]
    held_out = {split: [spaces_for(kind, env) for env in envs] for split, envs in held_out.items()}
    try:
        agent = build_agent(run_config, training[0], ranks, folder)
        rollouts = build_rollouts(run_config, training, agent)
        evaluators = build_evaluators(run_config, held_out)
        _fit(run_config, folder, agent, rollouts, evaluators, tracker, device.accelerator, place)
    finally:
        for env in (*training, *chain.from_iterable(held_out.values())):
            env.close()


def _learn(run_config: RunConfig, folder: Path, kind: type, config: Any, tracker: TrackerEntry) -> None:
    """Let an agent that trains itself do so."""
    if "curriculum" in run_config:
        name = run_config["agent"]["name"]
        raise InputError(f"agent={name} learns one task: a curriculum needs agent=ppo or agent=recurrent_ppo.")
    learn_run(run_config, folder, kind, config, tracker)


def _fit(
    run_config: RunConfig,
    folder: Path,
    agent: LightningModule,
    rollouts: Rollouts,
    evaluators: dict[str, EveryTask],
    tracker: TrackerEntry,
    accelerator: str,
    place: MeetingPlace | None,
) -> None:
    """Train from where the checkpoint stands, recording as it goes."""
    from lcd.pipelines.jobs import phases

    checkpoint = folder / "checkpoints" / "last.ckpt"
    make_folder(checkpoint.parent)
    reached = reached_step(checkpoint, rollouts.ranks.world)
    phases.prepare(agent, run_config, checkpoint, anew=reached is None)
    if rollouts.ranks.rank > 0:
        _follow(run_config, agent, rollouts, checkpoint, reached, accelerator, place)
        return
    curve = CurveFile(folder / "curve.csv", (*COLUMNS, *measured_besides(run_config)))
    earlier = curve.cut(-1) if reached is None else curve.cut(reached, kept_curve(checkpoint))
    scalars = ScalarFile(folder / TRAIN_FILE)
    told = scalars.keep(lambda row: reached is not None and int(row["step"]) <= reached)
    kept = {} if reached is None else read_status(folder)["diverged"]
    update_status(folder, state=RUNNING, step=reached or 0, steps=rollouts.steps, error=None, diverged=kept)
    tracked = open_tracker(tracker, folder, run_config, read_status(folder))
    films = Films(folder, tracked, run_config["evaluation"]["every"])
    films.mirror_kept()
    tracked.log(earlier, told)

    def mirror(rows: list[dict[str, Any]], told: list[dict[str, Any]]) -> None:
        films.mirror()
        tracked.log(rows, told)

    recorder = Recorder(
        rollouts,
        evaluators,
        run_config["evaluation"]["every"],
        shared_columns(run_config),
        curve,
        checkpoint,
        report=lambda **progress: update_status(folder, **progress),
        mirror=mirror,
        scalars=ScalarLog(run_config, scalars),
        play=films.play,
    )
    if reached is None or reached < rollouts.steps:
        fit(agent, rollouts, recorder, tracked.logger, accelerator, None if reached is None else checkpoint, place)
    phases.clear(checkpoint)
    tracked.finish({"steps": rollouts.steps, "wall_s": read_status(folder)["wall_s"]})
    finish(folder, step=rollouts.steps)


def _follow(
    run_config: RunConfig,
    agent: LightningModule,
    rollouts: Rollouts,
    checkpoint: Path,
    reached: int | None,
    accelerator: str,
    place: MeetingPlace | None,
) -> None:
    """Train beside the first rank, which writes everything."""
    every = run_config["evaluation"]["every"]
    recorder = Recorder(rollouts, {}, every, {}, CurveFile(Path(os.devnull)), checkpoint, dict, lambda *rows: None)
    if reached is None or reached < rollouts.steps:
        fit(agent, rollouts, recorder, False, accelerator, None if reached is None else checkpoint, place)
