"""From where on a task counts as hard: a number, or what the scores of the tasks themselves say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lcd.envs.errors import InputError, nearest

if TYPE_CHECKING:
    import pandas as pd

SIGNS = {"phi": "φ", "psi": "ψ"}
RULES = {
    "median": "the median of the group's tasks, which makes half of them hard",
    "largest-gap": "the middle of the widest gap between the scores of the group's tasks",
}
EXPECTED = f"a number, {', '.join(RULES)}, or one for each score ({{phi: 0.5, psi: median}})"


@dataclass(frozen=True)
class HardFrom:
    """From where on the scaled scores of a group's tasks are hard.

    Attributes:
        phi, psi: a number, or one of `RULES`.
    """

    phi: float | str = 0.5
    psi: float | str = 0.5

    @classmethod
    def parse(cls, key: str, value: Any) -> HardFrom:
        """What a config says, refused where it cannot be meant.

        Args:
            key: the config key, for the error's sentence.
            value: a number or rule for both scores, or one for each.
        """
        if not isinstance(value, Mapping):
            return cls(_checked(key, value), _checked(key, value))
        for name in value:
            if name not in SIGNS:
                raise InputError(f"{key}.{name} is no score: {nearest(str(name), SIGNS)}")
        return cls(**{name: _checked(f"{key}.{name}", each) for name, each in value.items()})

    def of(self, group: pd.DataFrame) -> dict[str, float]:
        """Score to the number from which on it is hard.

        Args:
            group: the rows of a diagnosis' table that are scaled together. NaN comes of a rule without scores.
        """
        return {name: _number(getattr(self, name), group[name].to_numpy(float)) for name in SIGNS}

    def border(self, score: str, raw: Sequence[float]) -> dict[int, float] | None:
        """Which tasks set the unscaled number from which on a score is hard: place to weight; None where none does.

        Args:
            score: one of `SIGNS`.
            raw: the unscaled scores of a group's tasks; NaN where a task sets no scale.
        """
        import numpy as np

        order = [int(place) for place in np.argsort(raw, kind="stable") if math.isfinite(raw[place])]
        if len(order) < 2:
            return None
        rule = getattr(self, score)
        if rule == "median":
            middle = order[(len(order) - 1) // 2 : len(order) // 2 + 1]
            return dict.fromkeys(middle, 1 / len(middle))
        if rule == "largest-gap":
            widest = int(np.diff(np.asarray(raw)[order]).argmax())
            return {order[widest]: 0.5, order[widest + 1]: 0.5}
        return {order[0]: 1 - rule, order[-1]: rule}

    @property
    def words(self) -> str:
        """What counts as hard, for a reader."""
        told = {name: f"{rule:g}" if isinstance(rule, int | float) else RULES[rule] for name, rule in self._rules()}
        if self.phi == self.psi:
            return f"a scaled score of at least {told['phi']}"
        return " and ".join(f"a scaled {SIGNS[name]} of at least {words}" for name, words in told.items())

    @property
    def depends_on_tasks(self) -> bool:
        """Whether the number is known only once the scores are."""
        return any(isinstance(rule, str) for _, rule in self._rules())

    def _rules(self) -> list[tuple[str, float | str]]:
        return [(name, getattr(self, name)) for name in SIGNS]


FROM_HALF = HardFrom()
"""Half of the way from the easiest task to the hardest."""


def _checked(key: str, value: Any) -> float | str:
    if isinstance(value, str) and value in RULES:
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise InputError(f"{key}={value} must be {EXPECTED}.")


def _number(rule: float | str, scores: Any) -> float:
    import numpy as np

    if not isinstance(rule, str):
        return float(rule)
    known = np.sort(scores[np.isfinite(scores)])
    if len(known) < 2:
        return math.nan
    if rule == "median":
        return float(np.median(known))
    gaps = np.diff(known)
    widest = int(gaps.argmax())
    return float(known[widest] + gaps[widest] / 2)
