"""What curves call tasks; without pandas, for whoever names a run before it is trained."""

from collections.abc import Mapping
from typing import Any


def varied_task(task: str, knobs: Mapping[str, Any]) -> str:
    """What curves call a task with changed knobs."""
    written = ",".join(f"{key}={value}" for key, value in sorted(knobs.items()))
    return f"{task}[{written}]" if written else task


def evaluated_name(task: str, context: str) -> str:
    """What a reader meets for a task that is evaluated in a context: `task@context`, or the task as it was trained."""
    return f"{task}@{context}" if context else task
