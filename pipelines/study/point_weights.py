"""What the chosen points of a family weigh, as a study remembers it, becomes the column `weight` of its curves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

RECORD = "point_choices"
"""Where study.yaml keeps, for each task, how points were chosen, in which rounds, and what each weighs."""


def recorded(study: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What curves call a task → its choice, of what study.yaml holds; a stranger's file may hold anything."""
    found = study.get(RECORD)
    return {str(task): each for task, each in (found if isinstance(found, dict) else {}).items() if _is_choice(each)}


def _is_choice(record: Any) -> bool:
    weights = record.get("weights") if isinstance(record, dict) else None
    return (
        isinstance(weights, dict)
        and all(isinstance(weight, int | float) and 0 <= weight < math.inf for weight in weights.values())
        and any(weights.values())
    )


def weighed(curves: pd.DataFrame, study: Mapping[str, Any]) -> pd.DataFrame:
    """Curves with what their points weigh; a task whose points nobody chose has NaN, and weighs as in its family.

    Args:
        curves: a study's.
        study: what its study.yaml holds.
    """
    if not (choices := recorded(study)):
        return curves
    from lcd.families.weights import WEIGHT

    weights = np.full(len(curves), np.nan)
    for task, choice in choices.items():
        mine = (curves["task"] == task).to_numpy()
        weights[mine] = curves["context"][mine].astype(object).map(choice["weights"]).fillna(0.0).to_numpy(float)
    return curves.assign(**{WEIGHT: weights})
