"""What somebody else's run has told, from wherever it was read: plain numbers and texts alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

DEEPEST = 8
"""Keys within keys that are read."""


@dataclass
class ReadRun:
    """What a run has told.

    Attributes:
        id, name, group, job_type: as W&B calls them; of files the name is where they lie below what was given.
        config: on one level, nested keys joined by dots.
        summary: likewise.
        history: one mapping a step, or a table with a row a step.
        usual: how such a run is read where the user's map says nothing.
        of_episodes: whether a row is an episode of training, instead of an evaluation or a mean.
    """

    id: str = ""
    name: str = ""
    group: str = ""
    job_type: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] | pd.DataFrame = field(default_factory=list)
    usual: Mapping[str, Any] = field(default_factory=dict)
    of_episodes: bool = False

    @property
    def table(self) -> pd.DataFrame:
        """The history with a row a step."""
        import pandas as pd

        return pd.DataFrame(self.history) if isinstance(self.history, list) else self.history


def plain(value: Any, key: str, depth: int = 0) -> dict[str, Any]:
    """Numbers and texts by their dotted keys; what else there is, is left out."""
    if isinstance(value, dict) and depth < DEEPEST:
        found: dict[str, Any] = {}
        for name, inner in value.items():
            found |= plain(inner, f"{key}.{name}" if key else str(name), depth + 1)
        return found
    return {key: value} if isinstance(value, str | int | float | bool) else {}
