"""How much longer a task at the floor would have to be trained, if its returns go on as they have."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lcd.curves.index import Curve
from lcd.scores.diagnosis import Diagnosis
from lcd.statistics.intervals import BOOTSTRAP_SEED

SHARE = 0.5
"""The last part of a curve, whose straight line is prolonged."""
DRAWS = 2000
LEVELS = (0.1, 0.9)
FURTHEST = 1000.0
"""Times the steps that were trained: what is beyond is no forecast."""


class Longer(NamedTuple):
    """Steps after which the mean area would leave the floor; low and high hold 80 % of what seeds allow.

    Infinite where returns do not rise.
    """

    steps: float
    low: float
    high: float
    trained: float
    condition: str


def steps_to_leave_the_floor(curves: Mapping[int, Curve], floor: float, condition: str = "") -> Longer:
    """From where on the area under a condition's mean curve is above the floor, its last half prolonged.

    Each seed's last half has a straight line (least squares); the mean line of the seeds is prolonged, and again of
    seeds that are drawn anew. One seed has no bounds.

    Args:
        curves: seed → steps and normalised returns.
        floor: the area that has to be left.
        condition: what it is called.
    """
    last = min(float(steps[-1]) for steps, _ in curves.values())
    fits = np.array([_fit(steps, values, last) for steps, values in curves.values()])
    draws = np.random.default_rng(BOOTSTRAP_SEED).integers(0, len(fits), (DRAWS, len(fits)))
    drawn = [_reached(fits[each].mean(axis=0), last, floor) for each in draws] if len(fits) > 1 else [math.nan]
    low, high = np.quantile(np.array(drawn), LEVELS, method="inverted_cdf")
    return Longer(_reached(fits.mean(axis=0), last, floor), float(low), float(high), last, condition)


def _fit(steps: np.ndarray, values: np.ndarray, last: float) -> tuple[float, float, float]:
    """A seed's area so far, and its straight line over the last part: height at the end, rise a step."""
    grid = np.unique(np.append(steps[steps < last], last))
    heights = np.interp(grid, steps, values)
    area = float(np.sum(np.diff(grid) * (heights[1:] + heights[:-1]) / 2))
    late = grid >= (1 - SHARE) * last
    if late.sum() < 2:
        late = np.arange(len(grid)) >= len(grid) - 2
    rise, height = np.polyfit(grid[late] - last, heights[late], 1)
    return area, float(height), float(rise)


def _reached(fit: np.ndarray, last: float, floor: float) -> float:
    """The steps S at which (area + height·t + rise·t²/2)/S is the floor, t being S − last.

    Args:
        fit: area, height and rise, as `_fit` gives them.
        last: the steps that were trained.
        floor: as of `steps_to_leave_the_floor`.
    """
    area, height, rise = map(float, fit)
    if area / last > floor:
        return last
    # rise/2 t² + (height − floor) t + (area − floor·last) = 0, whose last term is below 0.
    a, b, c = rise / 2, height - floor, area - floor * last
    root = b * b - 4 * a * c
    if abs(a) < 1e-300:
        more = -c / b if b > 0 else math.inf
    elif root < 0:
        more = math.inf
    else:
        times = sorted(t for t in ((-b + math.sqrt(root)) / (2 * a), (-b - math.sqrt(root)) / (2 * a)) if t > 0)
        more = times[0] if times else math.inf
    return last + more if more < FURTHEST * last else math.inf


def floor_sentences(diagnosis: Diagnosis) -> list[str]:
    """What each task at the floor would need, by the condition that leaves it first."""
    if diagnosis.curves.empty:
        return []
    told = []
    for _, row in diagnosis.table[diagnosis.table["status"] == "floor"].iterrows():
        found: list[Longer] = []
        for condition in diagnosis.conditions(row["benchmark"]).values():
            curves = diagnosis.curves_under(row, condition)
            if curves and min(len(steps) for steps, _ in curves.values()) >= 3:
                found.append(steps_to_leave_the_floor(curves, diagnosis.thresholds.floor, condition.label))
        if found:
            told.append(_sentence(str(row["task"]), _whose(row), found))
    return told


def _whose(row: Mapping[Hashable, Any]) -> str:
    """Who is at the floor: the agent, and its front-end and shaping where it has one."""
    named = {"front-end": (row["frontend"], "identity"), "shaping": (row["shaping"], "none")}
    return ", ".join([str(row["agent"]), *(f"{kind} {name}" for kind, (name, usual) in named.items() if name != usual)])


def _sentence(task: str, whose: str, found: Sequence[Longer]) -> str:
    first = min(found, key=lambda each: each.steps)
    if math.isinf(first.steps):
        return (
            f"{task} ({whose}) is at the floor, and its returns do not rise in the last half of training: nothing "
            "tells how much longer it would take. Another agent, other settings or a shorter task may."
        )
    between = "one seed cannot tell how sure this is"
    if not math.isnan(first.low):
        between = f"{_times(first.low, first.trained)} to {_times(first.high, first.trained)}, 80 % over seeds"
    return (
        f"{task} ({whose}) is at the floor. If its returns go on as in the last half of training, {first.condition} "
        f"leaves it after about {first.steps:,.0f} steps, {_times(first.steps, first.trained)} the "
        f"{first.trained:,.0f} that were trained ({between}); no curve has to go on as it did."
    )


def _times(steps: float, trained: float) -> str:
    return f"{steps / trained:.1f} times" if math.isfinite(steps) else "never"
