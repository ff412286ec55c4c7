"""Doing the jobs that a study still lacks, by whatever launcher, and telling what became of them.

A study is a graph of jobs: one starts when those that it waits for are done. A job that fails fails those that wait for
it, and the rest goes on.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from itertools import product

from rich.console import Console

from lcd.envs.benchmarks import BENCHMARKS, get_benchmark, reward_range
from lcd.envs.errors import InputError
from lcd.envs.protocols import check_installed
from lcd.pipelines.kinds.kind import Job, trainings
from lcd.pipelines.kinds.pretrain import before_pretraining
from lcd.pipelines.kinds.train import rounded_up
from lcd.pipelines.launch.launchers import calls_at_once, look_ahead
from lcd.pipelines.launch.order import waits_for
from lcd.pipelines.publish.track import tracker_entry, usable
from lcd.pipelines.study import devices, longer, store
from lcd.pipelines.study.attempts import Asked, Attempts, device_of
from lcd.pipelines.study.cancelling import SENTENCE, is_cancelled, let_go_on
from lcd.pipelines.study.configs import RunConfig, agent_of, is_training, longest_first
from lcd.pipelines.study.evaluated import stages_of
from lcd.pipelines.study.evaluation import check_spaces
from lcd.pipelines.study.hands import DISK
from lcd.pipelines.study.lease import LOG_FILE, settle
from lcd.pipelines.study.members import points_of
from lcd.pipelines.study.progress import Progress
from lcd.process.signals import Stopped
from lcd.scores.left_out import told_points


def check_trainable(cfg: Asked, jobs: Iterable[Job]) -> None:
    """Refuse what would fail for every run, before anything is written."""
    chosen = cfg.launcher
    look_ahead(chosen.name, chosen.settings, workers=chosen.workers, threads=chosen.threads, grace=chosen.grace)
    # Another launcher's workers may be on machines that have other devices.
    if cfg.launcher.name == "local":
        devices.check_device(device_of(cfg))
    run_configs = trainings(jobs)
    for config in run_configs:
        check_installed(get_benchmark(config["benchmark"]), [stage.made for stage in stages_of(config)])
    check_spaces(run_configs)
    for config in run_configs:
        if not BENCHMARKS.is_built_in(config["benchmark"]):
            _check_ranges(config)
        devices.check_share(*agent_of(config), device_of(cfg))


def _check_ranges(run_config: RunConfig) -> None:
    """Refuse a stranger's range of returns that nothing can be divided by, before anything is trained."""
    for stage, features in product(stages_of(run_config), points_of(run_config).values()):
        knobs = {**features, **stage.knobs}
        low, high = reward_range(run_config["benchmark"], stage.made, run_config["seeds"][0], knobs)
        if any(map(math.isinf, (low, high))) or low >= high:
            raise InputError(
                f"benchmark={run_config['benchmark']} says that returns of '{stage.made}' lie between r_min={low:g} "
                f"and r_max={high:g}: both must be finite (None where it is not known), and r_max above r_min."
            )


def train_missing(cfg: Asked, study: store.Study, wanted: list[store.Run], console: Console) -> bool:
    """Do the wanted runs that are not done, in the order of their graph; whether all of them are done now.

    What another hand is at is waited for, and done here if that one stops or dies. It tells which failed and which
    diverged. A stopped command leaves them queued, and so does a worker that somebody else stopped.

    Args:
        cfg: the command's config.
        study: whose runs they are.
        wanted: those that are asked for, with all that they wait for.
        console: is told.
    """
    missing = [each for each in wanted if each.needs_training(cfg.retry)]
    tracker, of_tracker = usable(tracker_entry(cfg.tracker))
    if missing and of_tracker is not None:
        console.print(of_tracker, highlight=False, soft_wrap=True, markup=False)
    for each in missing if cfg.retry else ():
        let_go_on(each.path)
    failed = _without_hope(wanted, missing)
    order = sorted((each for each in missing if each not in failed), key=_first_awaited(missing))
    for sentence in _memory_sentences(cfg, order):
        console.print(sentence, highlight=False, soft_wrap=True, markup=False)
    with Progress(wanted, console, again=missing) as progress, _requeued(missing):
        attempts = Attempts(cfg, tracker, order, console)
        stopped = attempts.make(progress.update)
    failed |= attempts.failed
    diverged = {run: run.status["error"] or "" for run in wanted if run.status["state"] == store.DIVERGED}
    cancelled = [run for run in wanted if is_cancelled(run.path) and not run.done]
    failed = {run: error for run, error in failed.items() if run not in diverged and run not in cancelled}
    for run, error in failed.items():
        # A worker that was killed could not say so itself; neither can this on a full disk.
        with contextlib.suppress(OSError):
            if (run.status["state"], run.status["error"]) != (store.FAILED, error):
                run.mark(state=store.FAILED, error=error)
    sentences = (
        _failure(failed, len(wanted)),
        _divergence(diverged, len(wanted)),
        _points_lost(wanted),
        _cancellation(cancelled, len(wanted)),
    )
    for sentence in sentences:
        if sentence:
            console.print(sentence, highlight=False, soft_wrap=True, markup=False)
    if stopped:
        console.print(f"{stopped} of {len(wanted)} runs were stopped by a signal.", highlight=False)
        raise Stopped
    return all(each.whole for each in wanted)


