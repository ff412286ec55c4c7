"""What learning one task does to the others: transfer and forgetting by the matrix of GEM (Lopez-Paz and Ranzato 2017).

R[i, j] is the normalised held-out return on task j after stage i of a curriculum, b[j] that before any training: both
are rows of `lcd.analyses.outcomes`. Beside them are the metrics of Baker et al. (`lcd.analyses.lifelong`).
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses import lifelong
from lcd.analyses.outcomes import Outcome, outcomes
from lcd.curves.table import SETTING
from lcd.envs.errors import InputError
from lcd.files.atomic import write_atomic
from lcd.statistics.intervals import bootstrap

CURRICULUM = ("benchmark", "trained_on", *SETTING[1:])
AGAIN = re.compile(r" \(\d+\)$")
"""What follows a task's name in that of a stage that trains it again."""
GEM = {
    "average": "mean return over all tasks at the end",
    "backward": "backward transfer: change of earlier tasks' return from the end of their own stage to the very end",
    "forward": "forward transfer: return on a task just before its stage, above that before any training",
    "forgetting": "mean over earlier tasks of the best return on the way, less that at the very end",
}
"""Of Lopez-Paz and Ranzato, and of Chaudhry et al."""
MEASURES = GEM | lifelong.OF_RETURNS | lifelong.OF_EXPERTS


@dataclass(frozen=True)
class Transfer:
    """One curriculum's outcome.

    Attributes:
        key: what was trained: the columns `CURRICULUM` with their values.
        stages: their names, in order: that of the trained task, and which time it is if it comes again ("a (2)").
        tasks: the evaluated tasks, in the order in which they are trained first; in another context as `task@context`.
        ends: the step at which each stage ended.
        returns: (seeds, stages + 1, tasks): return before training (b) and after each stage (R), on the scale `scale`.
        measures: `MEASURES`, but for those of Baker et al. that cannot be told: (mean over seeds, low, high), with a
            95 % interval.
        curves: the held-out rows behind it, with the columns `normalised` and `evaluated`, one of `tasks`.
        scale: "normalised"; "return" where a task's range is not known, so that returns are as they are and there are
            no measures.
    """

    key: dict[str, Any]
    stages: tuple[str, ...]
    tasks: tuple[str, ...]
    ends: tuple[float, ...]
    returns: np.ndarray
    measures: dict[str, tuple[float, float, float]]
    curves: pd.DataFrame
    scale: str = "normalised"

    @property
    def matrix(self) -> np.ndarray:
        """(stages + 1, tasks): the returns, averaged over seeds; the first row is b."""
        return self.returns.mean(axis=0)

    def plain(self) -> dict[str, Any]:
        """Everything but the curves as plain values; what is not a number is None."""
        return {
            **self.key,
            "scale": self.scale,
            "stages": list(self.stages),
            "tasks": list(self.tasks),
            "ends": [float(end) for end in self.ends],
            "seeds": len(self.returns),
            "before": self.matrix[0].tolist(),
            "matrix": self.matrix[1:].tolist(),
            "measures": {
                name: dict(zip(("mean", "low", "high"), map(_finite, values), strict=True))
                for name, values in self.measures.items()
            },
        }


def transfers(curves: pd.DataFrame, alone: pd.DataFrame | None = None) -> list[Transfer]:
    """The outcome of every curriculum.

    Args:
        curves: checked curves with the column `normalised`; those without a stage are no curriculum's.
        alone: such curves of tasks that were trained by themselves, which relative performance is relative to.
    """
    if not len(curves):
        return []
    held_out = curves[(curves["split"] == "eval") & (curves["stage"] != "")]
    return [
        _transfer(dict(zip(CURRICULUM, key, strict=True)), rows, alone)
        for key, rows in held_out.groupby(list(CURRICULUM), sort=True)
    ]


def trained_task(stage: str, tasks: Sequence[str]) -> str:
    """The task that a stage trains, by the stage's name."""
    return stage if stage in tasks else AGAIN.sub("", stage)


def gem_measures(returns: np.ndarray, stages: list[int]) -> dict[str, float]:
    """The measures of one matrix.

    Args:
        returns: (stages + 1, tasks): b, then R.
        stages: the column of the task that each stage trains.

    Note:
        With T stages that train T tasks in order these are GEM's formulas: average is the mean of R[T, j]; backward the
        mean over i < T of R[T, i] - R[i, i]; forward the mean over i > 1 of R[i-1, i] - b[i]. Forgetting is that of
        Chaudhry et al. (2018): the mean over j < T of the greatest R[l, j] with l < T, less R[T, j]. Of a task that
        comes again, backward transfer counts from its last stage and forward transfer up to its first.
    """
    before, after = returns[0], returns[1:]
    last = len(stages) - 1
    first_stage = {task: stages.index(task) for task in stages}
    last_stage = {task: place for place, task in enumerate(stages)}
    earlier = [task for task in first_stage if last_stage[task] < last]
    backward = [after[last, task] - after[last_stage[task], task] for task in earlier]
    forgetting = [after[:last, task].max() - after[last, task] for task in earlier]
    forward = [after[place - 1, task] - before[task] for task, place in first_stage.items() if place > 0]
    return {
        "average": float(after[last].mean()),
        "backward": _mean(backward),
        "forward": _mean(forward),
        "forgetting": _mean(forgetting),
    }


def save_transfers(path: Path, found: list[Transfer]) -> None:
    """Write the matrices and measures as JSON."""
    write_atomic(path, json.dumps([transfer.plain() for transfer in found], indent=2, allow_nan=False) + "\n")


