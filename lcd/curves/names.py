"""What curves call tasks; without pandas, for whoever names a run before it is trained."""

import re
from collections.abc import Mapping
from typing import Any

from lcd.config.nested import flatten

FAMILY = "family"
"""The context in which a task is all points of its family at once: curves' weighted mean over them."""
_VARIED = re.compile(r"(.*?[^=\[, ])\[(.+)\]", re.DOTALL)
"""A task and its changed knobs; a list that is the value of a knob in the task's own name is none of them."""


def varied_task(task: str, knobs: Mapping[str, Any]) -> str:
    """What curves call a task with changed knobs."""
    if not knobs:
        return task  # nearly always, and asked for each curve
    written = ",".join(f"{key}={value}" for key, value in sorted(flatten(knobs).items()))
    return f"{task}[{written}]"


def unvaried_task(name: str) -> str:
    """The task of `varied_task`."""
    found = _VARIED.fullmatch(name)
    return found[1] if found else name


def knobs_of_task(name: str) -> str:
    """The changed knobs of `varied_task`, as they are written there; empty without any."""
    found = _VARIED.fullmatch(name)
    return found[2] if found else ""


def evaluated_name(task: str, context: str) -> str:
    """What a reader meets for a task that is evaluated in a context: `task@context`, or the task as it was trained."""
    return f"{task}@{context}" if context else task
