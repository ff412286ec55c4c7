"""Runs that a diagnosis leaves out, because they failed or diverged or their curves are not what was promised."""

from __future__ import annotations

from dataclasses import dataclass

STATES = {
    "diverged": "a run came to numbers that are not finite, and is left out",
    "failed": "a run failed, and is left out",
    "invalid": "a run's curve is not what its config promises, and is left out",
}
"""State to what it means; a task of which several runs are left out has the first of theirs."""


@dataclass(frozen=True)
class LeftOut:
    """A run that takes no part in a diagnosis.

    Attributes:
        benchmark, task, view, frontend, reward_p, shaping, agent: its condition, as curves call it.
        run: its id.
        state: one of `STATES`.
        reason: why, in a sentence's words.
        aside: whether it has no part in φ and ψ anyway: it learns one task after another, or points of a family alone.
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
