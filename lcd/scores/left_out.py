"""Runs, and points of runs, that a diagnosis leaves out: they failed or diverged, or broke their configs' promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

STATES = {
    "diverged": "a run came to numbers that are not finite, and is left out",
    "failed": "a run failed, and is left out",
    "invalid": "a run's curve is not what its config promises, and is left out",
}
"""State to what it means; a task of which several runs are left out has the first of theirs."""
MOST_TOLD = 3
"""Points that are told one by one."""


@dataclass(frozen=True)
class LeftOut:
    """A run, or what of one, takes no part in a diagnosis.

    Attributes:
        benchmark, task, view, frontend, reward_p, shaping, agent: its condition, as curves call it.
        run: its id.
        state: one of `STATES`.
        reason: why, in a sentence's words.
        aside: whether it has no part in φ and ψ anyway: it learns one task after another, or points of a family alone.
        part: whether it is only points of a run, which went on without them.
    """

    benchmark: str
    task: str
    view: str
    frontend: str
    reward_p: float
    shaping: str
    agent: str
    run: str
    state: str
    reason: str
    aside: bool = False
    part: bool = False

    @property
    def condition(self) -> str:
        """What tells the run from others of its task."""
        names = [self.view, f"p={self.reward_p:g}", self.agent]
        names += [name for name in (self.frontend, self.shaping) if name not in ("identity", "none")]
        return f"{', '.join(names)} (run {self.run})"

    @property
    def sentence(self) -> str:
        """What a reader is told."""
        return f"{self.task}, {self.condition}, is left out. It {self.outcome}."

    @property
    def outcome(self) -> str:
        """The state and its reason."""
        state = "is invalid" if self.state == "invalid" else self.state
        return f"{state}: {self.reason.rstrip('.')}"


def told_points(why: Mapping[str, str]) -> str:
    """Points of a family that diverged, and why, the first of them by name."""
    told = "; ".join(f"{point} ({reason})" for point, reason in [*why.items()][:MOST_TOLD])
    more = len(why) - MOST_TOLD
    return told + (f"; and {more} more" if more > 0 else "")
