"""What methods reach on the points of a family, read from curves: the arrays that everything else here takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from lcd.curves.reading import group_numbers
from lcd.envs.errors import InputError
from lcd.envs.families.family import parse_point, point_name
from lcd.families.failures import failing_by, failures, known_failure
from lcd.families.turns import TURN, Turns, one_agent_a_point, turns_of, with_turns
from lcd.families.weights import (
    SETTING,
    WEIGHT,
    check_weights,
    counting,
    default_among_points,
    known_beforehand,
    known_family,
    says_weights,
    weight_numbers,
    weights_of_points,
)

MEASURES = ("final", "auc")
"""What the score of a point is made of: the last normalised return, or the mean height of the curve."""


@dataclass(frozen=True)
class Measured:
    """Scores of several methods on the points of one family.

    Attributes:
        benchmark, task: whose family it is.
        setting: the values of `SETTING`.
        table: (points, features), in the order of `features`.
        features: the names of the context's features.
        distribution: the probability of each point, of those that are measured.
        scores: method → (points, seeds): the normalised score, or, on the scale "return", as it is; (points, 1) where
            points take turns at the seeds.
        reported: method → the scores of its seeds on the default point; a method that has none is missing.
        contexts: the points by name.
        default: the name of the default point, where it is one of them.
        seeds: method → its seeds, in the order of its overall performances.
        marks: points with a name of their own, by their place.
        scale: "normalised" or "return".
        notes: sentences on what was left out or taken for granted.
        failure: what a point fails by, as (column of the curves, most); None where nobody says.
        failed: method → (points,) whether it fails there, by the mean over seeds of the last evaluations.
        beforehand: (points, quantities): what was known of the points before any was trained; None where nothing was.
        turns: method → whose turn it was at each point; a method that is not in it has all seeds on all points.
    """

    benchmark: str
    task: str
    setting: Mapping[str, Any]
    table: np.ndarray
    features: tuple[str, ...]
    distribution: np.ndarray
    scores: Mapping[str, np.ndarray]
    reported: Mapping[str, np.ndarray] = field(default_factory=dict)
    contexts: tuple[str, ...] = ()
    default: str = ""
    seeds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    marks: Mapping[str, int] = field(default_factory=dict)
    scale: str = "normalised"
    notes: tuple[str, ...] = ()
    failure: tuple[str, float] | None = None
    failed: Mapping[str, np.ndarray] = field(default_factory=dict)
    beforehand: np.ndarray | None = None
    turns: Mapping[str, Turns] = field(default_factory=dict)

    @property
    def methods(self) -> list[str]:
        """Their names, in the order of all arrays."""
        return list(self.scores)

    @property
    def means(self) -> np.ndarray:
        """(methods, points): the mean over seeds."""
        return np.stack([scores.mean(1) for scores in self.scores.values()])

    @property
    def overall(self) -> dict[str, np.ndarray]:
        """Method → the overall performance Σ s_i p_i of each seed."""
        return self.overall_under(self.distribution)

    def overall_under(self, distribution: np.ndarray) -> dict[str, np.ndarray]:
        """Method → the overall performance of each seed, were this the probability of each point."""
        return {
            method: self.turns[method].weights(distribution) @ scores[:, 0]
            if method in self.turns
            else distribution @ scores
            for method, scores in self.scores.items()
        }


def measured_families(curves: pd.DataFrame, defaults: pd.DataFrame, measure: str = "final") -> list[Measured]:
    """The families in some curves, one for each task and setting; what is none is left out, if others are.

    Args:
        curves: rows that `lcd.curves.table.of_points` chooses, with the column `normalised`.
        defaults: rows of tasks as they were trained, likewise: those of the default points.
        measure: one of `MEASURES`.
    """
    if measure not in MEASURES:
        raise InputError(f"score={measure} is no score of a point: take {' or '.join(MEASURES)}.")
    keys = ["benchmark", "task", *SETTING]
    check_weights(curves)
    curves = with_turns(with_one_name(curves))
    # A diagnosis of no task has no columns either.
    defaults = defaults if len(defaults) else curves.iloc[:0]
    found = _runs(curves, measure)
    own = _runs(defaults[defaults["task"].isin(set(found["task"]))], measure) if len(found) else found
    measured: list[Measured] = []
    refused: list[str] = []
    first: InputError | None = None
    for key, rows in found.groupby(keys, sort=True, observed=True):
        where = dict(zip(keys, key, strict=True))
        same = np.ones(len(own), bool)
        for name, value in where.items():
            same &= (own[name] == value).to_numpy()
        try:
            measured.append(_measured(where, rows, own[same]))
        except InputError as why:
            refused.append(f"A family is left out: {why}")
            first = first or why
    if not measured and first is not None:
        raise first
    return [replace(each, notes=(*each.notes, *refused)) for each in measured[:1]] + measured[1:]


def with_one_name(curves: pd.DataFrame) -> pd.DataFrame:
    """Curves whose points have one name each, in whatever order and digits their features are written."""
    given = list(map(str, curves["context"].unique()))
    names = {name: point_name(parse_point(name) or {}) for name in given}
    if len(set(names.values())) < len(names):
        mine = ["benchmark", "task", *SETTING, "agent", "seed", "split"]
        written = curves[[*mine, "context"]].astype({"context": object}).drop_duplicates()
        point = written["context"].map(names).rename("point")
        twice = written[pd.concat([written[mine], point], axis=1).duplicated(keep=False).to_numpy()]
        if len(twice):
            several = sorted(name for name in set(twice["context"]) if names[name] == names[twice["context"].iloc[0]])
            raise InputError(
                f"Seed {twice['seed'].iloc[0]} of '{twice['agent'].iloc[0]}' has one point twice, as "
                f"{' and '.join(map(repr, several))}: give each point once."
            )
    return curves.assign(context=curves["context"].astype(object).map(names).astype("category"))


def _runs(curves: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One row a run (a curve of one seed): what it is, and its score; held-out curves alone."""
    held_out = curves[(curves["split"] == "eval").to_numpy()]
    names = ["benchmark", "task", *SETTING, "agent", "context", "seed"]
    codes, steps = group_numbers(held_out, names), held_out["step"].to_numpy(float)
    order = np.lexsort((steps, codes))
    codes, steps = codes[order], steps[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    last = np.append(starts[1:], len(codes))[: len(starts)] - 1
    kept = held_out.iloc[order[last]]
    table = kept[names].reset_index(drop=True)
    if WEIGHT in held_out:
        table[WEIGHT] = _constant(weight_numbers(held_out).to_numpy(float)[order], starts)
    table[TURN] = held_out[TURN].to_numpy(float)[order][last] if TURN in held_out else np.nan
    for name in failing_by(held_out):
        table[name] = pd.to_numeric(held_out[name], errors="coerce").to_numpy(float)[order][last]
    for name, column in (("normalised", "normalised"), ("return", "return_mean")):
        values = held_out[column].to_numpy(float)[order]
        table[name] = values[last] if measure == "final" else _heights(steps, values, starts, last)
    return table


def _constant(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """What each of several curves, one after the other, holds in all of its rows; NaN where that is no one value."""
    if not len(starts):
        return np.zeros(0)
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    return np.where(low == high, low, np.nan)


def _heights(steps: np.ndarray, values: np.ndarray, starts: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The mean height of each of several curves that stand one after the other; a curve of one evaluation has none."""
    if not len(starts):
        return np.zeros(0)
    pieces = np.append(np.diff(steps) * (values[1:] + values[:-1]) / 2, 0.0)
    pieces[last] = 0.0
    spans = steps[last] - steps[starts]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spans > 0, np.add.reduceat(pieces, starts) / spans, np.nan)


def _measured(where: Mapping[str, Any], rows: pd.DataFrame, own: pd.DataFrame) -> Measured:
    """The family of one task and setting."""
    scale = "normalised" if rows["normalised"].notna().all() else "return"
    family = known_family(where["benchmark"], where["task"])
    rows = rows.assign(context=rows["context"].astype(object))
    notes: list[str] = []
    if scale == "return":
        notes.append("Nobody knows the range of all points (r_min, r_max): scores are returns as they are.")
    default_name = default_among_points(where["benchmark"], where["task"]) if len(own) else ""
    if default_name:
        rows = _with_default(rows, own, default_name)
    rows = one_agent_a_point(rows.assign(agent=rows["agent"].astype(object)))
    scores, seeds, contexts, left = _complete(rows, scale)
    points = [parse_point(context) or {} for context in contexts]
    if any(set(point) != set(points[0]) for point in points):
        raise InputError(
            f"The points of '{where['task']}' have different features: name in each context all of "
            f"{', '.join(sorted(set().union(*points)))}."
        )
    for context, point in zip(contexts, points, strict=True):
        if not np.isfinite(list(point.values())).all():
            raise InputError(f"The context '{context}' has a feature without a finite value: give it a number.")
    weights, told = weights_of_points(contexts, rows, family)
    failure = known_failure(where["benchmark"])
    features = tuple(points[0])
    order = {point_name(point): place for place, point in enumerate(family.points)} if family is not None else {}
    reported = {
        str(agent): mine[scale].to_numpy(float)
        for agent, mine in own.assign(agent=own["agent"].astype(object)).groupby("agent")
        if agent in scores
    }
    places = {context: place for place, context in enumerate(contexts)}
    marks = {} if family is None else {
        name: places[point_name(family.points[place])]
        for name, place in family.marks.items()
        if point_name(family.points[place]) in places
    }  # fmt: skip
    if order and len(contexts) < len(order):
        chosen = f"how they were chosen says what each counts (the column '{WEIGHT}')"
        what = chosen if says_weights(rows) else "each counts as in the family, and together they make 1"
        notes.append(f"{len(contexts)} of the family's {len(order)} points are measured; {what}.")
    table = np.array([[point[name] for name in features] for point in points], float)
    beforehand = known_beforehand(where["benchmark"], where["task"], points)
    turns = turns_of(rows, contexts, table, beforehand, scores)
    if (most := max((len(each.seeds) for each in turns.values()), default=0)) > 1:
        notes.append(
            f"Points take turns at {most} seeds, an agent a point: an interval is Student's over the seeds, of how far "
            "their points' scores are from what the other points lead to expect."
        )
    return Measured(
        str(where["benchmark"]),
        str(where["task"]),
        {name: where[name] for name in SETTING},
        table,
        features,
        weights / weights.sum(),
        scores,
        reported,
        tuple(contexts),
        default_name,
        seeds | {method: each.seeds for method, each in turns.items()},
        marks,
        scale,
        (*notes, *left, *told),
        failure,
        failures(rows, failure, contexts, scores),
        beforehand,
        turns,
    )


def _with_default(rows: pd.DataFrame, own: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of points, of which the default is one: its scores are the task's own.

    It weighs what rows with its features as context say, or, where there are none, its own rows; if other points have
    weights and it has none, it is no point.
    """
    again = rows["context"] == name
    if says_weights(rows):
        if again.any():
            (given, *_) = weight_numbers(rows[again])
            own = own.assign(**{WEIGHT: given})
        elif not says_weights(own):
            return rows
    return pd.concat([own.assign(context=name), rows[~again]])


def _complete(
    rows: pd.DataFrame, scale: str
) -> tuple[dict[str, np.ndarray], dict[str, tuple[int, ...]], list[str], list[str]]:
    """Method → (points, seeds) without gaps, its seeds, the points' contexts, and sentences on what is left out.

    A seed of a method takes part if the method has it on at least half of its points, but for those that weigh nothing;
    a point if every method has all of its seeds there.
    """
    methods = sorted(map(str, rows["agent"].unique()))
    wide = {}
    for method in methods:
        mine = rows[rows["agent"] == method]
        table = mine.pivot_table(index="context", columns="seed", values=scale, aggfunc="first")
        there = table.loc[table.index.isin(mine["context"][counting(mine)])].notna()
        wide[method] = table.loc[:, there.sum() >= max(len(there) / 2, 1)]
        if wide[method].empty:
            raise InputError(
                f"No seed of '{method}' is trained on at least half of its {len(table)} points of "
                f"'{rows['task'].iloc[0]}': an overall performance needs the same seeds on all points."
            )
    everywhere = set.intersection(*(set(table.index[table.notna().all(axis=1)]) for table in wide.values()))
    contexts = sorted(everywhere, key=lambda name: tuple((parse_point(name) or {}).values()))
    if not contexts:
        raise InputError(
            f"The methods {', '.join(methods)} have no point of '{rows['task'].iloc[0]}' in common on which all of "
            "their seeds are trained: an overall performance needs one."
        )
    missing = rows["context"].nunique() - len(contexts)
    lacking = "no agent" if rows[TURN].notna().any() else "not all of its seeds"
    left = [f"{missing} points are left out: some method has {lacking} there."] if missing else []
    seeds = {name: tuple(int(seed) for seed in table.columns) for name, table in wide.items()}
    return {name: table.loc[contexts].to_numpy(float) for name, table in wide.items()}, seeds, contexts, left
