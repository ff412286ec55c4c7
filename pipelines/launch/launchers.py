"""Launchers: each takes a function and calls of it, and says how every call ended.

Calls are a graph: `Call.after` names those that must have ended well before (`lcd.pipelines.launch.order`).
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from lcd.config.registries import launchers
from lcd.config.settings import settings_for
from lcd.envs.protocols import offers
from lcd.pipelines.launch.order import Call, Order, Outcome

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3

RUNS_AT_ONCE = "LCD_RUNS_AT_ONCE"
"""The environment variable that tells a worker how many runs share its machine's memory."""


class TakesGraphs(Protocol):
    """A launcher that honours `Call.after` itself."""

    takes_graphs: bool

    def __call__(
        self, function: str, calls: Sequence[Call], *, watch: Callable[[], None], **knobs: Any
    ) -> list[Outcome]:
        """Make the calls."""


class LooksAhead(Protocol):
    """A launcher that can say, before anything is written, what is in its way."""

    def look_ahead(self, **knobs: Any) -> None:
        """Raise an `InputError` where nothing can be launched; `knobs` are what it is called with later."""


def look_ahead(name: str, settings: Mapping[str, Any], **knobs: Any) -> None:
    """Refuse what would fail for every call, before anything is written.

    Args:
        name: a registered launcher, or `module:object`.
        settings: the launcher's own, as plain values.
        knobs: what every launcher is told.
    """
    launcher = launchers.resolve(name)
    own = settings_for(launcher, settings, "launcher", f"launcher={name}")
    if offers(launcher, LooksAhead):
        launcher.look_ahead(**knobs, **own)


def launch(
    name: str,
    function: str,
    calls: Sequence[Call],
    watch: Callable[[], None] = lambda: None,
    settings: Mapping[str, Any] | None = None,
    **knobs: Any,
) -> list[Outcome]:
    """Make all calls; one that fails does not stop the others, but those that wait for it.

    A launcher is called as `launcher(function, calls, watch=watch, **knobs)` and returns the outcomes in the order of
    the calls. One that has an attribute `takes_graphs` honours `Call.after` itself; any other gets the calls in
    turns, each of them free to start. `Call.needs` says what there must be room for; who does not look at it makes
    as many calls at once as `workers` says.

    Args:
        name: a registered launcher, or `module:object`.
        function: `module:function`, imported where the calls are made.
        calls: those to be made.
        watch: called a few times a second by the launching process, to show progress.
        settings: the launcher's own, as plain values; it gets them as `settings`, the dataclass that it declares.
        knobs: what every launcher is told: workers, threads, grace, deadlines.

    Returns:
        The outcomes in the order of `calls`.

    Raises:
        InputError: where calls wait for one another in a circle.
    """
    launcher, order = launchers.resolve(name), Order(calls)
    own = settings_for(launcher, settings or {}, "launcher", f"launcher={name}")
    if offers(launcher, TakesGraphs):
        return launcher(function, calls, watch=watch, **knobs, **own)
    while not order.over:
        turn = order.ready()
        free = [replace(calls[index], after=()) for index in turn]
        for index, outcome in zip(turn, launcher(function, free, watch=watch, **knobs, **own), strict=True):
            order.end(index, outcome)
    return order.results


def usable_cores() -> int:
    """The cores that this process may use, by its affinity and by its control group's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(cores, int(quota) // int(period)))
    except (OSError, ValueError):
        return cores


def calls_at_once(workers: int | str, threads: int, calls: int) -> int:
    """How many of so many calls a machine makes at the same time; `auto` is one a usable core."""
    if workers == "auto":
        workers = max(1, usable_cores() // threads)
    return max(1, min(int(workers), calls))


def keep_freed_memory() -> bool:
    """Make glibc keep large freed blocks; mapping them anew takes half of a small CNN's training time on a CPU.

    Returns whether the allocator is glibc's and took the setting.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        libc = ctypes.CDLL("libc.so.6")
        gigabyte = 1 << 30
        settings = ((M_MMAP_THRESHOLD, gigabyte), (M_TRIM_THRESHOLD, gigabyte), (M_TOP_PAD, 64 << 20))
        taken = [libc.mallopt(key, value) for key, value in settings]
        return taken == [1] * len(settings)
    except (OSError, AttributeError):
        return False
