"""What `lcd check` looks at: tasks as they are to be trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """A task as it is to be trained.

    Attributes:
        views: those that are compared.
        steps: of each seed.
        gamma: the agent's; None: it has none.
        moments, patience: how many steps are looked at, and for how many seconds at most.
    """

    benchmark: str
    task: str
    views: tuple[str, ...]
    knobs: dict[str, Any]
    steps: int
    evaluation: dict[str, Any]
    gamma: float | None
    moments: int
    patience: float
    seed: int
