"""How φ and ψ change where other ranges of returns are known of the same tasks."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses.agreement import SIGN
from lcd.analyses.analysis import Analysis, Evidence
from lcd.curves.ranges import Sets, range_sets
from lcd.scores.challenge_table import GROUP
from lcd.scores.contrasts import HEADLINE, Contrast, StepsFormula
from lcd.scores.diagnosis import Diagnosis
from lcd.statistics.hypotheses import correlation


def under_other_ranges(evidence: Evidence) -> Analysis | None:
    """How do φ and ψ change under other ranges of returns that are known of the same tasks?"""
    return None if evidence.curves.empty else other_ranges(evidence.diagnosis)


def other_ranges(diagnosis: Diagnosis) -> Analysis | None:
    """Raw φ and ψ of each task under every range that its benchmark knows by a name; None where there is one at most.

    An area is a mean of returns that are scaled linearly, so that it is known under another range, too.
    """
    sets = range_sets(diagnosis.curves)
    if len(sets) < 2:
        return None
    used = diagnosis.curves.groupby(["benchmark", "task"], observed=True)[["r_min", "r_max"]].first()
    rows = []
    for _, row in diagnosis.table.iterrows():
        key = row["benchmark"], row["task"]
        if key in used.index and all(row["task"] in ranges for ranges in sets.values()):
            named = {name: row[name] for name in (*GROUP, "task")}
            rows.append(named | _scores(diagnosis, row, sets, used.loc[key]))
    table = pd.DataFrame(rows)
    scored = [name for name in table if name.startswith(tuple(SIGN.values())) and table[name].notna().any()]
    if table.empty or not scored:
        return None
    own, *others = sets
    says = [
        _sentence(table, sign, own, other)
        for sign in SIGN.values()
        for other in others
        if {f"{sign}, {own}", f"{sign}, {other}"} <= set(scored)
    ]
    in_use = [name for name, ranges in sets.items() if _is_used(ranges, used)]
    note = f"Raw scores by the definition '{diagnosis.definition}', without intervals. " + (
        f"All other numbers of this report use the ranges '{in_use[0]}'; ranges=NAME chooses."
        if in_use
        else "All other numbers of this report use other ranges than these; ranges=NAME chooses."
    )
    columns = [*GROUP, "task", *(f"R_min, {name}" for name in sets), *(f"R_max, {name}" for name in sets), *scored]
    varying = [name for name in columns if not name.startswith("R_max") or table[name].ne(table[f"R_max, {own}"]).any()]
    return Analysis("ranges", "Under other ranges of returns", table[varying], says, note)


def _scores(diagnosis: Diagnosis, row: pd.Series, sets: Sets, used: pd.Series) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, ranges in sets.items():
        low, high = ranges[row["task"]]
        found |= {f"R_min, {name}": low, f"R_max, {name}": high}
        for contrast in HEADLINE:
            areas = _areas(diagnosis, row, contrast) * (used["r_max"] - used["r_min"]) + used["r_min"]
            told = np.isfinite(row[f"{contrast.name}_raw"]) and np.isfinite(areas).all()
            formula = contrast.formulas[contrast.formula_under(diagnosis.definition)]
            if isinstance(formula, StepsFormula):  # ranges do not move it
                continue
            score = formula.score((areas - low) / (high - low), diagnosis.thresholds.no_signal) if told else np.nan
            found[f"{SIGN[contrast.name]}, {name}"] = float(score)
    return found


def _areas(diagnosis: Diagnosis, row: pd.Series, contrast: Contrast) -> np.ndarray:
    conditions = diagnosis.conditions_of(contrast, row["benchmark"])
    return np.array([row.get(f"auc_{condition.name}", np.nan) for condition in conditions], dtype=float)


def _is_used(ranges: Mapping[str, Any], used: pd.DataFrame) -> bool:
    """Whether a report's own numbers are made with these ranges."""
    pairs = {task: (row["r_min"], row["r_max"]) for (_, task), row in used.iterrows()}
    return all(np.allclose(pairs[task], ranges[task]) for task in pairs if task in ranges)


def _sentence(table: pd.DataFrame, sign: str, own: str, other: str) -> str:
    both = table[[f"{sign}, {own}", f"{sign}, {other}"]].dropna()
    change = (both.iloc[:, 1] - both.iloc[:, 0]).abs()
    rho = correlation(*(both[name].to_numpy() for name in both)).statistic
    ranked = f"; their rank correlation over {len(both)} tasks is {rho:.2f}" if np.isfinite(rho) else ""
    return (
        f"With the ranges '{other}' in place of '{own}' raw {sign} changes by at most {change.max():.2f} "
        f"({table.loc[change.idxmax(), 'task']}){ranked}."
    )
