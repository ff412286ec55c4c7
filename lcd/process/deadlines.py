"""When work that does not end is given up, and the signs of progress by which that is told.

The deadlines are keys of the commands that train (`lcd.config.schema_parts.DeadlinesConfig`); they are no part of what
a run is.

`beat` is called where something was done: after a step of the environments, an update, a batch. The process that
launched a worker hears of it, and ends a worker from which it hears nothing: so it also catches what no process notices
by itself, a step that never returns from a user's Python or C. That the worker's process lives would say nothing: the
thread that reports beats lives on while the others wait for ever. An evaluation whose steps return but whose episodes
never end goes on beating, and so it looks at its own deadline.
"""

from __future__ import annotations

import time

from lcd.config.schema_parts import DeadlinesConfig

_beats = 0
_in_force = DeadlinesConfig()


def beat() -> None:
    """Something was done."""
    global _beats
    _beats += 1


def count_beats() -> int:
    """How often something was done in this process."""
    return _beats


def set_deadlines(deadlines: DeadlinesConfig) -> None:
    """These are the deadlines of this process from now on."""
    global _in_force
    _in_force = deadlines


def current_deadlines() -> DeadlinesConfig:
    """The deadlines of this process."""
    return _in_force


class Countdown:
    """Waits for so many seconds from the last sign of progress.

    No look counts for more than a tenth of them (or a second): a job that a cluster suspended for hours has not hung.
    """

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.renew()

    def renew(self) -> None:
        """There was a sign of progress."""
        self._waited, self._looked = 0.0, time.monotonic()

    def is_over(self) -> bool:
        """Has it been too long? To be asked often."""
        now = time.monotonic()
        self._waited += min(now - self._looked, max(self.seconds / 10, 1.0))
        self._looked = now
        return self._waited >= self.seconds
