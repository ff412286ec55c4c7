"""Two studies beside each other: how much the scores and areas of shared tasks differ."""

from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, joined_names
from lcd.envs.errors import InputError
from lcd.scores.challenge_table import GROUP
from lcd.scores.diagnosis import Diagnosis

MEASURES = {"phi_raw": "φ, raw", "psi_raw": "ψ, raw", "phi_gain": "gain over pixels"}


def against(first: Diagnosis, second: Diagnosis, names: tuple[str, str] = ("A", "B")) -> Analysis:
    """The second study's scores less the first's, task by task, with 95 % intervals.

    Args:
        first, second: their tasks are matched by name; where a study has several groups, also by agent, front-end and
            shaping.
        names: what the studies are called.
    """
    keys = _keys(first.table, second.table)
    both = first.table.merge(second.table, on=keys, suffixes=(" A", " B"))
    if both.empty:
        raise InputError(f"{names[0]} and {names[1]} have no task in common: nothing can be compared.")
    areas = {f"auc_{name}": f"AUC, {name.replace('_', ' ')}" for name in first.conditions()}
    measures = {column: label for column, label in (MEASURES | areas).items() if f"{column} B" in both}
    rows = []
    for _, row in both.iterrows():
        for column, label in measures.items():
            found: dict[str, Any] = _difference(row, column)
            if np.isfinite(found["difference"]):
                rows.append({key: row[key] for key in keys} | {"measure": label} | found)
    table = pd.DataFrame(rows, columns=[*keys, "measure", "A", "A_low", "A_high", "B", "B_low", "B_high", *_COLUMNS])
    says = [_sentence(table, label) for label in MEASURES.values() if (table["measure"] == label).any()]
    note = (
        f"A is {names[0]}, B is {names[1]}; difference = B − A. The studies count as independent: both variances add "
        "up. Raw scores are compared, because scaled ones depend on which other tasks a study has."
    )
    return Analysis("against", f"{names[0]} and {names[1]}", table, says, note)


_COLUMNS = ("difference", "difference_low", "difference_high", "apart")


def _keys(first: pd.DataFrame, second: pd.DataFrame) -> list[str]:
    keys = ["task"]
    for name in GROUP:
        shared = set(first[name]) & set(second[name])
        if shared and (first[name].nunique() > 1 or second[name].nunique() > 1):
            keys.append(name)
    return keys


def _difference(row: pd.Series, column: str) -> dict[str, object]:
    one, other = row[f"{column} A"], row[f"{column} B"]
    found: dict[str, object] = {}
    halves = []
    for side in "AB":
        low, high = row[f"{column}_low {side}"], row[f"{column}_high {side}"]
        found |= {side: float(row[f"{column} {side}"]), f"{side}_low": float(low), f"{side}_high": float(high)}
        halves.append((high - low) / 2)
    half = float(np.hypot(*halves))
    change = float(other - one)
    told = "" if not np.isfinite(half) else "yes" if abs(change) > half else "no"
    return found | {
        "difference": change,
        "difference_low": change - half,
        "difference_high": change + half,
        "apart": told,
    }


def _sentence(table: pd.DataFrame, label: str) -> str:
    rows = table[table["measure"] == label]
    changed = rows[rows["apart"] == "yes"]
    if (rows["apart"] == "").all():
        return f"{label}: {len(rows)} tasks compared; one seed cannot tell whether they differ."
    if changed.empty:
        return f"{label}: none of {len(rows)} tasks differs by more than seeds do."
    return f"{label}: {len(changed)} of {len(rows)} tasks differ for sure ({joined_names(changed['task'].tolist())})."
