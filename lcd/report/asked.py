"""What a page is about: φ and ψ, further contrasts alone, or families of tasks."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from lcd.analyses import Analysis
from lcd.analyses.analysis import joined_names
from lcd.analyses.families import is_of_methods
from lcd.scores.contrasts import HEADLINE, Contrast
from lcd.scores.diagnosis import Diagnosis, status_sentences
from lcd.scores.left_out import STATES


def is_asked(diagnosis: Diagnosis, rows: pd.DataFrame) -> bool:
    """Whether some task was trained under two conditions that φ or ψ compare."""
    return any(is_asked_by(contrast, diagnosis, rows) for contrast in HEADLINE)


def is_asked_by(contrast: Contrast, diagnosis: Diagnosis, rows: pd.DataFrame) -> bool:
    """Whether some task was trained under two conditions that a contrast compares."""
    for benchmark in diagnosis.solved:
        names = [f"auc_{each.name}" for each in diagnosis.conditions_of(contrast, benchmark)]
        known = rows[[name for name in names if name in rows]]
        if (known.notna().sum(axis=1) > 1).any():
            return True
    return False


def is_compared(rows: pd.DataFrame) -> bool:
    """Whether some task was trained under two conditions that any contrast compares."""
    areas = [name for name in rows if name.startswith("auc_") and not name.endswith(("_low", "_high"))]
    return bool((rows[areas].notna().sum(axis=1) > 1).any())


def statuses_of(row: Mapping[str, Any], further: Sequence[Contrast]) -> list[tuple[str, str]]:
    """What a row's scores are worth: those of φ and ψ, or, where they were not asked, those of what was."""
    if not further or row["status"] in STATES:
        return status_sentences(row)
    found = [(each.sign, row[f"{each.name}_status"]) for each in further]
    return [(sign, status) for sign, status in found if status not in ("ok", "single_task")] or [("", "ok")]


def families_alone(diagnosis: Diagnosis, analyses: Sequence[Analysis]) -> str:
    """The tasks whose families the page is about; empty where it is about φ or ψ, or about no family."""
    told = [str(each.table["task"].iloc[0]) for each in analyses if is_of_methods(each.key)]
    return "" if is_asked(diagnosis, diagnosis.table) else joined_names(list(dict.fromkeys(told))) if told else ""
