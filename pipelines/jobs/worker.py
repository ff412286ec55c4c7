"""What happens around a job, of whichever kind, in the process that does it."""

from __future__ import annotations

import contextlib
import os
import socket
import traceback
from pathlib import Path

from lcd.envs.errors import Cancelled, Diverged
from lcd.files.atomic import remove_unfinished, write_atomic
from lcd.pipelines.study import sources, store
from lcd.pipelines.study.cancelling import stopping_when_cancelled
from lcd.pipelines.study.configs import Device, JobConfig, TrackerEntry
from lcd.pipelines.study.devices import check_device
from lcd.pipelines.study.inputs import take_inputs
from lcd.process.children import describe, resolve
from lcd.process.signals import Stopped

ERROR_FILE = "error.txt"


def do_under_lock(work: str, config: JobConfig, folder: str, tracker: TrackerEntry, device: Device) -> None:
    """Do one job under its run's lock, and keep its status true however that ends.

    Args:
        work: `module:function` of the job's kind (`lcd.pipelines.kinds.kind.Kind.work`).
        config: what the job is asked for.
        folder: its run's.
        tracker: the tracker's settings.
        device: where, and by how many processes.
    """
    run = store.Run(config, Path(folder))
    with store.run_lock(folder):
        remove_unfinished(folder)
        if run.done:
            return
        try:
            with stopping_when_cancelled(run.path):
                _do(work, run, tracker, device)
        except (Stopped, KeyboardInterrupt, SystemExit, Cancelled):
            with contextlib.suppress(OSError):
                run.update(state=store.QUEUED)
            raise
        except Diverged as trouble:
            run.update(state=store.DIVERGED, error=describe(trouble))
            raise
        except Exception as error:
            # On a full disk neither may fit; what went wrong is told all the same.
            with contextlib.suppress(OSError):
                run.update(state=store.FAILED, error=describe(error))
                write_atomic(Path(folder) / ERROR_FILE, traceback.format_exc())
            raise
        if not run.done:
            sentence = f"{work} returned before the run was done: its {run.broken_promise()}"
            run.update(state=store.FAILED, error=sentence)
            raise RuntimeError(sentence)
        (Path(folder) / ERROR_FILE).unlink(missing_ok=True)


def _do(work: str, run: store.Run, tracker: TrackerEntry, device: Device) -> None:
    threads = int(os.environ.get("OMP_NUM_THREADS") or 1)
    run.update(state=store.RUNNING, error=None, steps=run.config["steps"], threads=threads, where=_where(device))
    # A launcher may work on another machine than the command was given on, and long after.
    check_device(device)
    sources.refuse_changed(run.config)
    complete, hashes = take_inputs(run.config, run.path.parent)
    run.update(inputs=hashes)
    resolve(work)(complete, str(run.path), tracker, device)


def _where(device: Device) -> str:
    """This machine and process, and which of the machine's GPUs it may use where it is not all of them."""
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES") if device.accelerator in ("auto", "cuda") else None
    return f"{socket.gethostname()}, process {os.getpid()}" + (f", GPU {gpus}" if gpus else "")
