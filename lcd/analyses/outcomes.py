"""What was trained against what is evaluated: one table for curricula, for other tasks and contexts, and for levels.

Each row of the table is one trained thing (a task, or a stage of a curriculum), one evaluated task in one context, and
one split. The analysis of transfer and that of generalisation are made from the same seeds' returns.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Evidence, joined_names
from lcd.analyses.areas import with_interval
from lcd.curves.names import evaluated_name
from lcd.curves.spans import area, common_interval
from lcd.curves.table import CONDITION, SETTING, as_trained, split_curves
from lcd.envs.families.family import parse_point

KEYS = (*CONDITION, "split")
"""What tells the rows of the table apart."""
MEASURES = ("first", "last", "AUC")


@dataclass(frozen=True)
class Outcome:
    """What seeds reach on one evaluated task, in one context and split, while one thing is trained.

    Attributes:
        where: The values of `KEYS`.
        steps: Seed → the first and the last step of its evaluations.
        first, last: Seed → the normalised return at these.
        areas: Seed → the area over the steps that all seeds span; None where a seed has one evaluation only.
    """

    where: Mapping[str, Any]
    steps: Mapping[int, tuple[float, float]]
    first: pd.Series
    last: pd.Series
    areas: pd.Series | None

    @property
    def evaluated(self) -> str:
        """The evaluated task as a reader meets it, with its context."""
        return evaluated_name(self.where["task"], self.where["context"])


def outcomes(curves: pd.DataFrame) -> Iterator[Outcome]:
    """Every outcome in checked curves with the column `normalised`, in the order of `KEYS`."""
    for key, rows in curves.groupby(list(KEYS), sort=True, observed=True):
        where = dict(zip(KEYS, key, strict=True))
        of_seeds = {int(seed): curve for (seed,), curve in split_curves(rows, ["seed"]).items()}
        areas = None
        grids = [grid for grid, _ in of_seeds.values()]
        if min(map(len, grids)) > 1:
            low, high = common_interval(grids, f"task '{where['task']}'")
            areas = pd.Series({seed: area(*curve, low, high) for seed, curve in of_seeds.items()})
        yield Outcome(
            where,
            {seed: (grid[0], grid[-1]) for seed, (grid, _) in of_seeds.items()},
            pd.Series({seed: heights[0] for seed, (_, heights) in of_seeds.items()}),
            pd.Series({seed: heights[-1] for seed, (_, heights) in of_seeds.items()}),
            areas,
        )


def outcome_table(curves: pd.DataFrame) -> pd.DataFrame:
    """One row an outcome: `KEYS`, seeds, last step, and first and last return and AUC, with intervals over seeds.

    Args:
        curves: Checked curves with the column `normalised`.
    """
    rows = []
    for found in outcomes(curves):
        row = dict(found.where) | {"seeds": float(len(found.last)), "step": max(end for _, end in found.steps.values())}
        for name, sample in zip(MEASURES, (found.first, found.last, found.areas), strict=True):
            known = dict.fromkeys((name, f"{name}_low", f"{name}_high"), np.nan)
            row |= known if sample is None else with_interval((name,), {name: sample}, lambda averages: averages)
        rows.append(row)
    return pd.DataFrame(rows)


def beyond_training(evidence: Evidence) -> Analysis | None:
    """What agents reach on what they were not trained on: other tasks, other contexts, stages of curricula."""
    own, others = evidence.diagnosis.curves, evidence.diagnosis.others
    return elsewhere(pd.concat([each for each in (own, others) if len(each)])) if len(others) else None


def elsewhere(curves: pd.DataFrame) -> Analysis | None:
    """What agents reach on what they were not trained on, beside what they were; None where nothing else is evaluated.

    Args:
        curves: Checked curves with the column `normalised`, of whatever was trained.
    """
    if not len(curves) or as_trained(curves).all():
        return None
    # Of what was evaluated nowhere else the other tables tell.
    unranged = curves["normalised"].isna()
    curves = curves.assign(normalised=curves["normalised"].fillna(curves["return_mean"]))
    wider = (~as_trained(curves)).groupby([curves[name] for name in (*SETTING, "trained_on")], observed=True)
    table = outcome_table(curves[wider.transform("any")])
    if unranged.any():
        pairs = ["benchmark", "task", "context"]
        raw = set(curves.loc[unranged, pairs].drop_duplicates().itertuples(index=False, name=None))
        table["scale"] = [
            "return" if tuple(row) in raw else "normalised" for row in table[pairs].itertuples(index=False)
        ]
    trained = list(dict.fromkeys(table["trained_on"]))
    says = [f"Trained on {joined_names(trained)}; evaluated on {joined_names(list(dict.fromkeys(table['task'])))}."]
    if any(parse_point(str(context)) for context in table.loc[table["trained_on"] == table["task"], "context"]):
        says.append(
            "Nothing says that points had agents of their own: if they had, give the column trained_on, with "
            "task@context in their rows (docs/families.md), and they are told of as a family."
        )
    note = (
        "Normalised returns by what was trained (a task, or a curriculum and its stage), by the task and context that "
        "were evaluated, and by split: at the first and the last evaluation, and the mean height in between. Where no "
        "range is known, returns are as they are (scale)."
    )
    return Analysis("outcomes", "What was trained, and what was evaluated", table, says, note)
