"""`lcd diagnose`: train the runs that a study still lacks, then diagnose its tasks and report."""

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from lcd.config import budgets
from lcd.config.compose import choices, compose
from lcd.config.schemas import DiagnoseConfig, PretrainConfig, SweepConfig, TrainConfig
from lcd.envs.errors import InputError, Unfinished
from lcd.files import outputs
from lcd.pipelines.launch.launchers import Call, at_once, launch, launchers
from lcd.pipelines.publish.pictures import take_pictures
from lcd.pipelines.publish.report import FILES, PRODUCT, Telling, publish
from lcd.pipelines.publish.track import usable
from lcd.pipelines.study import adaptive, determinism, dry_run, dynamics, runs, sources, stopping, store
from lcd.pipelines.study.parts import asked_for
from lcd.pipelines.study.progress import Progress, label
from lcd.process.signals import Stopped

TRAIN = "lcd.pipelines.jobs.train:train_run"
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
    check_trainable(cfg, run_configs)
    if cfg.stopping.name == "auto":
        stopping.check(cfg)
    if cfg.dry_run:
        return dry_run.tell(run_configs, cfg, default_out(cfg), console)
    determinism.refuse_chance(store.missing(default_out(cfg), run_configs))
    study = store.Study(default_out(cfg), create=True)
    with study.lock():
        outputs.check(study.diagnosis_dir, PRODUCT, FILES)
        if cfg.stopping.name == "auto":
            tasks = list(dict.fromkeys(config["task"] for config in run_configs))
            trained = stopping.rounds(cfg, study, tasks, lambda part: _trained(part, cfg, study, console), console)
        else:
            trained = _trained(cfg, cfg, study, console)
        finish(cfg, study, console, first, trained)
    return 0 if trained else 1


def finish(
    cfg: DiagnoseConfig, study: store.Study, console: Console, first: str | None = None, whole: bool = True
) -> None:
    """What comes after training: pictures of the tasks, diagnosis and report.

    first: the key of the analysis that is told before all else.
    whole: whether the whole study is trained; where it is not, it need not be possible to diagnose it.
    """
    take_pictures(study, runs.expand(cfg))
    if (chosen := adaptive.recommend(cfg)) is not None:
        study.note(recommended=chosen)
    how = Telling(definition=cfg.definition, threshold=cfg.study.threshold, first=first)
    tracker = usable(asdict(cfg.tracker))[0]
    try:
        publish(study.path, study.diagnosis_dir, console, study=study, tracker=tracker, how=how)
    except InputError as impossible:
        if whole:
            raise
        raise Unfinished(f"What is trained of {study.path} cannot be diagnosed: {impossible}") from None


def _trained(part: DiagnoseConfig, cfg: DiagnoseConfig, study: store.Study, console: Console) -> bool:
    """Train what a part of the study still lacks; whether all of it went well.

    part: the config with the seeds and tasks that are now wanted.
    cfg: the config that the study was asked for.
    """
    wanted = study.ask(request(cfg), runs.expand(part))
    console.print(opening(study, wanted), highlight=False, soft_wrap=True, markup=False)
    dynamics.compare(study, wanted, console)
    return train_missing(cfg, study, wanted, console)


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
    budget = "" if cfg.budget == budgets.own(cfg.benchmark.name, choices(budgets.GROUP)) else f"-{cfg.budget}"
    name = f"{cfg.benchmark.name}-{cfg.study.name}{budget}"
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in name)
    asked = request(cfg)
    if asked == _usual(cfg):
        return Path("studies") / plain
    return Path("studies") / f"{plain}-{hashlib.sha256(store.canonical(asked).encode()).hexdigest()[:6]}"


def _usual(cfg: DiagnoseConfig) -> dict[str, Any] | None:
    """What is asked for when a benchmark, a study and a budget are named and nothing else is said."""
    if cfg.study.name not in choices("study"):
        return None
    with contextlib.suppress(InputError):
        return request(
            compose("diagnose", [f"benchmark={cfg.benchmark.name}", f"study={cfg.study.name}", f"budget={cfg.budget}"])
        )
    return None


def check_trainable(
    cfg: DiagnoseConfig | PretrainConfig | SweepConfig | TrainConfig, run_configs: Iterable[dict[str, Any]]
) -> None:
    """Refuse what would fail for every run, before anything is written."""
    launchers.resolve(cfg.launcher.name)
    # Another launcher's workers may be on machines that have other devices.
    if cfg.launcher.name == "local":
        runs.check_device(device_of(cfg))
    for config in run_configs:
        runs.check_share(*runs.agent_of(config), device_of(cfg))


