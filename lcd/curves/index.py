"""Every seed's curve of every condition, found by the condition's values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from lcd.curves.names import FAMILY, evaluated_name, varied_task
from lcd.curves.reading import group_numbers
from lcd.curves.row_ranges import CurveRows
from lcd.curves.table import CONDITION
from lcd.scores.contrasts import KNOB, Condition

Curve = tuple[np.ndarray, np.ndarray]
"""Steps in order, and normalised returns (as they are, where nobody knows the range)."""
Key = tuple[Any, ...]
P = CONDITION.index("reward_p")
PLACES = 9  # reward p is a number from a file: what differs in the tenth place is the same p


class CurveIndex:
    """The curves of one split, by condition and seed."""

    def __init__(self, curves: pd.DataFrame | None = None) -> None:
        """Find where each curve stands.

        Args:
            curves: Rows of one split, with the column `normalised`; None for no curves. Where that is NaN, because
                nobody knows the range, the curve is one of returns as they are.
        """
        self._curves: dict[Key, dict[int, Curve]] = {}
        self._raw: set[Key] = set()
        if curves is None or curves.empty:
            return
        keys = [*CONDITION, "seed"]
        steps = curves["step"].to_numpy(float)
        rows = CurveRows(group_numbers(curves, keys), steps)
        steps, values = rows.ordered(steps), rows.ordered(curves["normalised"].to_numpy(float))
        raw = np.isnan(values)
        if raw.any():
            values = np.where(raw, rows.ordered(curves["return_mean"].to_numpy(float)), values)
        named = curves.iloc[rows.first]
        columns = [named[name].tolist() for name in keys]
        for (start, end), *key in zip(rows.spans(), *columns, strict=True):
            *key, seed = key
            key[P] = round(key[P], PLACES)
            self._curves.setdefault(tuple(key), {})[int(seed)] = (steps[start:end], values[start:end])
            if raw[start]:
                self._raw.add(tuple(key))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The conditions, sorted, each as a mapping of `CONDITION` to values."""
        return (dict(zip(CONDITION, key, strict=True)) for key in self._curves)

    def find(self, **where: Any) -> dict[int, Curve]:
        """Seed → curve of the condition with these values of all of `CONDITION`; empty where it was not trained."""
        key = [where[name] for name in CONDITION]
        key[P] = round(key[P], PLACES)
        return self._curves.get(tuple(key), {})

    def under(self, row: Mapping[str, Any], condition: Condition) -> dict[int, Curve]:
        """Seed → curve of a task under a condition.

        Args:
            row: The task, its benchmark, and the agent, front-end and shaping that the condition leaves as they are.
            condition: What is set.
        """
        return self.find(**self.key_under(row, condition))

    def has_range(self, row: Mapping[str, Any], condition: Condition) -> bool:
        """Whether a task's curves under a condition are normalised: only then may areas be scored."""
        where = self.key_under(row, condition)
        key = [where[name] for name in CONDITION]
        key[P] = round(key[P], PLACES)
        return tuple(key) not in self._raw

    @staticmethod
    def key_under(row: Mapping[str, Any], condition: Condition) -> dict[str, Any]:
        """The values of `CONDITION` of a task under a condition."""
        where = {key: value for key, value in condition.where if not key.startswith(KNOB)}
        task = varied_task(row["task"], condition.knobs)
        # A family's agents are trained where they are evaluated.
        trained_on = evaluated_name(task, FAMILY) if where.get("context") == FAMILY else task
        return {**row, "task": task, "trained_on": trained_on, "stage": "", "context": "", **where}
