"""How many times as many steps: from pixels against solved views, at p = .25, and against a reference task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Evidence
from lcd.envs.errors import nearest
from lcd.scores.challenge_table import GROUP, KEYS
from lcd.scores.contrasts import REWARD, SAMPLES
from lcd.scores.diagnosis import Diagnosis
from lcd.scores.factors import factor_text
from lcd.scores.judging import OPEN, bounded
from lcd.scores.scoring import shift_of

SCORES = {"steps to see": f"phi_{SAMPLES}", "steps at p=.25": f"psi_{SAMPLES}"}
BESIDE = "reference"
NOTE = (
    "How many times as many steps it takes to the same returns: from pixels against the views that are solved (their "
    "mean in logs), with rewards kept at p = .25 against all of them, and, on the solved view, against the reference "
    "task. log₂ is the shift in log steps that aligns the mean curves best over the returns between .1 and .9 of what "
    "is gained by any of them; returns that are not reached within the budget, or before the first evaluation, bound "
    "it. At least: more than three quarters of the returns are not reached. Intervals are 95 %, over seeds."
)


@dataclass(frozen=True)
class SamplesSettings:
    """What a user sets.

    Attributes:
        reference: the task that others are compared with; where it is empty, the one that was made easiest, of
            benchmarks that know how hard their tasks were made.
    """

    reference: str = ""


def in_samples(evidence: Evidence, settings: SamplesSettings) -> Analysis | None:
    """By what factor do steps multiply: to see, where rewards are rare, and against a reference task?"""
    diagnosis = evidence.diagnosis
    table = diagnosis.table
    # Whoever has trained for hours gets the rest of the report.
    strange = bool(settings.reference) and settings.reference not in set(table["task"])
    says = [
        f"analysis_params.samples.reference={settings.reference} is no task here: "
        f"{nearest(settings.reference, sorted(set(table['task'])))}"
    ]
    if table.empty or (table[list(SCORES.values())].isna().all(axis=None) and not settings.reference):
        return None
    rows, references = [], set()
    for _, group in table.groupby(list(GROUP), sort=False):
        reference = "" if strange else settings.reference or _easiest(group)
        for _, row in group.iterrows():
            found = {"task": row["task"]} | {name: row[name] for name in GROUP if table[name].nunique() > 1}
            found |= {name: factor_text(row, column) for name, column in SCORES.items()}
            if reference and not diagnosis.curves.empty:
                against = _against(diagnosis, row, reference)
                found |= {f"steps against {reference}": factor_text(against, BESIDE)}
                references.add(reference)
            else:
                against = {}
            for name, column in SCORES.items():
                found |= {f"log₂ {name}{end}": row[column + end] for end in ("", "_low", "_high")}
            found |= {f"log₂ against{key.removeprefix(BESIDE)}": value for key, value in against.items()
                      if not key.endswith("status")}  # fmt: skip
            rows.append(found)
    return Analysis(SAMPLES, "How many times as many steps", pd.DataFrame(rows), says if strange else (), NOTE)


def _easiest(group: pd.DataFrame) -> str:
    """The task that was made easiest, where that is known and is one."""
    levels = group["perception_level"] + group["reward_level"]
    least = group.loc[levels == levels.min(), "task"]
    return str(least.iloc[0]) if len(least) == 1 else ""


def _against(diagnosis: Diagnosis, row: pd.Series, reference: str) -> dict[str, Any]:
    """A task's steps as a multiple of the reference's, where perception is solved and all rewards are kept."""
    condition = diagnosis.conditions_of(REWARD, row["benchmark"])[0]
    named = {name: row[name] for name in KEYS}
    pair: dict[str, Mapping[int, Any]] = {
        "slow": diagnosis.index.under(named, condition),
        "fast": diagnosis.index.under(named | {"task": reference}, condition),
    }
    known = all(pair.values()) and all(
        diagnosis.index.has_range(named | {"task": task}, condition) for task in (row["task"], reference)
    )
    found = shift_of(pair, diagnosis.thresholds.overlap) if known and row["task"] != reference else None
    if found is None:
        return bounded([BESIDE], *([np.nan] for _ in range(3))) | {f"{BESIDE}_status": "–"}
    shift, interval = found
    return bounded([BESIDE], [shift.value], *([end] for end in interval)) | {f"{BESIDE}_status": OPEN[int(shift.open)]}
