"""What learning one task does to the others: transfer and forgetting by the matrix of GEM (Lopez-Paz and Ranzato 2017).

R[i, j] is the normalised held-out return on task j after stage i of a curriculum, b[j] that before any training.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lcd.curves.table import PHASE, Range, attach_ranges, normalised
from lcd.envs.errors import InputError
from lcd.files.atomic import write_atomic
from lcd.statistics.intervals import bootstrap

CURRICULUM = ("benchmark", "view", "frontend", "reward_p", "shaping", "agent")
MEASURES = {
    "average": "mean return over all tasks at the end",
    "backward": "backward transfer: change of earlier tasks' return from the end of their own stage to the very end",
    "forward": "forward transfer: return on a task just before its stage, above that before any training",
    "forgetting": "mean over earlier tasks of the best return on the way, less that at the very end",
}


@dataclass(frozen=True)
class Transfer:
    """One curriculum's outcome.

    Parameters
    ----------
    key
        What was trained: the columns `CURRICULUM` with their values.
    stages
        The trained task of each stage, in order.
    tasks
        The evaluated tasks, in the order in which they are trained first.
    ends
        The step at which each stage ended.
    returns
        (seeds, stages + 1, tasks): normalised return before training (b) and after each stage (R).
    measures
        Each of `MEASURES`: (mean over seeds, low, high), with a 95 % interval.
    curves
        The held-out rows behind it, with the column `normalised`.
    """

    key: dict[str, Any]
    stages: tuple[str, ...]
    tasks: tuple[str, ...]
    ends: tuple[float, ...]
    returns: np.ndarray
    measures: dict[str, tuple[float, float, float]]
    curves: pd.DataFrame

    @property
    def matrix(self) -> np.ndarray:
        """(stages + 1, tasks): the returns, averaged over seeds; the first row is b."""
        return self.returns.mean(axis=0)

    def plain(self) -> dict[str, Any]:
        """Everything but the curves as plain values; what is not a number is None."""
        return {
            **self.key,
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


def split_phases(curves: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of ordinary runs, and those of curricula: only the former tell what makes a task hard."""
    if PHASE not in curves:
        return curves, curves.iloc[:0]
    phased = curves[PHASE].fillna("").astype(str) != ""
    return curves[~phased].reset_index(drop=True), curves[phased].reset_index(drop=True)


def transfers(curves: pd.DataFrame, ranges: Mapping[str, Range] | None = None) -> list[Transfer]:
    """The outcome of every curriculum in checked curves.

    Parameters
    ----------
    curves
        Rows with the column `phase`.
    ranges
        As `lcd.curves.table.attach_ranges` takes them.
    """
    held_out = attach_ranges(curves[curves["split"] == "eval"], ranges)[0]
    held_out["normalised"] = normalised(held_out)
    return [
        _transfer(dict(zip(CURRICULUM, key, strict=True)), rows)
        for key, rows in held_out.groupby(list(CURRICULUM), sort=True)
    ]


def gem_measures(returns: np.ndarray, stages: list[int]) -> dict[str, float]:
    """The measures of one matrix.

    Parameters
    ----------
    returns
        (stages + 1, tasks): b, then R.
    stages
        The column of the task that each stage trains.

    Notes
    -----
    With T stages that train T tasks in order these are GEM's formulas: average is the mean of R[T, j]; backward the
    mean over i < T of R[T, i] - R[i, i]; forward the mean over i > 1 of R[i-1, i] - b[i]. Forgetting is that of
    Chaudhry et al. (2018): the mean over j < T of the greatest R[l, j] with l < T, less R[T, j]. Of a task that comes
    again, backward transfer counts from its last stage and forward transfer up to its first.
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


def _transfer(key: dict[str, Any], rows: pd.DataFrame) -> Transfer:
    _refuse_two_phases(rows)
    moments = rows.drop_duplicates("step").sort_values("step")
    stages, ends = _stages(moments)
    tasks = tuple(dict.fromkeys([*stages, *sorted(rows["task"].unique())]))
    columns = [tasks.index(stage) for stage in stages]
    table = rows.pivot(index=["seed", "step"], columns="task", values="normalised")
    seeds = sorted(rows["seed"].unique())
    wanted = [moments["step"].iloc[0], *ends]
    try:
        returns = np.stack([table.loc[seed].loc[wanted, list(tasks)].to_numpy(float) for seed in seeds])
    except KeyError:
        returns = np.full((1, 1, 1), np.nan)
    if np.isnan(returns).any() or wanted[0] != 0:
        raise InputError(
            f"The curriculum of {key['agent']} on {key['benchmark']} lacks evaluations of all its tasks before "
            "training and at the end of each stage, for every seed: transfer needs them."
        )
    of_seeds = [gem_measures(of_seed, columns) for of_seed in returns]
    measures = {name: _with_interval(np.array([found[name] for found in of_seeds])) for name in MEASURES}
    return Transfer(key, stages, tasks, ends, returns, measures, rows)


def _refuse_two_phases(rows: pd.DataFrame) -> None:
    twice = rows.duplicated(["seed", "step", "task"])
    if twice.any():
        row = rows.loc[twice.idxmax()]
        raise InputError(
            f"Seed {row['seed']} has two rows of task '{row['task']}' at step {row['step']:g}, in different phases: a "
            "step at which one task's training ends belongs to that phase."
        )


def _stages(moments: pd.DataFrame) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Where the trained task changes from one evaluation to the next, a stage has ended."""
    phases, steps = moments[PHASE].tolist(), moments["step"].tolist()
    last = [place for place in range(len(phases)) if place + 1 == len(phases) or phases[place + 1] != phases[place]]
    return tuple(phases[place] for place in last), tuple(steps[place] for place in last)


def _with_interval(values: np.ndarray) -> tuple[float, float, float]:
    low, high = bootstrap([values], lambda averages: averages, paired=True)
    return float(values.mean()), float(low[0]), float(high[0])


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
