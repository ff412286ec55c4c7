"""`lcd pretrain`: film a benchmark's tasks, and pretrain a front-end on the videos."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lcd.config.schemas import PretrainConfig
from lcd.envs.benchmarks import Benchmark, get_benchmark
from lcd.envs.errors import InputError
from lcd.envs.protocols import moving_tasks_of
from lcd.files.atomic import remove_unfinished
from lcd.files.reading import Unreadable, read_bytes
from lcd.files.slugs import slug
from lcd.frontends.flow.config import FlowConfig
from lcd.frontends.flow.loss import LossConfig
from lcd.pipelines.jobs import players, videos
from lcd.pipelines.jobs.pretraining import WEIGHTS_FILE
from lcd.pipelines.publish.pretrained import publish
from lcd.pipelines.study import needs
from lcd.pipelines.study.configs import RunConfig, canonical, run_id
from lcd.pipelines.study.parts import check_names
from lcd.pipelines.study.sources import with_source
from lcd.pipelines.study.store import QUEUED, Run, Study
from lcd.pipelines.study.training import check_trainable, opening, train_missing

PRETRAIN = "lcd.pipelines.jobs.pretraining:pretrain_run"
FLOW = "flow"
ID_LENGTH = 12
ELSEWHERE = ("weights", "rgb", "seed", "keep", "memory_gb", "precision")
"""Knobs of the front-end that say how it is used, not what it is."""


def run(cfg: PretrainConfig) -> int:
    """Film what is not filmed yet, pretrain, and say where the front-end's file is; returns the exit code."""
    console = Console()
    benchmark = get_benchmark(cfg.benchmark.name)
    tasks = tasks_of(cfg, benchmark)
    trained = {} if cfg.policy == players.RANDOM else players.trained_runs(cfg.policy, tasks, cfg.view)
    run_config = run_config_from(cfg, tasks, trained)
    check_trainable(cfg, [])
    study = Study(cfg.out or default_out(run_config), create=True)
    with study.lock():
        (made,) = study.ask({"pretrain": run_config}, [run_config])
        console.print(opening(study, [made]), highlight=False, soft_wrap=True, markup=False)
        if made.done and not (made.path / WEIGHTS_FILE).is_file():
            made.update(state=QUEUED)
        if not made.done:
            record_missing_videos(study, benchmark, run_config, trained, console)
            if not train_missing(cfg, study, [made], console, train=PRETRAIN):
                return 1
        remove_unfinished(made.path)
        publish(made, console)
    return 0


def tasks_of(cfg: PretrainConfig, benchmark: Benchmark) -> list[str]:
    """The tasks that are filmed."""
    check_names("view", [cfg.view], benchmark.views, cfg.benchmark.name)
    tasks = list(moving_tasks_of(benchmark)) if cfg.tasks is None else cfg.tasks
    check_names("tasks", tasks, benchmark.tasks, cfg.benchmark.name)
    return tasks


def run_config_from(cfg: PretrainConfig, tasks: list[str], trained: Mapping[str, Run]) -> dict[str, Any]:
    """The run config of a pretraining: what its id is the hash of."""
    asked, filmed = cfg.pretraining, asdict(cfg.pretraining.videos)
    if asked.learning_rate <= 0:
        raise InputError(f"pretraining.learning_rate={asked.learning_rate} must be a number above 0.")
    if filmed["length"] <= filmed["gap"]:
        raise InputError(
            f"pretraining.videos.gap={filmed['gap']} must be less than pretraining.videos.length={filmed['length']}: "
            "both frames of a pair are of one video."
        )
    needs.check_videos(asked.videos, len(tasks), asked.batch, asked.iterations)
    of = {"benchmark": cfg.benchmark.name, "tasks": tasks, "view": cfg.view, "knobs": cfg.knobs, "seed": cfg.seed}
    of |= filmed | {"policy": {task: _player(run) for task, run in trained.items()} or players.RANDOM}
    # Which frames make a pair, and how many copies are filmed at once, are no part of what is asked for twice.
    folder = hashlib.sha256(canonical(of).encode()).hexdigest()[:ID_LENGTH]
    made = {
        "benchmark": cfg.benchmark.name,
        "task": f"videos of {cfg.benchmark.name}",
        "knobs": {},
        "view": cfg.view,
        "frontend": {"name": FLOW} | sizes_of(cfg),
        "reward_p": 1.0,
        "shaping": "none",
        "agent": {
            "name": "pretraining",
            "batch": asked.batch,
            "learning_rate": asked.learning_rate,
            "loss": asdict(LossConfig(**asdict(asked.loss))),
        },
        "seeds": [cfg.seed],
        "steps": asked.iterations,
        "evaluation": {"every": asked.every},
        "videos": of | {"folder": folder},
    }
    return with_source(made)


def sizes_of(cfg: PretrainConfig) -> dict[str, Any]:
    """The networks' sizes: those of `frontend.…`, else those of the settings, else the paper's."""
    given = dict(cfg.frontend)
    if (name := given.pop("name")) != FLOW:
        raise InputError(f"frontend={name} cannot be pretrained: give frontend={FLOW}.")
    if given.get("weights") is not None:
        raise InputError(f"frontend.weights={given['weights']}: pretraining makes a file of weights and takes none.")
    sizes = {key: value for key, value in given.items() if key not in ELSEWHERE}
    chosen = asdict(cfg.pretraining.sizes) | {key: value for key, value in sizes.items() if value is not None}
    return asdict(FlowConfig.from_dict(chosen))


def _player(run: Run) -> str:
    """A trained policy by its run and the content of its checkpoint."""
    try:
        content = read_bytes(run.path / "checkpoints" / "last.ckpt")
    except Unreadable:
        raise InputError(f"policy: the run {run.path} has no checkpoint: train it first.") from None
    return f"{run.path.name}-{hashlib.sha256(content).hexdigest()[:ID_LENGTH]}"


def record_missing_videos(
    study: Study, benchmark: Benchmark, run_config: RunConfig, trained: Mapping[str, Run], console: Console
) -> None:
    """Record the videos that are not on the disk yet, with progress."""
    asked = run_config["videos"]

    def policy_for(task: str, env: Any) -> players.Policy:
        if task in trained:
            return players.load_policy(trained[task], env, asked["seed"])
        return players.RandomPolicy(env, asked["seed"])

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bars: dict[str, Any] = {}

        def watch(what: str, done: int, count: int) -> None:
            if what not in bars:
                bars[what] = progress.add_task(f"filming {what}", total=count)
            progress.update(bars[what], completed=done)

        place = study.path / "videos" / asked["folder"]
        found = videos.record_videos(place, benchmark, asked["tasks"], asked, policy_for, watch)
    count = sum(len(file) for files in found.values() for file in files.values())
    size = sum(file.index.bytes for files in found.values() for file in files.values())
    frames = sum(sum(file.index.lengths) for files in found.values() for file in files.values())
    told = f"{count:,} videos of {len(asked['tasks'])} tasks, {frames:,} frames, {size / 1e6:,.1f} MB: {place}"
    console.print(told, highlight=False, soft_wrap=True, markup=False)


def default_out(run_config: RunConfig) -> Path:
    """A folder that the same request always gets."""
    return Path("studies") / f"pretrain-flow-{slug(run_config['benchmark'])}-{run_id(run_config)[:6]}"