def _without_hope(wanted: list[store.Run], missing: list[store.Run]) -> dict[store.Run, str]:
    """The missing runs that wait for one that is neither done nor tried again, and why they fail."""
    lost = {run.path.name: (run.label, _why_not_done(run)) for run in wanted if not run.done}
    for each in missing:
        lost.pop(each.path.name, None)
    failed: dict[store.Run, str] = {}
    while fallen := [run for run in missing if run not in failed and set(run.after) & set(lost)]:
        for run in fallen:
            name = next(name for name in run.after if name in lost)
            failed[run] = waits_for(name, *lost[name])
            lost[run.path.name] = (run.label, failed[run])
    return failed


def _why_not_done(run: store.Run) -> str:
    return SENTENCE if is_cancelled(run.path) else run.status["error"] or ""


def _first_awaited(missing: list[store.Run]) -> Callable[[store.Run], tuple[bool, int]]:
    """Runs sorted by this begin with those that others wait for; then come those that need most steps."""
    awaited = {name for run in missing for name in run.after}
    return lambda run: (run.path.name not in awaited, longest_first(run.config))


def _memory_sentences(cfg: Asked, missing: list[store.Run]) -> list[str]:
    """What is to be said before training: how much room PPG's rollouts and features of front-ends take."""
    # What makes agents takes seconds to import, where most have nothing to tell.
    trained = [before_pretraining(each.config) for each in missing if is_training(each.config)]
    phased = [config for config in trained if "auxiliary_rollouts" in config["agent"]]
    encoded = [config for config in trained if config["frontend"]["name"] != "identity"]
    if not phased and not encoded:
        return []
    from lcd.pipelines.jobs import phases

    together = calls_at_once(cfg.launcher.workers, cfg.launcher.threads * device_of(cfg).devices, len(phased))
    of_phases = phases.store_sentence(phased, together)
    return [*([] if of_phases is None else [of_phases]), *phases.features_sentences(encoded)]


@contextlib.contextmanager
def _requeued(missing: list[store.Run]) -> Iterator[None]:
    """Leave no run that says it is at work, or is done and not all in its place: who was killed could not see to it."""
    try:
        yield
    finally:
        # On a full disk a status that is not true is better than an error that hides the first.
        with contextlib.suppress(OSError):
            for each in missing:
                settle(DISK, each.path)
                if each.status["state"] == store.RUNNING:
                    each.mark(state=store.QUEUED)


def opening(study: store.Study, wanted: list[store.Run]) -> str:
    """The sentence a command begins with."""
    done = sum(each.done for each in wanted)
    if done == len(wanted):
        return f"All {done} runs of the study {study.path} are done." if done > 1 else f"{study.path} is done."
    count = f"{len(wanted)} run{'s' * (len(wanted) > 1)}"
    begun = f"Continuing the study {study.path}: {done} of {count} done"
    training = begun if done else f"Training {count} into {study.path}"
    left = [(each.config, each.status["continues"]) for each in wanted if is_training(each.config) and not each.done]
    more = longer.sentence(left)
    rounded = next(filter(None, (rounded_up(config) for config, _ in left)), "")
    return " ".join(filter(None, [f"{training}.", rounded, more, "Ctrl-C stops; the same command continues."]))


def _failure(errors: dict[store.Run, str], count: int) -> str:
    """Which of so many runs failed, why, and what to do; nothing if none did."""
    lines = [f"{len(errors)} of {count} runs failed:"]
    for run, error in errors.items():
        log = f" (see {run.path / LOG_FILE})" if (run.path / LOG_FILE).exists() else ""
        lines.append(f"  {run.label}: {error}{log}")
    lines.append("The same command tries them again.")
    return "\n".join(lines) if errors else ""


def _points_lost(wanted: list[store.Run]) -> str:
    """Which points runs went on without, and what to do; nothing if they have all of theirs."""
    short = [run for run in wanted if run.done and run.lost]
    number = sum(len(run.lost) for run in short)
    lines = [f"{number} points diverged and are left out:" if number > 1 else "1 point diverged and is left out:"]
    for run in short:
        lines.append(f"  {run.label}: {told_points(run.lost)} (run {run.path.name})")
    lines.append("The same command would end the same way; retry=true trains the runs that had them anew.")
    return "\n".join(lines) if short else ""


def _divergence(errors: dict[store.Run, str], count: int) -> str:
    """Which of so many runs diverged, in what, and what to do; nothing if none did."""
    lines = [f"{len(errors)} of {count} runs diverged and are left out:"]
    lines += [f"  {run.label}: {error} (run {run.path.name})" for run, error in errors.items()]
    lines.append("The same command would end the same way and does not try them again; retry=true trains them anew.")
    return "\n".join(lines) if errors else ""


def _cancellation(cancelled: list[store.Run], count: int) -> str:
    """How many of so many runs were cancelled, and what to do; nothing if none was."""
    if not cancelled:
        return ""
    study = cancelled[0].path.parents[1]
    told = f"{len(cancelled)} of {count} runs were cancelled and are left as they are"
    return f"{told}; 'lcd retry {study}' lets them go on."
