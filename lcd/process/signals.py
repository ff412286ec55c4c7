"""How a process is told to stop: by SIGTERM or SIGUSR1, which clusters send ahead of a time limit, or by SIGHUP.

SIGHUP comes when the terminal goes away; a process that was started to outlive it (nohup) goes on.

A command or a worker that was stopped ends with `CONTINUE_ME`; the same command goes on from what it kept. A process
that is at something which is worth finishing says so by `deferring_stops`: it is then asked, not interrupted, and looks
at `stop_requested()` when it comes to a point where it can stop. A second signal interrupts it all the same, unless it
comes with the first: a cluster tells every process of a job, and the one that started them passes it on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

CONTINUE_ME = os.EX_TEMPFAIL if hasattr(os, "EX_TEMPFAIL") else 75
"""The exit status of what was stopped and may be continued (EX_TEMPFAIL of sysexits.h, 75)."""
SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGUSR1") if hasattr(signal, name))

ECHO_S = 2.0
"""Signals within so many seconds are one."""

_patient = False
_asked = False
_asked_at = 0.0


class Stopped(BaseException):
    """This process was told to stop; what is on the disk is continued by the next start."""


def handle_stop_signals() -> None:
    """Take the signals in from now on; of use in a process's main thread only."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            # nohup has this one ignored.
            if signal.Signals(number).name != "SIGHUP" or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _stop)


@contextlib.contextmanager
def stopping_once(numbers: Iterable[int]) -> Iterator[list[int]]:
    """Take signals in while this lasts, whoever did before: the first raises `Stopped`, and no other one anything.

    Gives the list of those that came.
    """
    told: list[int] = []

    def stop(number: int, _: Any) -> None:
        told.append(number)
        if len(told) == 1:
            raise Stopped

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def deferring_stops() -> Iterator[None]:
    """Be asked to stop, not interrupted, while this lasts; who was asked and did not stop does so at its end."""
    global _patient, _asked
    _patient, _asked = True, False
    try:
        yield
    finally:
        _patient = False
    if _asked:
        raise Stopped


@contextlib.contextmanager
def keeping(what: str) -> Iterator[None]:
    """While this lasts a command that is stopped says that `what` is kept."""
    try:
        yield
    except (KeyboardInterrupt, Stopped) as told:
        told.add_note(what)
        raise


def kept(told: BaseException) -> str:
    """What a command that was stopped has kept; empty where that is nothing, or not known."""
    return next(iter(vars(told).get("__notes__", [])), "")


def stop_this_process() -> None:
    """What SIGTERM from outside would do, where `handle_stop_signals` takes it in; of use from any thread."""
    if signal.getsignal(signal.SIGTERM) is _stop:
        os.kill(os.getpid(), signal.SIGTERM)


def stop_requested() -> bool:
    """Has a signal come since `deferring_stops` began?"""
    return _patient and _asked


def _stop(*_: Any) -> None:
    global _asked, _asked_at
    if not _patient or (_asked and time.monotonic() - _asked_at > ECHO_S):
        raise Stopped
    if not _asked:
        _asked, _asked_at = True, time.monotonic()
