"""What is measured of one task, and why a score may not be told."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lcd.curves.index import Curve, CurveIndex
from lcd.scores.contrasts import (
    DEFINITIONS,
    HEADLINE,
    LETTER,
    PERCEPTION,
    REWARD,
    Contrast,
    StepsFormula,
    all_conditions,
)
from lcd.scores.left_out import STATES
from lcd.scores.scoring import TaskSamples, common_steps, curves_by_condition, samples_between, score_columns
from lcd.statistics.confidence import LEVEL
from lcd.statistics.intervals import bootstrap, iqm

ENDS = ("", "_low", "_high")
ROUNDING = 1e-9  # what floating point may add to an area must not decide a status
NO_RANGE = "no_range"
NO_PIXELS_SIGNAL = f"no_{PERCEPTION.baseline}_signal"
GUARDED = ("floor", NO_PIXELS_SIGNAL)
"""Statuses of scores that our own definition drops; the paper's are told, because the paper scores all tasks."""
UNRESOLVED = "unresolved"
STATUSES = {
    "ok": "scored",
    "floor": "unsolved under every condition: not diagnosable at this budget",
    NO_PIXELS_SIGNAL: (
        f"nothing learned from {PERCEPTION.baseline}: a ratio to it says little, the gain is told as a difference"
    ),
    "ceiling": "solved at once under every condition: easy",
    "single_task": "the only diagnosable task: there is nothing to scale its score against",
    "no_spread": "all tasks score the same: there is nothing to scale by",
    PERCEPTION.lacks: f"not trained on all views: φ needs {', '.join(PERCEPTION.values)}",
    REWARD.lacks: (
        f"not trained at every reward p: ψ needs {', '.join(f'{p:g}' for p in REWARD.values)} on the most solved view"
    ),
    **STATES,
    NO_RANGE: "R_max (or R_min) is not known: returns are told as they are, and nothing that divides by the range is",
    "missing_values": "not trained at every value of the contrast",
    "no_baseline_signal": "nothing learned in the baseline, which the score divides by",
    "at_least": "the slower condition gets to few of the returns in the budget: the factor in steps is at least this",
    "at_most": "what should be faster gets to few of the returns in the budget: the factor in steps is at most this",
    UNRESOLVED: "no evaluation between the first and the last tells the conditions' returns apart: no factor in steps",
}
OPEN = {0: "ok", 1: "at_least", -1: "at_most"}
"""What a score in steps is, by `lcd.statistics.alignment.Shift.open`."""


@dataclass(frozen=True)
class Thresholds:
    """Where a task stops being diagnosable, in normalised return.

    Attributes:
        floor: a task whose every condition has a mean AUC of at most this is unsolved.
        ceiling: a task whose every condition has a mean AUC of at least this is solved at once.
        no_signal: an AUC on pixels of at most this (the ε of the definitions) cannot be divided by.
        overlap: least share of the steps that the curves of a task must have in common.
    """

    floor: float = 0.05
    ceiling: float = 0.95
    no_signal: float = 0.01
    overlap: float = 0.9


class TaskNumbers(dict[str, Any]):
    """What is measured of one task: areas and last returns of its conditions, and the scores of every formula."""

    def __init__(
        self,
        index: CurveIndex,
        row: Mapping[str, Any],
        solved: str,
        thresholds: Thresholds,
        levels: Mapping[str, float],
    ) -> None:
        super().__init__(seeds=0)
        self.without_range: set[str] = set()
        self.open: dict[str, str] = {}
        self.index, self.row, self.solved, self.thresholds, self.levels = index, row, solved, thresholds, levels

    def add(self, asked: Sequence[Contrast]) -> TaskSamples:
        """Measure some contrasts over the steps that all of their conditions span; returns the per-seed areas."""
        curves = curves_by_condition(self.index, self.row, self.solved, asked)
        if not curves:
            return TaskSamples((), (), (), self.solved, tuple(asked))
        conditions = all_conditions(asked, self.solved)
        if not all(self.index.has_range(self.row, conditions[name]) for name in curves):
            return self._leave_out(asked, curves)
        names, least = list(curves), self.thresholds.no_signal
        where, overlap = f"task '{self.row['task']}'", self.thresholds.overlap
        agents = {name: self.index.key_under(self.row, conditions[name])["agent"] for name in names}
        if any(contrast.follows_stages for contrast in asked):
            steps = {name: common_steps({name: curves[name]}, agents, where, overlap) for name in names}
        else:
            steps = dict.fromkeys(names, common_steps(curves, agents, where, overlap))
        samples = samples_between(curves, steps, self.solved, asked)
        finals = [np.array([np.interp(steps[name][1], *curve) for curve in curves[name].values()]) for name in names]
        estimate, interval = samples.intervals(least, self.levels)
        found = bounded([*(f"auc_{name}" for name in names), *score_columns(asked)], estimate, *interval)
        for column, (shift, ends) in samples.shift_intervals(self.levels).items():
            found |= bounded([column], [shift.value], *([end] for end in ends))
            self.open[column] = UNRESOLVED if np.isnan(shift.value) else OPEN[int(shift.open)]
        strictest = max([LEVEL, *self.levels.values()])
        spread = bootstrap(finals, lambda averages: averages, seeds=samples.seeds, aggregate=iqm, level=strictest)
        found |= bounded([f"final_{name}" for name in names], [iqm(final) for final in finals], *spread)
        first = {"seeds": samples.count, "steps": max(high for _, high in steps.values())} if not self["seeds"] else {}
        # A further contrast may span fewer steps: the areas shown are those of φ and ψ.
        self.update({name: value for name, value in found.items() if name not in self} | first)
        return samples

    def _leave_out(self, asked: Sequence[Contrast], curves: Mapping[str, Mapping[int, Curve]]) -> TaskSamples:
        """Note that contrasts have no scores, because returns without a range are on no common scale."""
        self.without_range |= {contrast.name for contrast in asked}
        if not self["seeds"]:
            seeds = min(map(len, curves.values()))
            self.update(seeds=seeds, steps=min(steps[-1] for each in curves.values() for steps, _ in each.values()))
        return TaskSamples((), (), (), self.solved, tuple(asked))

    def areas(self, contrasts: Sequence[Contrast]) -> dict[str, float]:
        """Condition → its mean area, of those conditions that were trained."""
        known = {name: self.get(f"auc_{name}", math.nan) for name in all_conditions(contrasts, self.solved)}
        return {name: value for name, value in known.items() if not math.isnan(value)}


