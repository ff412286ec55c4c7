"""What happens around a job, of whichever kind, in the process that does it."""

from __future__ import annotations

import contextlib
import os
import socket
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from lcd.envs.errors import Diverged, InputError
from lcd.files.atomic import make_folder, remove_unfinished, write_atomic
from lcd.pipelines.launch.order import waits_for
from lcd.pipelines.study import sources, store
from lcd.pipelines.study.cancelling import stopping_when_cancelled
from lcd.pipelines.study.configs import Device, JobConfig, TrackerEntry
from lcd.pipelines.study.devices import check_device
from lcd.pipelines.study.hands import Lost, Sight, acquire, holding, is_held
from lcd.pipelines.study.inputs import take_inputs
from lcd.pipelines.study.lease import Lease
from lcd.process.children import describe, resolve
from lcd.process.signals import Stopped

ERROR_FILE = "error.txt"


@dataclass(frozen=True)
class Terms:
    """How a job is to be done, which is no part of what it is.

    Attributes:
        anew: drop what was trained; of a run that diverged, or that is done without points that did. What somebody
            else has trained anew since is left.
        launcher: the hashes of the launcher's own code.
        silent: the lease of another hand that was seen to be silent for long enough.
    """

    anew: bool = False
    launcher: dict[str, dict[str, str]] = field(default_factory=dict)
    silent: Sight | None = None


def do_under_lease(
    work: str, config: JobConfig, folder: str, tracker: TrackerEntry, device: Device, terms: Terms | None = None
) -> None:
    """Do one job under its run's lease, and keep its status true however that ends.

    Where another hand has the run, or one of those that it waits for, nothing is done: the run is not done when this
    returns, and whoever launched it waits.

    Args:
        work: `module:function` of the job's kind (`lcd.pipelines.kinds.kind.Kind.work`).
        config: what the job is asked for.
        folder: its run's.
        tracker: the tracker's settings.
        device: where, and by how many processes.
        terms: how.
    """
    run, terms = store.Run(config, Path(folder)), terms or Terms()
    if not _is_needed(run, terms) or _waits(run):
        return
    with stopping_when_cancelled(run.path):
        _acquire_and_do(work, run, tracker, device, terms)


def _acquire_and_do(work: str, run: store.Run, tracker: TrackerEntry, device: Device, terms: Terms) -> None:
    _make(run)
    acquired = acquire(run.path, terms.silent, needed=lambda: _is_needed(run, terms))
    if acquired is None:
        return
    lease, still = acquired
    remove_unfinished(run.path)
    with holding(lease):
        _do(work, run, lease, still, tracker, device, terms)


def _is_needed(run: store.Run, terms: Terms) -> bool:
    return not (run.whole if terms.anew else run.done)


def _waits(run: store.Run) -> bool:
    """Whether a run waits for another one that somebody else is at; an `InputError` where that one failed."""
    for name in run.after:
        other = run.path.parent / name
        status = store.read_status(other)
        if is_held(other):
            return True
        if status["state"] in (store.FAILED, store.DIVERGED):
            raise InputError(waits_for(name, "", status["error"] or "its status does not say why"))
        if status["state"] != store.DONE:
            return True
    return False


def _make(run: store.Run) -> None:
    """Make the run's folder where a command that was refused took it back since."""
    if not (run.path / "config.yaml").exists():
        make_folder(run.path)
        write_atomic(run.path / "config.yaml", yaml.safe_dump(run.config, sort_keys=False, allow_unicode=True))


def _do(
    work: str, run: store.Run, lease: Lease, still: bool, tracker: TrackerEntry, device: Device, terms: Terms
) -> None:
    own = store.Run(run.config, lease.folder)
    try:
        if not lease.prepare(anew=terms.anew, still=still):
            return
        if not own.done:
            _work(work, own, tracker, device, terms)
    except Lost:
        # Another hand has the run, and what this one wrote since is nobody's.
        return
    except BaseException as error:
        if lease.lost:
            # What went wrong is nobody's, too; who was told to stop does so.
            if isinstance(error, Exception):
                return
            raise
        _tell(own, error)
        with contextlib.suppress(OSError):
            lease.end()
        raise
    lease.end(done=True)


def _work(work: str, own: store.Run, tracker: TrackerEntry, device: Device, terms: Terms) -> None:
    threads = int(os.environ.get("OMP_NUM_THREADS") or 1)
    steps = own.config["steps"]
    begun = {"state": store.RUNNING, "error": None, "steps": steps, "threads": threads, "where": _where(device)}
    own.update(**begun, launcher=terms.launcher)
    # A launcher may work on another machine than the command was given on, and long after.
    check_device(device)
    sources.refuse_changed(own.config)
    complete, hashes = take_inputs(own.config, own.path.parents[3])
    own.update(inputs=hashes)
    resolve(work)(complete, str(own.path), tracker, device)
    if not own.done:
        raise RuntimeError(f"{work} returned before the run was done: its {own.broken_promise()}")
    (own.path / ERROR_FILE).unlink(missing_ok=True)


def _tell(own: store.Run, error: BaseException) -> None:
    """Say in a run's status how it ended."""
    # On a full disk it may not fit; what went wrong is told all the same.
    with contextlib.suppress(OSError, Lost):
        if isinstance(error, Stopped | KeyboardInterrupt | SystemExit):
            own.update(state=store.QUEUED)
        elif isinstance(error, Diverged):
            own.update(state=store.DIVERGED, error=describe(error))
        else:
            # On a full disk neither may fit; what went wrong is told all the same.
            own.update(state=store.FAILED, error=describe(error))
            write_atomic(own.path / ERROR_FILE, traceback.format_exc())


def _where(device: Device) -> str:
    """This machine and process, and which of the machine's GPUs it may use where it is not all of them."""
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES") if device.accelerator in ("auto", "cuda") else None
    return f"{socket.gethostname()}, process {os.getpid()}" + (f", GPU {gpus}" if gpus else "")
