"""`lcd diagnose`: train the runs that a study still lacks, then diagnose its tasks and report."""

import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from lcd.config import budgets
from lcd.config.budgets import choices
from lcd.config.compose import compose
from lcd.config.schemas import DiagnoseConfig
from lcd.consoles import console_for_tables
from lcd.envs.errors import InputError, Unfinished
from lcd.envs.gym_names import WITH
from lcd.files import outputs
from lcd.files.slugs import slug
from lcd.pipelines.kinds.kind import Job, trainings
from lcd.pipelines.publish.report import FILES, PRODUCT, parts_of, publish
from lcd.pipelines.publish.telling import ReportOptions
from lcd.pipelines.publish.track import tracker_entry, usable
from lcd.pipelines.publish.view_pictures import take_pictures
from lcd.pipelines.study import adaptive, determinism, dry_run, dynamics, point_choices, runs, stopping, store
from lcd.pipelines.study.configs import RunConfig, canonical, task_name
from lcd.pipelines.study.extending import extended
from lcd.pipelines.study.point_choices import Chosen
from lcd.pipelines.study.training import check_trainable, opening, train_missing
from lcd.process import signals
from lcd.scores.hard import HardFrom


def run(cfg: DiagnoseConfig) -> int:
    """Make or continue the study that the config asks for; returns the exit code."""
    console = console_for_tables()
    chosen = adaptive.recommend(cfg)
    points = runs.choices_of(cfg, chosen, default_out(cfg))
    jobs = extended(default_out(cfg), runs.expand(cfg, chosen, points))
    check_trainable(cfg, jobs)
    if cfg.stopping.name == "auto":
        stopping.check(cfg)
    report = partial(finish, run_configs=trainings(jobs), chosen=chosen, points=points)
    if cfg.dry_run:
        return dry_run.print_estimate(jobs, cfg, default_out(cfg), console, report)
    determinism.refuse_chance(store.missing(default_out(cfg), jobs), console, cfg.deadlines)
    study = store.Study(default_out(cfg), create=True)
    with signals.keeping("what is trained"), study.at_work():
        outputs.check(study.diagnosis_dir, PRODUCT, FILES)
        # Before anything is trained: what is killed is told, and goes on, as it was asked.
        study.note(definition=cfg.definition)
        point_choices.remember(study, points, _tasks_of_points(trainings(jobs)))
        if cfg.stopping.name == "auto":

            def expand(part: DiagnoseConfig) -> Sequence[Job]:
                return extended(study.path, runs.expand(part, chosen, points))

            def train(jobs: Sequence[Job]) -> bool:
                return _trained(jobs, cfg, study, console)

            trained = stopping.rounds(cfg, study, expand, train, console)
        else:
            trained = _trained(jobs, cfg, study, console)
        whole = report(cfg, study, console, whole=trained)
    return 0 if trained and whole else 1


def finish(
    cfg: DiagnoseConfig,
    study: store.Study,
    console: Console,
    run_configs: Sequence[RunConfig],
    chosen: adaptive.Recommended | None,
    points: Mapping[str, Chosen],
    whole: bool = True,
) -> bool:
    """What comes after training: pictures of the tasks, diagnosis and report; whether no run is left out of it.

    Args:
        run_configs: the study's.
        chosen: what an earlier study's diagnosis recommends.
        points: what was chosen of families, by task.
        whole: whether the whole study is trained; where it is not, it need not be possible to diagnose it.
    """
    take_pictures(study, run_configs)
    study.note(grid=runs.grid_of(cfg, run_configs), first=cfg.study.first)
    if chosen is not None:
        study.note(recommended=chosen)
    point_choices.remember(study, point_choices.weighed_again(study, points), _tasks_of_points(run_configs))
    how = ReportOptions(cfg.definition, HardFrom.parse("study.threshold", cfg.study.threshold), **parts_of(cfg))
    tracker = usable(tracker_entry(cfg.tracker))[0]
    try:
        return publish(study.path, study.diagnosis_dir, console, study=study, tracker=tracker, how=how)
    except InputError as impossible:
        if whole:
            raise
        raise Unfinished(f"What is trained of {study.path} cannot be diagnosed: {impossible}") from None


def _trained(jobs: Sequence[Job], cfg: DiagnoseConfig, study: store.Study, console: Console) -> bool:
    """Train what a study still lacks of some jobs; whether all of it went well.

    Args:
        jobs: those that are now wanted.
        cfg: the config that the study was asked for.
    """
    wanted = study.ask(request(cfg), jobs)
    console.print(opening(study, wanted), highlight=False, soft_wrap=True, markup=False)
    dynamics.compare(study, wanted, console, cfg.deadlines)
    return train_missing(cfg, study, wanted, console)


def _tasks_of_points(run_configs: Sequence[RunConfig]) -> set[str]:
    """What curves call the tasks of which points are trained."""
    return {task_name(config) for config in run_configs if "points" in config}


def request(cfg: DiagnoseConfig) -> dict[str, Any]:
    """What a study was asked for, without where and by what it is made."""
    asked = asdict(cfg)
    rounds = ("stopping", "definition") if cfg.stopping.name == "auto" else ()
    return {key: asked[key] for key in ("benchmark", "agent", "frontend", "study", "budget", *rounds)}


def default_out(cfg: DiagnoseConfig) -> Path:
    """The study's folder: `out`, else a name that the same request always gets and another one does not."""
    if cfg.out is not None:
        return Path(cfg.out).expanduser()
    budget = (
        "" if cfg.budget == budgets.default_budget(cfg.benchmark.name, choices(budgets.GROUP)) else f"-{cfg.budget}"
    )
    # Masks stand in the name, and may be long: the folder's name tells them by a few digits.
    benchmark, masks = cfg.benchmark.name.partition(WITH)[::2]
    plain = slug(f"{benchmark}-{cfg.study.name}{budget}")
    asked = request(cfg)
    if not masks and asked == _usual(cfg):
        return Path("studies") / plain
    return Path("studies") / f"{plain}-{hashlib.sha256(canonical(asked).encode()).hexdigest()[:6]}"


def _usual(cfg: DiagnoseConfig) -> dict[str, Any] | None:
    """What is asked for when a benchmark, a study and a budget are named and nothing else is said."""
    files = [file for file in choices("study") if file.rpartition("/")[2] == cfg.study.name]
    if not files:
        return None
    own = budgets.default_budget(cfg.benchmark.name, choices(budgets.GROUP))
    budget = [] if cfg.budget == own else [f"budget={cfg.budget}"]
    with contextlib.suppress(InputError):
        return request(compose("diagnose", [f"benchmark={cfg.benchmark.name}", f"study={files[0]}", *budget]))
    return None
