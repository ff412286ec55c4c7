"""The metrics of lifelong learning of Baker et al. (2023), of a curriculum's returns and of its tasks learned alone.

"A domain-agnostic approach for characterization of lifelong learning systems", Neural Networks 160; choices that the
paper leaves open are those of its package l2metrics. R[i, j] and b[j] are those of `lcd.analyses.transfer`, whose rows
are the paper's evaluation blocks: one before the first stage, and one after each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from lcd.curves.spans import area

OF_RETURNS = {
    "maintenance": "performance maintenance: change of a task's return from the end of its latest stage to later ends",
    "forward_ratio": "forward transfer: a task's return after another's stage, divided by that before, until it is "
    "trained itself",
    "forward_contrast": "the same, as the difference divided by the sum",
    "backward_ratio": "backward transfer: a task's return after another's stage, divided by that before, once it has "
    "been trained",
    "backward_contrast": "the same, as the difference divided by the sum",
}
OF_EXPERTS = {
    "relative_performance": "area under a task's curve in its own stages, divided by that of an agent which learns it "
    "alone, over as many steps",
    "sample_efficiency": "greatest return there, divided by that alone, times the steps to it alone, divided by those "
    "there",
}
Curve = tuple[np.ndarray, np.ndarray]
"""Steps of training on a task, from 0, and returns."""


def of_returns(returns: np.ndarray, stages: Sequence[int]) -> dict[str, float]:
    """`OF_RETURNS` of one matrix; not a number where nothing can be compared.

    Args:
        returns: (stages + 1, tasks): b, then R.
        stages: the column of the task that each stage trains.

    Note:
        With s the latest stage of task j before stage l, maintenance is the mean over l of R[l, j] - R[s, j], then over
        tasks. A stage i of another task transfers forward to j where j has no stage before it, and backward where it
        has one: R[i, j] / R[i-1, j] (R[0] being b) and (R[i, j] - R[i-1, j]) / (R[i, j] + R[i-1, j]), averaged over
        all such pairs. Ratios need a return above 0 before the stage, contrasts a sum above 0.
    """
    forward: list[tuple[float, float]] = []
    backward: list[tuple[float, float]] = []
    kept: dict[int, list[float]] = {}
    latest: dict[int, int] = {}
    for stage, trained in enumerate(stages, start=1):
        for task in range(returns.shape[1]):
            if task == trained:
                continue
            pair = (float(returns[stage - 1, task]), float(returns[stage, task]))
            (backward if task in latest else forward).append(pair)
            if task in latest:
                kept.setdefault(task, []).append(float(returns[stage, task] - returns[latest[task], task]))
        latest[trained] = stage
    return {
        "maintenance": _mean(float(np.mean(changes)) for changes in kept.values()),
        "forward_ratio": _mean(after / before for before, after in forward if before > 0),
        "forward_contrast": _mean(
            (after - before) / (after + before) for before, after in forward if after + before > 0
        ),
        "backward_ratio": _mean(after / before for before, after in backward if before > 0),
        "backward_contrast": _mean(
            (after - before) / (after + before) for before, after in backward if after + before > 0
        ),
    }


def of_experts(own: Iterable[Curve], alone: Iterable[Curve]) -> dict[str, float]:
    """`OF_EXPERTS`, averaged over tasks.

    Args:
        own: each task's curve over its stages of the curriculum.
        alone: its curve when nothing else is trained.
    """
    found = [_beside(mine, expert) for mine, expert in zip(own, alone, strict=True)]
    return {name: _mean(each[place] for each in found) for place, name in enumerate(OF_EXPERTS)}


def _beside(mine: Curve, expert: Curve) -> tuple[float, float]:
    """A task's relative performance and sample efficiency; without smoothing, as evaluations are means already."""
    last = min(mine[0][-1], expert[0][-1])
    areas = [area(*curve, 0.0, last) for curve in (mine, expert)]
    relative = areas[0] / areas[1] if areas[1] > 0 else math.nan
    (best, steps), (best_alone, steps_alone) = (_saturation(curve) for curve in (mine, expert))
    if best_alone <= 0 or steps == 0:
        return relative, math.nan
    return relative, best / best_alone * steps_alone / steps


def _saturation(curve: Curve) -> tuple[float, float]:
    """The greatest return, and the steps until it was reached first."""
    place = int(curve[1].argmax())
    return float(curve[1][place]), float(curve[0][place])


def _mean(values: Iterable[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return float(np.mean(finite)) if finite else math.nan
