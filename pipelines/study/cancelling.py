"""Stopping a run from anywhere that sees its folder: a mark in it, at which whoever works on the run looks.

The mark stays until somebody lets the run go on, so that no command that comes later, a requeued job of a cluster say,
goes on with what was cancelled. It needs no lock, and says nothing by what is in it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from lcd.envs.errors import Cancelled
from lcd.files.atomic import write_atomic
from lcd.pipelines.study.hands import refuse_odd
from lcd.process.signals import Stopped, stop_this_process

MARK = "cancelled"
LOOK_EVERY_S = 2.0
SENTENCE = "it was cancelled: 'lcd retry' lets it go on"


def is_cancelled(folder: Path) -> bool:
    """Does somebody want a run not to be trained?"""
    return os.path.lexists(folder / MARK)


def cancel(folder: Path) -> None:
    """Have a run stopped, and not gone on with."""
    refuse_odd(folder)
    write_atomic(folder / MARK, "")


def let_go_on(folder: Path) -> None:
    """Take a run's mark away, if there is one."""
    refuse_odd(folder)
    (folder / MARK).unlink(missing_ok=True)


@contextlib.contextmanager
def stopping_when_cancelled(folder: Path) -> Iterator[None]:
    """Look at a run's mark while it is worked on: once it is there, the work stops as for a signal.

    Raises:
        Cancelled: where that was so, or the mark was there before.
    """
    if is_cancelled(folder):
        raise Cancelled(SENTENCE)
    over, cancelled, deciding = threading.Event(), threading.Event(), threading.Lock()

    def look() -> None:
        while not over.wait(LOOK_EVERY_S):
            with deciding:
                if not over.is_set() and is_cancelled(folder):
                    cancelled.set()
                    over.set()
                    stop_this_process()

    threading.Thread(target=look, daemon=True).start()
    try:
        try:
            yield
        finally:
            # Who is done must not be stopped any more: the signal would strike what comes next.
            with deciding:
                over.set()
    except Stopped:
        if cancelled.is_set():
            raise Cancelled(SENTENCE) from None
        raise
