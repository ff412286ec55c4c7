"""The Ray launcher: each call is a task of a Ray cluster, on this machine, on others, in Kubernetes, or in a cloud.

A task makes its call by the local launcher, in a worker process of its own, with its deadlines. Ray starts a task anew
whose process or node died, and ends the tasks of a command that is gone; a worker ends with the task that started it.
What a call has done before is on the disk, and its lease tells who may go on. How many nodes there are is Ray's affair:
a cluster that grows by itself sees what waits.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from lcd.config.schema_parts import DeadlinesConfig
from lcd.envs.errors import InputError, Unfinished
from lcd.envs.registry import named, naming
from lcd.pipelines.launch import local
from lcd.pipelines.launch.order import Call, Order, Outcome
from lcd.process.children import describe
from lcd.process.signals import Stopped, deferring_stops, stopping_once

POLL_S = 0.25
STORE_BYTES = 80 << 20
"""Of a cluster that is started here: tasks exchange next to nothing."""
GIGABYTE = 1 << 30

OF_RAY = ("CPU", "GPU", "memory", "object_store_memory")
"""Resources that Ray takes by settings of their own."""
REACHED_IN_S = 10.0
"""So long a connection to a cluster may take to open; Ray itself tries for minutes."""


@dataclass(frozen=True)
class RaySettings:
    """Settings of `launcher=ray`; `launcher.workers` says how many runs may be at Ray at the same time.

    Attributes:
        address: the cluster's (auto, host:port, ray://host:port); null: RAY_ADDRESS, else one started on this machine.
        gpus: GPUs of a run; with 0.25 four runs share one.
        memory: gigabytes that Ray keeps free for a run; null: the least that it is known to take.
        retries: how often a run is tried again whose worker or node died.
        resources: further ones of a run, by the names that the cluster has for them ({a100: 1}).
        runtime_env: what Ray prepares on its nodes before anything runs there.
    """

    address: str | None = None
    gpus: float = 0.0
    memory: float | None = None
    retries: int = 3
    resources: dict[str, Any] = field(default_factory=dict)
    runtime_env: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.gpus < 0 or (self.gpus > 1 and self.gpus % 1):
            raise InputError(f"launcher.gpus={self.gpus:g} must be a share of one GPU, or a whole number.")
        if self.retries < 0:
            raise InputError(f"launcher.retries={self.retries} must be at least 0.")
        if self.memory is not None and not self.memory > 0:
            raise InputError(f"launcher.memory={self.memory:g} must be above 0.")
        for name, count in self.resources.items():
            if str(name) in OF_RAY:
                raise InputError(
                    f"launcher.resources={{{name}: …}}: what Ray counts itself follows from the runs; leave it."
                )
            known = isinstance(count, int | float) and not isinstance(count, bool) and 0 <= count < math.inf
            if not known or (count > 1 and count % 1):
                told = f"launcher.resources={{{name}: {count}}} must be a number of 0 or more"
                raise InputError(f"{told}, and a whole one above 1.")


def launch(
    function: str,
    calls: Sequence[Call],
    *,
    watch: Callable[[], None],
    settings: RaySettings,
    workers: int | str = "auto",
    threads: int = 1,
    grace: float = 60.0,
    deadlines: DeadlinesConfig | None = None,
) -> list[Outcome]:
    """Tasks of a Ray cluster, which may grow by itself.

    Args:
        function: `module:function`.
        calls: those to be made; one starts when those that it waits for have ended well.
        watch: called a few times a second.
        settings: what the user sets.
        workers: the most calls at a time; `auto`: as many as the cluster has room for.
        threads: of each process of a call.
        grace: seconds that workers have to finish an iteration and keep it.
        deadlines: how long calls may go without progress.

    Returns:
        The outcomes in the order of the calls.
    """
    if not calls:
        return []
    common = {"threads": threads, "grace": grace, "deadlines": deadlines or DeadlinesConfig()}
    order, most = Order(calls), len(calls) if workers == "auto" else int(workers)
    with connected(settings) as ray:
        at_work: dict[Any, tuple[int, Call]] = {}
        try:
            while not order.over:
                # An exception that a signal raises within Ray's code is a fault to it.
                with deferring_stops():
                    while len(at_work) < most and (found := order.start(lambda needs: True)) is not None:
                        task = ray.remote(make).options(**options(found[1], settings, threads))
                        asked = replace(found[1], after=())
                        at_work[task.remote(function, asked, common, list(sys.path), named(), os.getcwd())] = found
                    ended, _ = ray.wait(list(at_work), num_returns=len(at_work), timeout=0)
                    for each in ended:
                        index, call = at_work.pop(each)
                        order.end(index, _outcome(ray, each, call))
                watch()
                if not ended:
                    time.sleep(POLL_S)
        except (Stopped, KeyboardInterrupt):
            _cancel(ray, list(at_work), grace)
            raise
    return order.results


def look_ahead(*, settings: RaySettings, **_: Any) -> None:
    """See whether the cluster that is named is there."""
    if find_spec("ray") is None:
        raise InputError(
            "launcher=ray needs Ray: install it with pip install 'learning-challenge-diagnosticator[ray]'."
        )
    if settings.address is not None or os.environ.get("RAY_ADDRESS"):
        with connected(settings):
            pass


launch.takes_graphs = True  # type: ignore[attr-defined]
launch.look_ahead = look_ahead  # type: ignore[attr-defined]


def options(call: Call, settings: RaySettings, threads: int) -> dict[str, Any]:
    """What Ray is told that a call takes."""
    memory = call.needs.memory if settings.memory is None else int(settings.memory * GIGABYTE)
    return {
        "num_cpus": max(call.needs.cores, threads),
        "num_gpus": max(settings.gpus, call.needs.gpus if call.needs.gpus > 1 else 0) if settings.gpus else 0,
        "resources": {name: float(count) for name, count in settings.resources.items()},
        "max_retries": settings.retries,
        "name": call.label or call.name or "call",
        **({"memory": memory} if memory else {}),
    }


def make(
    function: str, call: Call, common: dict[str, Any], path: list[str], names: Any, place: str
) -> tuple[str | None, bool]:
    """Make a call, as a task: its error, and whether it was stopped.

    Args:
        function: `module:function`.
        call: the call.
        common: what every launcher is told.
        path: where the command looks for modules.
        names: what the command names.
        place: the folder that the command was given in.
    """
    if os.path.isdir(place):
        os.chdir(place)
    if call.log is not None and not call.log.parent.is_dir():
        return f"{call.log.parent} is not seen on {socket.gethostname()}: 'out' must be on a disk that all share", False
    sys.path += [entry for entry in path if entry not in sys.path]
    once = local.LocalSettings()
    # Ray cancels a task as if by Ctrl-C; a node that is taken away tells its processes by SIGTERM.
    with stopping_once((signal.SIGINT, signal.SIGTERM)) as told:
        try:
            with naming(names):
                (outcome,) = local.launch(function, [call], watch=lambda: None, workers=1, settings=once, **common)
            return outcome.error, outcome.stopped
        except Stopped:
            if told[0] == signal.SIGTERM:
                # A task that ends is over; one that dies is started again elsewhere.
                os._exit(1)
            return None, True


@contextlib.contextmanager
def connected(settings: RaySettings) -> Iterator[Any]:
    """Ray, as part of the cluster that is to be used; one that is started here ends with this."""
    _refuse_unreachable(settings.address or os.environ.get("RAY_ADDRESS"))
    # It would tell its makers.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if ray.is_initialized():
        yield ray
        return
    here = settings.address is None and not os.environ.get("RAY_ADDRESS")
    new = {"include_dashboard": False, "object_store_memory": STORE_BYTES} if here else {}
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        # Without a word it would look for one that somebody has started on this machine.
        ray.init("local" if here else settings.address, runtime_env=settings.runtime_env or None, **new, **quiet)
    except Exception as refused:  # it raises plain ones, too
        if here:
            why = f"Ray did not start on this machine ({describe(refused)})"
            raise Unfinished(f"{why}: the same command tries again, and launcher=local needs no Ray.") from None
        raise InputError(f"launcher.address={settings.address}: no Ray cluster there ({describe(refused)}).") from None
    finally:
        # It has taken them for itself.
        with contextlib.suppress(ValueError, TypeError):
            for number, handler in handlers.items():
                signal.signal(number, handler)
    try:
        yield ray
    finally:
        ray.shutdown()


def _refuse_unreachable(address: str | None) -> None:
    """Refuse an address with a host and a port at which nobody answers."""
    host, colon, port = (address or "").rpartition("://")[2].rpartition(":")
    if colon and port.isdigit():
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=REACHED_IN_S).close()
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"launcher.address={address}: no Ray cluster there ({why}).") from None


def _outcome(ray: Any, task: Any, call: Call) -> Outcome:
    try:
        error, stopped = ray.get(task)
    except ray.exceptions.TaskCancelledError:
        return Outcome(call, stopped=True)
    except ray.exceptions.RayError as lost:
        return Outcome(call, f"Ray gave it up: {describe(lost)}")
    return Outcome(call, error, stopped)


def _cancel(ray: Any, tasks: Sequence[Any], grace: float) -> None:
    """Tell tasks to keep what they have, and wait for them; what Ray has not started it forgets."""
    for each in tasks:
        ray.cancel(each)
    end = time.monotonic() + grace
    while tasks and time.monotonic() < end:
        _, tasks = ray.wait(list(tasks), num_returns=len(tasks), timeout=0)
        time.sleep(POLL_S / 5)
