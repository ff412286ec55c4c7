"""A launcher that makes calls one after the other in this process; a queue of a cluster's takes its place."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from lcd.pipelines.launch.launchers import Call, Outcome


@dataclass(frozen=True)
class Pace:
    """Settings: `launcher=in_turn launcher.pause=0.5`.

    Attributes:
        pause: seconds between two calls.
    """

    pause: float = 0.0


def launch(
    function: str, calls: Sequence[Call], *, watch: Callable[[], None], settings: Pace, **common: Any
) -> list[Outcome]:
    """Runs one after the other in the process that was started.

    Args:
        function: `module:function`, which is called.
        calls: its arguments.
        watch: shows progress; called now and then.
        settings: what the user sets.
        common: what every launcher is told (workers, threads, grace, …).

    Returns:
        How each call ended, in their order; one that fails does not stop the others.
    """
    module, _, name = function.partition(":")
    work, outcomes = getattr(import_module(module), name), []
    for call in calls:
        try:
            work(*call.arguments)
            outcomes.append(Outcome(call))
        except Exception as error:
            outcomes.append(Outcome(call, f"{type(error).__name__}: {error}"))
        watch()
        time.sleep(settings.pause)
    return outcomes
