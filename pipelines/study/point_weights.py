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


def own_seeds(record: Mapping[str, Any]) -> dict[str, int]:
    """Point as curves call it → its seed, where points take turns at them; the default point has all seeds.

    Args:
        record: a choice; where it is a stranger's, its turns may be no seeds, and then nothing takes turns.
    """
    turns, rounds = _list_of(int, record.get("turns")), _list_of(list, record.get("rounds"))
    names = [name for some in rounds for name in some] if turns else []
    return {name: turns[place % len(turns)] for place, name in enumerate(names) if name and isinstance(name, str)}


def _list_of(kind: type, given: Any) -> list[Any]:
    """What is given, if it is a list of this kind alone; else none."""
    return given if isinstance(given, list) and all(type(each) is kind for each in given) else []


def weighed(curves: pd.DataFrame, study: Mapping[str, Any]) -> pd.DataFrame:
    """Curves with what their points weigh; a task whose points nobody chose has NaN, and weighs as in its family.

    Where points take turns at the seeds, what another choice has trained of them with other seeds is left out.

    Args:
        curves: a study's.
        study: what its study.yaml holds.
    """
    if not (choices := recorded(study)):
        return curves
    from lcd.families.weights import WEIGHT

    for task, choice in choices.items():
        curves = _of_their_turns(curves, task, own_seeds(choice))
    weights = np.full(len(curves), np.nan)
    for task, choice in choices.items():
        mine = (curves["task"] == task).to_numpy()
        weights[mine] = curves["context"][mine].astype(object).map(choice["weights"]).fillna(0.0).to_numpy(float)
    return curves.assign(**{WEIGHT: weights})


def _of_their_turns(curves: pd.DataFrame, task: str, seeds: Mapping[str, int]) -> pd.DataFrame:
    """Curves without a point's agents of other seeds, where it has that of its turn."""
    from lcd.curves.names import evaluated_name
    from lcd.curves.reading import group_numbers

    contexts = curves["context"].astype(object)
    trained = contexts.map({name: evaluated_name(task, name) for name in seeds}) == curves["trained_on"].astype(object)
    taking = (curves["task"] == task).to_numpy() & trained.to_numpy(bool)
    its_turn = taking & (curves["seed"] == contexts.map(seeds)).to_numpy(bool)
    points = group_numbers(curves, ["benchmark", "trained_on", "view", "frontend", "reward_p", "shaping", "agent"])
    return curves[~taking | its_turn | ~np.isin(points, points[its_turn])]