def train_missing(
    cfg: DiagnoseConfig | SweepConfig | TrainConfig | PretrainConfig,
    study: store.Study,
    wanted: list[store.Run],
    console: Console,
    train: str | None = None,
) -> bool:
    """Train the wanted runs that are not done, those that need most steps first; whether all of them are now.

    It tells which failed and which diverged. A stopped command leaves them queued, and so does a worker that somebody
    else stopped.

    train: `module:function` with the arguments of `lcd.pipelines.jobs.train.train_run`; None is that one.
    """
    missing = [each for each in wanted if each.wanting(cfg.retry)]
    device = device_of(cfg)
    tracker, of_tracker = usable(asdict(cfg.tracker))
    if missing and of_tracker is not None:
        console.print(of_tracker, highlight=False, soft_wrap=True, markup=False)
    name = cfg.launcher.name
    launcher = {name: sources.hashes_of(name)} if launchers.names_code(name) else {}
    for each in missing:
        _queue(each, launcher)
    if sentence := _told(cfg, missing):
        console.print(sentence, highlight=False, soft_wrap=True)
    order = sorted(missing, key=lambda each: store.longest_first(each.config))
    calls = [
        Call((train or TRAIN, each.config, str(each.path), tracker, device), log=each.path / LOG_FILE) for each in order
    ]
    with Progress(wanted, console) as progress, _requeued(missing):
        outcomes = launch(
            cfg.launcher.name,
            "lcd.pipelines.study.runs:perform",
            calls,
            watch=progress.update,
            workers=cfg.launcher.workers,
            threads=cfg.launcher.threads,
            grace=cfg.launcher.grace,
            deadlines=cfg.deadlines,
            **({"processes": device["devices"]} if device["devices"] > 1 else {}),
        )
    for each, outcome in zip(order, outcomes, strict=True):
        if outcome.error is not None and each.status["state"] != store.DIVERGED:
            # A worker that was killed could not say so itself; neither can this on a full disk.
            with contextlib.suppress(OSError):
                each.update(state=store.FAILED, error=outcome.error)
    for sentence in (failure(wanted), divergence(wanted)):
        if sentence:
            console.print(sentence, highlight=False, soft_wrap=True, markup=False)
    if stopped := sum(outcome.stopped for outcome in outcomes):
        console.print(f"{stopped} of {len(wanted)} runs were stopped by a signal.", highlight=False)
        raise Stopped
    return all(each.done for each in wanted)


def _queue(run: store.Run, launcher: dict[str, Any]) -> None:
    """Make a run wait for a worker; one that diverged begins anew."""
    if run.status["state"] == store.DIVERGED:
        with store.run_lock(run.path):
            run.forget()
    run.update(state=store.QUEUED, error=None, launcher=launcher)


def _told(cfg: DiagnoseConfig | PretrainConfig | SweepConfig | TrainConfig, missing: list[store.Run]) -> str | None:
    """What is to be said before training: of PPG's rollouts, how much room they take."""
    # PPG's module takes seconds to import, where most agents have nothing to tell.
    if not any("auxiliary_rollouts" in each.config["agent"] for each in missing):
        return None
    from lcd.pipelines.jobs import phases

    together = at_once(cfg.launcher.workers, cfg.launcher.threads * device_of(cfg)["devices"], len(missing))
    return phases.told((each.config for each in missing), together)


def device_of(cfg: DiagnoseConfig | PretrainConfig | SweepConfig | TrainConfig) -> dict[str, Any]:
    """Where networks are trained and by how many processes; `num_nodes` only where one run is trained."""
    return {"accelerator": cfg.device, "devices": getattr(cfg, "devices", 1), "num_nodes": getattr(cfg, "num_nodes", 1)}


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


def failure(runs: list[store.Run]) -> str:
    """Which runs failed, why, and what to do; nothing if none did."""
    failed = [each for each in runs if each.status["state"] == store.FAILED]
    lines = [f"{len(failed)} of {len(runs)} runs failed:"]
    lines += [f"  {label(each.config)}: {each.status['error']} (see {each.path / LOG_FILE})" for each in failed]
    lines.append("The same command tries them again.")
    return "\n".join(lines) if failed else ""


def divergence(runs: list[store.Run]) -> str:
    """Which runs diverged, in what, and what to do; nothing if none did."""
    lost = [each for each in runs if each.status["state"] == store.DIVERGED]
    lines = [f"{len(lost)} of {len(runs)} runs diverged and are left out:"]
    lines += [f"  {label(each.config)}: {each.status['error']} (run {each.path.name})" for each in lost]
    lines.append("The same command would end the same way and does not try them again; retry=true trains them anew.")
    return "\n".join(lines) if lost else ""
