"""How much each point of a family counts, and what a registered benchmark knows of a family and its points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lcd.envs.errors import InputError
from lcd.envs.families.family import Family, Point, parse_point, point_name
from lcd.envs.protocols import Families, known_of_points, offers

SETTING = ("view", "frontend", "reward_p", "shaping")
"""What is alike for all methods of a comparison, beside benchmark and task."""
WEIGHT = "weight"
"""A column of curves, if its owner likes: how much a point counts."""


def known_family(benchmark: str, task: str) -> Family | None:
    """The family of a task as its benchmark has it; None where nobody registered one."""
    from lcd.envs.benchmarks import registered_benchmark

    found = registered_benchmark(benchmark)
    if found is None or not offers(found, Families):
        return None
    try:
        return found.family(task)
    except (InputError, ImportError):
        return None


def known_beforehand(benchmark: str, task: str, points: Sequence[Point]) -> np.ndarray | None:
    """What a registered benchmark knows of points before any is trained; None where nothing is known."""
    from lcd.envs.benchmarks import registered_benchmark

    found = registered_benchmark(benchmark)
    try:
        return None if found is None else known_of_points(found, task, points)
    except InputError:
        return None


def default_among_points(benchmark: str, task: str) -> str:
    """What the default point is called where it is one of the family's, as its benchmark has it; else nothing."""
    family = known_family(benchmark, task)
    if family is None or all(family.context_of(point) for point in family.points):
        return ""
    return point_name(family.default)


def point_weights(benchmark: str, task: str, rows: pd.DataFrame, contexts: list[str]) -> np.ndarray:
    """The probability of each of some points of a task's family, among them.

    Args:
        benchmark: whose task it is.
        task: whose family it is.
        rows: of curves, which may have the column `WEIGHT`.
        contexts: the points as the rows call them.
    """
    weights, _ = weights_of_points(contexts, rows, known_family(benchmark, task))
    return weights / weights.sum()


def check_weights(curves: pd.DataFrame) -> None:
    """Refuse a column `WEIGHT` that does not say what each point weighs.

    Args:
        curves: rows that `lcd.curves.table.of_points` chooses.
    """
    if WEIGHT not in curves:
        return
    written = curves[WEIGHT].astype(object)
    wrong = weight_numbers(curves).isna() & written.notna() & (written.astype(str).str.strip() != "")
    if wrong.any():
        row = curves[wrong].iloc[0]
        raise InputError(
            f"The column '{WEIGHT}' holds '{row[WEIGHT]}' for the point '{row['context']}': give each point one "
            "weight, 0 or more, or leave the column out."
        )
    for _, rows in curves.groupby(["benchmark", "task", *SETTING], observed=True):
        if says_weights(rows):
            _given_weights(list(map(str, rows["context"].unique())), rows)


def weight_numbers(curves: pd.DataFrame) -> pd.Series:
    """The column `WEIGHT`, NaN where it is empty."""
    return pd.to_numeric(curves[WEIGHT].astype(object), errors="coerce").astype(float)


def says_weights(rows: pd.DataFrame) -> bool:
    """Whether some curves say what their points weigh."""
    return WEIGHT in rows and bool(weight_numbers(rows).notna().any())


def counting(rows: pd.DataFrame) -> np.ndarray:
    """Whether what curves say of their points' weights lets each row's point count for anything."""
    return ~(weight_numbers(rows) == 0).to_numpy() if WEIGHT in rows else np.ones(len(rows), bool)


def _given_weights(contexts: list[str], rows: pd.DataFrame) -> np.ndarray:
    """What curves say that each point weighs, 1 the most."""
    given, points = weight_numbers(rows), rows["context"].astype(object)
    low, high = given.groupby(points).agg(["min", "max"]).loc[contexts].to_numpy(float).T
    missing = given.isna().groupby(points).any().loc[contexts].to_numpy(bool)
    wrong = missing | ~(np.isfinite(low) & (low >= 0) & (low == high))
    if wrong.any():
        place = int(np.argmax(wrong))
        several = "" if low[place] == high[place] else f" to {high[place]:g}"
        held = "no number, or several," if missing[place] else f"{low[place]:g}{several}"
        raise InputError(
            f"The column '{WEIGHT}' holds {held} for the point '{contexts[place]}': give each point one weight, "
            "0 or more."
        )
    if high.max() > 0:
        return high / high.max()
    raise InputError(f"The column '{WEIGHT}' is 0 for all points: at least one must count.")


def weights_of_points(contexts: list[str], rows: pd.DataFrame, family: Family | None) -> tuple[np.ndarray, list[str]]:
    """What each point weighs: as a column of the curves says, else as the family does, else all alike."""
    if says_weights(rows):
        return _given_weights(contexts, rows), []
    names: dict[str, float] = {}
    if family is not None:
        names = dict(zip(map(point_name, family.points), family.distribution, strict=True))
    found = np.array([names.get(point_name(parse_point(name) or {}), np.nan) for name in contexts])
    if np.isfinite(found).all() and found.sum() > 0:
        return found, []
    if names:
        return np.ones(len(contexts)), ["Some points are none of the benchmark's family: all of them count alike."]
    return np.ones(len(contexts)), ["Nobody says how much each point counts: all of them count alike."]
