"""Curves of a family's points, and of the whole family: the weighted mean over its points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from lcd.curves.names import FAMILY, evaluated_name
from lcd.curves.spans import common_interval
from lcd.curves.table import TEXT, split_curves
from lcd.envs.errors import InputError
from lcd.families.measured import Measured, measured_families, with_one_name
from lcd.families.turns import with_turns


def whole_families(curves: pd.DataFrame, defaults: pd.DataFrame) -> pd.DataFrame:
    """Curves of whole families: of each method and seed the weighted mean over points, in the context `FAMILY`.

    Args:
        curves: rows that `lcd.curves.table.of_points` chooses, with the column `normalised`.
        defaults: rows of tasks as they were trained, likewise.

    Returns:
        Rows with the columns of `curves`; none for families without ranges, or whose curves have too few steps in
        common.
    """
    families = _families_or_none(curves, defaults)
    both = pd.concat([with_turns(with_one_name(curves)), defaults]) if families else curves
    held_out = both[(both["split"] == "eval").to_numpy()]
    parts = [part for found in families for part in _whole(found, held_out)]
    whole = pd.concat(parts) if parts else curves.iloc[:0]
    return whole.reindex(columns=curves.columns).astype(dict.fromkeys(TEXT, "category"))


def _families_or_none(curves: pd.DataFrame, defaults: pd.DataFrame) -> list[Measured]:
    """The families that have a range; none where the curves are no families, of which their analysis tells."""
    try:
        found = measured_families(curves, defaults)
        return [each for each in found if each.scale == "normalised"]
    except InputError:
        return []


def _curves_in(found: Measured, held_out: pd.DataFrame) -> dict[tuple, tuple[np.ndarray, np.ndarray]]:
    """(method, seed, context) → steps and normalised returns, of the family's task in its setting."""
    where = {"benchmark": found.benchmark, "task": found.task, **found.setting}
    mine = held_out[np.logical_and.reduce([(held_out[name] == value).to_numpy() for name, value in where.items()])]
    return split_curves(mine, ["agent", "seed", "context"])


def _rows_of(found: Measured) -> dict[str, str]:
    """Point → the context of the rows that its score is from: the default's are the task's own."""
    return {context: "" if context and context == found.default else context for context in found.contexts}


def point_curves(
    found: Measured, curves: pd.DataFrame, defaults: pd.DataFrame
) -> dict[str, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Method → point → its steps and mean scores over seeds, on the family's scale.

    Args:
        found: the family.
        curves: rows that `lcd.curves.table.of_points` chooses, with the column `normalised`.
        defaults: rows of tasks as they were trained, likewise.
    """
    both = pd.concat([with_turns(with_one_name(curves)), defaults])
    held_out = both[(both["split"] == "eval").to_numpy()]
    if found.scale == "return":
        held_out = held_out.assign(normalised=held_out["return_mean"])
    every, names = _curves_in(found, held_out), _rows_of(found)
    told: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {}
    for method, seeds in found.seeds.items():
        told[method] = {}
        called = seeds if method not in found.turns else (found.turns[method].called,)
        for context, name in names.items():
            parts = [every[method, seed, name] for seed in called]
            steps = np.unique(np.concatenate([part[0] for part in parts]))
            told[method][context] = steps, np.mean([np.interp(steps, *part) for part in parts], axis=0)
    return told


def _whole(found: Measured, held_out: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """The curves of one whole family, one a method and seed."""
    where = {"benchmark": found.benchmark, "task": found.task, **found.setting}
    curves, names = _curves_in(found, held_out), _rows_of(found)
    for method, seeds in found.seeds.items():
        turns = found.turns.get(method)
        weights = [found.distribution] * len(seeds) if turns is None else turns.weights(found.distribution)
        for seed, mine in zip(seeds, weights, strict=True):
            called = seed if turns is None else turns.called
            parts = [curves[method, called, names[context]] for context in found.contexts]
            try:
                low, high = common_interval([steps for steps, _ in parts], f"the family of '{found.task}'")
            except InputError:
                return
            steps = np.unique(np.concatenate([[low, high], *(steps for steps, _ in parts)]))
            steps = steps[(steps >= low) & (steps <= high)]
            heights = mine @ np.stack([np.interp(steps, *part) for part in parts])
            yield pd.DataFrame({"step": steps, "return_mean": heights, "normalised": heights}).assign(
                **where, agent=method, seed=seed, split="eval", stage="", context=FAMILY,
                trained_on=evaluated_name(found.task, FAMILY), r_min=0.0, r_max=1.0,
            )  # fmt: skip
