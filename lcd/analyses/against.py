"""Two studies beside each other: how much the scores and areas of shared tasks differ."""

from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, joined_names
from lcd.envs.errors import InputError
from lcd.scores.challenge_table import GROUP
from lcd.scores.diagnosis import Diagnosis

MEASURES = {"phi_raw": "φ, raw", "psi_raw": "ψ, raw", "phi_gain": "gain over pixels"}


def shares_tasks(first: Diagnosis, second: Diagnosis) -> bool:
    """Whether some task of two studies is the same, so that its scores may be compared."""
    return bool(len(first.table.merge(second.table, on=_keys(first.table, second.table))))


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
        raise InputError(f"{names[0]} and {names[1]} have no task in common: only on one map can they be compared.")
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


def on_one_map(first: Diagnosis, second: Diagnosis, names: tuple[str, str] = ("A", "B")) -> Analysis:
    """The tasks of two studies, of one benchmark or of two, by raw φ and ψ, which have one scale for all.

    Args:
        first, second: their tasks need not be the same.
        names: what the studies are called.
    """
    parts = [each.table.assign(study=name) for each, name in zip((first, second), names, strict=True)]
    columns = [f"{score}{end}" for score in MAPPED for end in ("", "_low", "_high")]
    table = pd.concat(parts, ignore_index=True)[["study", *GROUP, "task", *columns, "seeds", "status", "validity"]]
    says = [told for score, sign in MAPPED.items() if (told := _which_is_harder(table, score, sign, names))]
    unplaced = table[table[list(MAPPED)].isna().any(axis=1)]
    if len(unplaced):
        says.append(f"Not on the map, for want of one of the scores: {joined_names(unplaced['task'].tolist())}.")
    note = (
        f"Raw scores by the definition “{first.definition}”: scaled ones compare the tasks of one study alone. Tasks "
        "are those that were trained, no sample of others; agents, budgets and ranges of returns take part in a score."
    )
    return Analysis("map", f"{names[0]} and {names[1]} on one map", table, says, note)


MAPPED = {"phi_raw": "φ", "psi_raw": "ψ"}


def _which_is_harder(table: pd.DataFrame, score: str, sign: str, names: tuple[str, str]) -> str:
    """Medians, and in how many pairs of tasks the second study's is the harder one; "" where one has none."""
    mine = [table.loc[(table["study"] == name) & table[score].notna()] for name in names]
    if not all(map(len, mine)):
        return ""
    one, other = (rows[score].to_numpy() for rows in mine)
    harder = float((other[:, None] > one[None, :]).mean() + (other[:, None] == one[None, :]).mean() / 2)
    lows, highs = ([rows[f"{score}{end}"].to_numpy() for rows in mine] for end in ("_low", "_high"))
    sure = float((lows[1][:, None] > highs[0][None, :]).mean())
    return (
        f"{sign}, raw: the median task has {np.median(one):.2f} in {names[0]} ({len(one)} tasks) and "
        f"{np.median(other):.2f} in {names[1]} ({len(other)} tasks); of all pairs, in {harder:.0%} the one of "
        f"{names[1]} is the harder (in {sure:.0%} their intervals are apart)."
    )


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