def bounded(names: list[str], *ends: Any) -> dict[str, float]:
    """Estimates, lower and upper bounds as columns of the table."""
    return {
        name + end: float(values[index])
        for end, values in zip(ENDS, ends, strict=True)
        for index, name in enumerate(names)
    }


def judge(numbers: TaskNumbers, contrasts: Sequence[Contrast], definition: str) -> dict[str, Any]:
    """The numbers with their statuses, without the scores that these rule out."""
    judged: dict[str, Any] = dict(numbers)
    for contrast in contrasts:
        for formula in contrast.formulas:
            reason = _status(numbers, contrast, formula)
            in_steps = isinstance(contrast.formulas[formula], StepsFormula)
            ruled = in_steps or formula in DEFINITIONS or formula == contrast.formula_under(definition)
            if in_steps:
                judged[f"{contrast.name}_{formula}_status"] = reason
            # The paper scores every game: what speaks against it is said beside the number, by status and warning.
            told = reason in OPEN.values() or (formula == LETTER and contrast in HEADLINE and reason in GUARDED)
            if ruled and not told:
                judged |= {f"{contrast.name}_{formula}{end}": math.nan for end in ENDS}
            if formula == contrast.formula_under(definition):
                judged[f"{contrast.name}_status"] = reason
                raw = {
                    f"{contrast.name}_raw{end}": judged.get(f"{contrast.name}_{formula}{end}", math.nan) for end in ENDS
                }
                judged |= raw
    return judged | {"status": _status_of_task(numbers, judged, definition)}


def _status_of_task(numbers: TaskNumbers, judged: Mapping[str, Any], definition: str) -> str:
    """One word for the task as φ and ψ see it."""
    if PERCEPTION.name in numbers.without_range:
        return NO_RANGE
    areas, thresholds = numbers.areas(HEADLINE), numbers.thresholds
    if _unsolved(areas.values(), thresholds):
        return "floor"
    if judged[f"{PERCEPTION.name}_status"] == NO_PIXELS_SIGNAL or (
        PERCEPTION.formulas[definition].needs == "baseline"
        and areas.get(PERCEPTION.baseline, math.inf) <= thresholds.no_signal + ROUNDING
    ):
        return NO_PIXELS_SIGNAL
    if areas and min(areas.values()) >= thresholds.ceiling - ROUNDING:
        return "ceiling"
    lacking = all(judged[f"{contrast.name}_status"] == contrast.lacks for contrast in HEADLINE)
    return PERCEPTION.lacks if lacking else "ok"


def _status(numbers: TaskNumbers, contrast: Contrast, formula: str) -> str:
    """Why a contrast has no score by a formula, or "ok"."""
    if contrast.name in numbers.without_range:
        return NO_RANGE
    thresholds, needs = numbers.thresholds, contrast.formulas[formula].needs
    known = numbers.areas(HEADLINE if contrast in HEADLINE else (contrast,))
    areas: list[Any] = [known.get(each.name) for each in contrast.conditions(numbers.solved)]
    if isinstance(contrast.formulas[formula], StepsFormula) and None not in areas:
        opened = numbers.open.get(f"{contrast.name}_{formula}", UNRESOLVED)
        return "floor" if _unsolved(areas, thresholds) else opened
    if needs in ("any", "baseline") and _unsolved(known.values(), thresholds):
        return "floor"
    if None in areas:
        return contrast.lacks
    if needs == "baseline" and areas[0] <= thresholds.no_signal + ROUNDING:
        return NO_PIXELS_SIGNAL if contrast is PERCEPTION else "no_baseline_signal"
    # Nothing is learned that the baseline could lose a share of; a score that counts what is missing has no such limit.
    if needs == "variants" and sum(areas[1:]) <= (len(areas) - 1) * thresholds.floor + ROUNDING:
        return "floor"
    return "ok"


def _unsolved(means: Iterable[float], thresholds: Thresholds) -> bool:
    means = list(means)
    return bool(means) and max(means) <= thresholds.floor + ROUNDING
