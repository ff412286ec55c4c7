"""`lcd diagnose`: train the runs that a study still lacks, then diagnose its tasks and report."""

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from lcd.config import compose
from lcd.pipelines import adaptive, dry_run, runs, stopping, store
from lcd.pipelines.launch import Call, Outcome, launch
from lcd.pipelines.parts import asked_for
from lcd.pipelines.pictures import take_pictures
from lcd.pipelines.progress import Progress, label
from lcd.pipelines.report import Telling, publish
from lcd.schemas import DiagnoseConfig, TrainConfig

TRAIN = "lcd.pipelines.train:train_run"
LOG_FILE = "log.txt"


def run(cfg: DiagnoseConfig) -> int:
    """Make or continue the study that the config asks for; returns the exit code."""
    return _run(cfg)


def ablate(cfg: DiagnoseConfig) -> int:
    """`lcd ablate`: as `run`, with what the ablation tells said first; returns the exit code."""
    return _run(cfg, first=cfg.study.name)


def _run(cfg: DiagnoseConfig, first: str | None = None) -> int:
    console = Console()
    run_configs = runs.expand(cfg)
    if cfg.stopping.name == "auto":
        stopping.check(cfg)
    if cfg.dry_run:
        return dry_run.tell(run_configs, cfg, default_out(cfg), console)
    study = store.Study(default_out(cfg), create=True)
    with study.lock():
        if cfg.stopping.name == "auto":
            tasks = list(dict.fromkeys(config["task"] for config in run_configs))
            trained = stopping.rounds(cfg, study, tasks, lambda part: _trained(part, cfg, study, console), console)
        else:
            trained = _trained(cfg, cfg, study, console)
        if not trained:
            return 1
        take_pictures(study, study.runs())
        if (chosen := adaptive.recommend(cfg)) is not None:
            study.note(recommended=chosen)
        publish(
            study.path,
            study.diagnosis_dir,
            console,
            study=study,
            tracker=asdict(cfg.tracker),
            how=Telling(definition=cfg.definition, threshold=cfg.study.threshold, first=first),
        )
    return 0


def _trained(part: DiagnoseConfig, cfg: DiagnoseConfig, study: store.Study, console: Console) -> bool:
    """Train what a part of the study still lacks; whether all of it went well.

    part: the config with the seeds and tasks that are now wanted.
    cfg: the config that the study was asked for.
    """
    wanted = study.ask(request(cfg), runs.expand(part))
    console.print(opening(study, wanted), highlight=False, soft_wrap=True, markup=False)
    return not any(outcome.error for outcome in train_missing(cfg, study, wanted, console))


def request(cfg: DiagnoseConfig) -> dict[str, Any]:
    """What a study was asked for, without where and by what it is made."""
    asked = asdict(cfg)
    rounds = ("stopping", "definition") if cfg.stopping.name == "auto" else ()
    parts = {key: asked[key] for key in ("benchmark", "agent", "frontend", "study", *rounds)}
    return parts | {"study": asked_for(parts["study"])}


def default_out(cfg: DiagnoseConfig) -> Path:
    """The study's folder: `out`, else a name that the same request always gets and another one does not."""
    if cfg.out is not None:
        return Path(cfg.out).expanduser()
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in f"{cfg.benchmark.name}-{cfg.study.name}")
    usual = request(compose("diagnose", [f"study={cfg.study.name}"])) if cfg.study.name in _studies() else None
    asked = request(cfg)
    if usual is not None and asked == usual | {"benchmark": asked["benchmark"]}:
        return Path("studies") / plain
    return Path("studies") / f"{plain}-{hashlib.sha256(store.canonical(asked).encode()).hexdigest()[:6]}"


def _studies() -> list[str]:
    from lcd.config import choices

    return choices("study")


def train_missing(
    cfg: DiagnoseConfig | TrainConfig, study: store.Study, wanted: list[store.Run], console: Console
) -> list[Outcome]:
    """Train the wanted runs that are not done, those that need most steps first, and tell which failed.

    A stopped command leaves them queued.
    """
    missing = [each for each in wanted if not each.done]
    if missing and cfg.tracker.name == "wandb" and find_spec("wandb") is None:
        console.print("W&B is not installed (pip install wandb): the study is not mirrored.", highlight=False)
    for each in missing:
        each.update(state=store.QUEUED, error=None)
    device, tracker = {"accelerator": cfg.device}, asdict(cfg.tracker)
    order = sorted(missing, key=lambda each: -each.config["steps"] * len(each.config["seeds"]))
    calls = [Call((TRAIN, each.config, str(each.path), tracker, device), log=each.path / LOG_FILE) for each in order]
    with Progress(wanted, console) as progress, _requeued(missing):
        outcomes = launch(
            cfg.launcher.name,
            "lcd.pipelines.runs:perform",
            calls,
            watch=progress.update,
            workers=cfg.launcher.workers,
            threads=cfg.launcher.threads,
        )
    for each, outcome in zip(order, outcomes, strict=True):
        if outcome.error is not None:
            # A worker that was killed could not say so itself.
            each.update(state=store.FAILED, error=outcome.error)
    if failed := [outcome for outcome in outcomes if outcome.error]:
        console.print(failure(study, failed, len(wanted)), highlight=False, soft_wrap=True, markup=False)
    return outcomes


@contextlib.contextmanager
def _requeued(missing: list[store.Run]) -> Iterator[None]:
    """Leave no run that says it is at work: a worker that was killed could not say otherwise."""
    try:
        yield
    finally:
        # On a full disk a status that is not true is better than an error that hides the first.
        with contextlib.suppress(OSError):
            for each in missing:
                if each.status["state"] == store.RUNNING:
                    each.update(state=store.QUEUED)


def opening(study: store.Study, wanted: list[store.Run]) -> str:
    """The sentence a command begins with."""
    done = sum(each.done for each in wanted)
    if done == len(wanted):
        return f"All {done} runs of the study {study.path} are done." if done > 1 else f"{study.path} is done."
    count = f"{len(wanted)} run{'s' * (len(wanted) > 1)}"
    begun = f"Continuing the study {study.path}: {done} of {count} done"
    training = begun if done else f"Training {count} into {study.path}"
    return f"{training}. Ctrl-C stops; the same command continues."


def failure(study: store.Study, failed: list[Outcome], total: int) -> str:
    """What failed, why, and what to do."""
    lines = [f"{len(failed)} of {total} runs failed:"]
    for outcome in failed:
        _, config, folder, *_ = outcome.call.arguments
        lines.append(f"  {label(config)}: {outcome.error} (see {Path(folder) / LOG_FILE})")
    lines.append(f"The same command tries them again; 'lcd report {study.path}' diagnoses the runs that are done.")
    return "\n".join(lines)