def _transfer(key: dict[str, Any], rows: pd.DataFrame, alone: pd.DataFrame | None) -> Transfer:
    unranged = bool(rows["normalised"].isna().any())
    if unranged:
        rows = rows.assign(normalised=rows["return_mean"])
    of_stages: dict[str, list[Outcome]] = {}
    for outcome in outcomes(rows):
        of_stages.setdefault(outcome.where["stage"], []).append(outcome)
    spans = _spans(key, of_stages)
    stages, ends = tuple(spans), tuple(end for _, end in spans.values())
    evaluated = sorted({outcome.evaluated for found in of_stages.values() for outcome in found})
    trained = [trained_task(stage, evaluated) for stage in stages]
    tasks = tuple(dict.fromkeys([*trained, *evaluated]))
    seeds = sorted(int(seed) for seed in rows["seed"].unique())
    returns = np.full((len(seeds), len(stages) + 1, len(tasks)), np.nan)
    for place, stage in enumerate(stages):
        for outcome in of_stages[stage]:
            for seed, (start, end) in outcome.steps.items():
                where = seeds.index(seed), tasks.index(outcome.evaluated)
                if end == ends[place]:
                    returns[where[0], place + 1, where[1]] = outcome.last[seed]
                if place == 0 and start == 0:
                    returns[where[0], 0, where[1]] = outcome.first[seed]
    if np.isnan(returns).any():
        raise InputError(
            f"The curriculum '{key['trained_on']}' of {key['agent']} on {key['benchmark']} lacks evaluations of all "
            "its tasks before training and at the end of each stage, for every seed: transfer needs them."
        )
    # As `evaluated_name` writes it, for all rows at once.
    task, context = (rows[name].astype(object) for name in ("task", "context"))
    rows = rows.assign(evaluated=task.where(context == "", task + "@" + context))
    scale = "return" if unranged else "normalised"
    whole = Transfer(key, stages, tasks, ends, returns, {}, rows, scale)
    return replace(whole, measures=_measures(whole, trained, seeds, alone))


def _measures(
    of: Transfer, trained: Sequence[str], seeds: Sequence[int], alone: pd.DataFrame | None
) -> dict[str, tuple[float, float, float]]:
    """The measures of a curriculum whose matrix is known."""
    if of.scale == "return":
        return dict.fromkeys(GEM, (math.nan,) * 3)
    columns = [of.tasks.index(task) for task in trained]
    experts = _experts(of.key, trained, alone)
    found = []
    for seed, returns in zip(seeds, of.returns, strict=True):
        mine = _own_curves(of, seed, returns, trained)
        of_seed = gem_measures(returns, columns) | lifelong.of_returns(returns, columns)
        of_seed |= lifelong.of_experts([mine[task] for task in experts], experts.values())
        found.append(of_seed)
    values = {name: np.array([of_seed[name] for of_seed in found]) for name in MEASURES}
    told = {name: each for name, each in values.items() if name in GEM or np.isfinite(each).all()}
    return {name: _with_interval(each) for name, each in told.items()}


def _experts(key: dict[str, Any], trained: Sequence[str], alone: pd.DataFrame | None) -> dict[str, lifelong.Curve]:
    """The trained tasks that were also learned alone, with everything else alike: each one's curve, mean over seeds."""
    found: dict[str, lifelong.Curve] = {}
    if alone is None or not len(alone):
        return found
    same = alone[alone["split"] == "eval"]
    for name in ("benchmark", *SETTING[1:]):
        same = same[same[name] == key[name]]
    for task in dict.fromkeys(trained):
        curve = same[same["task"] == task].groupby("step", sort=True)["normalised"].mean()
        if len(curve) > 1 and curve.index[0] == 0 and curve.notna().all():
            found[task] = (curve.index.to_numpy(float), curve.to_numpy(float))
    return found


def _own_curves(of: Transfer, seed: int, returns: np.ndarray, trained: Sequence[str]) -> dict[str, lifelong.Curve]:
    """Each task's held-out curve over the stages that train it, one after the other."""
    rows = of.curves[of.curves["seed"] == seed]
    found: dict[str, lifelong.Curve] = {}
    for place, (stage, task) in enumerate(zip(of.stages, trained, strict=True)):
        began = of.ends[place - 1] if place else 0.0
        mine = rows[(rows["stage"] == stage) & (rows["evaluated"] == task) & (rows["step"] > began)].sort_values("step")
        steps, values = found.get(task, (np.zeros(0), np.zeros(0)))
        if not len(steps):
            steps, values = np.zeros(1), returns[place, [of.tasks.index(task)]]
        more = steps[-1] + mine["step"].to_numpy(float) - began
        found[task] = np.concatenate([steps, more]), np.concatenate([values, mine["normalised"].to_numpy(float)])
    return found


def _spans(key: dict[str, Any], of_stages: dict[str, list[Outcome]]) -> dict[str, tuple[float, float]]:
    """Each stage's first and last step, in the order of the stages, which must follow each other."""
    spans = {}
    for stage, found in of_stages.items():
        steps = [span for outcome in found for span in outcome.steps.values()]
        spans[stage] = (min(start for start, _ in steps), max(end for _, end in steps))
    spans = dict(sorted(spans.items(), key=lambda item: item[1]))
    before = None
    for stage, (start, _) in spans.items():
        if before is not None and start <= spans[before][1]:
            raise InputError(
                f"The stages '{before}' and '{stage}' of the curriculum '{key['trained_on']}' overlap at step "
                f"{start:g}: a step at which a stage ends is that stage's alone, and one that trains a task again "
                f"has a name of its own ('{before} (2)')."
            )
        before = stage
    return spans


def _with_interval(values: np.ndarray) -> tuple[float, float, float]:
    low, high = bootstrap([values], lambda averages: averages)
    return float(values.mean()), float(low[0]), float(high[0])


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
