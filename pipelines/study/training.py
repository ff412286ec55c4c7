"""Training the runs that a study still lacks, by whatever launcher, and telling what became of them."""

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from rich.console import Console

from lcd.config.schemas import DiagnoseConfig, PretrainConfig, SweepConfig, TrainConfig
from lcd.envs.benchmarks import BENCHMARKS, reward_range
from lcd.envs.errors import InputError
from lcd.pipelines.launch.launchers import Call, calls_at_once, launch, launchers
from lcd.pipelines.publish.track import usable
from lcd.pipelines.study import runs, sources, store
from lcd.pipelines.study.configs import Device, RunConfig, agent_of, longest_first
from lcd.pipelines.study.evaluation import check_spaces
from lcd.pipelines.study.progress import Progress, label
from lcd.process.signals import Stopped

TRAIN = "lcd.pipelines.jobs.train:train_run"
LOG_FILE = "log.txt"


def check_trainable(
    cfg: DiagnoseConfig | PretrainConfig | SweepConfig | TrainConfig, run_configs: Iterable[RunConfig]
) -> None:
    """Refuse what would fail for every run, before anything is written."""
    launchers.resolve(cfg.launcher.name)
    # Another launcher's workers may be on machines that have other devices.
    if cfg.launcher.name == "local":
        runs.check_device(device_of(cfg))
    run_configs = list(run_configs)
    check_spaces(config for config in run_configs if "agent" in config)
    for config in run_configs:
        if not BENCHMARKS.is_built_in(config["benchmark"]):
            _check_ranges(config)
        runs.check_share(*agent_of(config), device_of(cfg))


def _check_ranges(run_config: RunConfig) -> None:
    """Refuse a stranger's range of returns that nothing can be divided by, before anything is trained."""
    for stage in run_config.get("curriculum") or [run_config]:
        low, high = reward_range(run_config["benchmark"], stage["task"], run_config["seeds"][0], stage["knobs"])
        if any(map(math.isinf, (low, high))) or low >= high:
            raise InputError(
                f"benchmark={run_config['benchmark']} says that returns of '{stage['task']}' lie between r_min={low:g} "
                f"and r_max={high:g}: both must be finite (None where it is not known), and r_max above r_min."
            )


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

    Args:
        train: `module:function` with the arguments of `lcd.pipelines.jobs.train.train_run`; None is that one.
    """
    missing = [each for each in wanted if each.needs_training(cfg.retry)]
    device = device_of(cfg)
    tracker, of_tracker = usable(asdict(cfg.tracker))
    if missing and of_tracker is not None:
        console.print(of_tracker, highlight=False, soft_wrap=True, markup=False)
    name = cfg.launcher.name
    launcher = {name: sources.hashes_of(name)} if launchers.names_code(name) else {}
    for each in missing:
        _queue(each, launcher)
    if sentence := _memory_sentence(cfg, missing):
        console.print(sentence, highlight=False, soft_wrap=True)
    order = sorted(missing, key=lambda each: longest_first(each.config))
    calls = [
        Call((train or TRAIN, each.config, str(each.path), tracker, device), log=each.path / LOG_FILE) for each in order
    ]
    with Progress(wanted, console) as progress, _requeued(missing):
        outcomes = launch(
            cfg.launcher.name,
            "lcd.pipelines.study.runs:train_under_lock",
            calls,
            watch=progress.update,
            workers=cfg.launcher.workers,
            threads=cfg.launcher.threads,
            grace=cfg.launcher.grace,
            deadlines=cfg.deadlines,
            settings=cfg.launcher.settings,
            **({"processes": device.devices} if device.devices > 1 else {}),
        )
    failed = {run: outcome.error for run, outcome in zip(order, outcomes, strict=True) if outcome.error is not None}
    diverged = {run: run.status["error"] for run in wanted if run.status["state"] == store.DIVERGED}
    failed = {run: error for run, error in failed.items() if run not in diverged}
    for run, error in failed.items():
        # A worker that was killed could not say so itself; neither can this on a full disk.
        with contextlib.suppress(OSError):
            run.update(state=store.FAILED, error=error)
    for sentence in (_failure(failed, len(wanted)), _divergence(diverged, len(wanted))):
        if sentence:
            console.print(sentence, highlight=False, soft_wrap=True, markup=False)
    if stopped := sum(outcome.stopped for outcome in outcomes):
        console.print(f"{stopped} of {len(wanted)} runs were stopped by a signal.", highlight=False)
        raise Stopped
    return all(each.done for each in wanted)


def _queue(run: store.Run, launcher: dict[str, dict[str, str]]) -> None:
    """Make a run wait for a worker; one that diverged begins anew."""
    if run.status["state"] == store.DIVERGED:
        with store.run_lock(run.path):
            run.forget()
    run.update(state=store.QUEUED, error=None, launcher=launcher)


def _memory_sentence(
    cfg: DiagnoseConfig | PretrainConfig | SweepConfig | TrainConfig, missing: list[store.Run]
) -> str | None:
    """What is to be said before training: of PPG's rollouts, how much room they take."""
    # PPG's module takes seconds to import, where most agents have nothing to tell.
    if not any("auxiliary_rollouts" in each.config["agent"] for each in missing):
        return None
    from lcd.pipelines.jobs import phases

    together = calls_at_once(cfg.launcher.workers, cfg.launcher.threads * device_of(cfg).devices, len(missing))
    return phases.store_sentence((each.config for each in missing), together)


def device_of(cfg: DiagnoseConfig | PretrainConfig | SweepConfig | TrainConfig) -> Device:
    """Where networks are trained and by how many processes; `num_nodes` only where one run is trained."""
    return Device(cfg.device, getattr(cfg, "devices", 1), getattr(cfg, "num_nodes", 1))


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


def _failure(errors: dict[store.Run, str], count: int) -> str:
    """Which of so many runs failed, why, and what to do; nothing if none did."""
    lines = [f"{len(errors)} of {count} runs failed:"]
    lines += [f"  {label(run.config)}: {error} (see {run.path / LOG_FILE})" for run, error in errors.items()]
    lines.append("The same command tries them again.")
    return "\n".join(lines) if errors else ""


def _divergence(errors: dict[store.Run, str], count: int) -> str:
    """Which of so many runs diverged, in what, and what to do; nothing if none did."""
    lines = [f"{len(errors)} of {count} runs diverged and are left out:"]
    lines += [f"  {label(run.config)}: {error} (run {run.path.name})" for run, error in errors.items()]
    lines.append("The same command would end the same way and does not try them again; retry=true trains them anew.")
    return "\n".join(lines) if errors else ""
