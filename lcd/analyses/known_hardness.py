"""Whether the scores measure what they claim, where it is known how hard the tasks were made."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from lcd.analyses.analysis import Analysis, Drawing, Evidence
from lcd.scores.calibration import TRUTHS
from lcd.scores.contrasts import COMPARED
from lcd.scores.diagnosis import Diagnosis


def recovery(evidence: Evidence) -> Analysis | None:
    """Do the scores measure what they claim? Recovery and cross-talk, where the tasks' hardness is known."""
    diagnosis = evidence.diagnosis
    if not diagnosis.calibration:
        return None
    compared = [name for name in COMPARED if name in diagnosis.calibration]
    rows = [
        {"definition": name, "measure": measure.replace("_", " ")}
        | {"ρ": found["value"], "ρ_low": found["low"], "ρ_high": found["high"]}
        | {"ceiling": found.get("ceiling", math.nan), "partial": found.get("partial", math.nan)}
        | {"tasks": float(found["tasks"])}
        for name in compared
        for measure, found in diagnosis.calibration[name].items()
    ]
    says = [_said(row) for row in rows if row["measure"].endswith("recovery")]
    note = (
        "Spearman's ρ of the scores with the hardness that the tasks were made with: recovery (φ with perception, ψ "
        "with reward) should be high, crosstalk near 0. The ceiling is "
        "what noise of seeds alone lets ρ be; partial is what is left of ρ given the other kind of hardness."
    )
    if truths := diagnosis.calibration.get(TRUTHS):
        note += f" Both kinds of hardness have ρ {truths['value']:.2f} with each other."
    figures = [
        Drawing(f"calibration-{name}", f"Scores against known hardness, {name}", partial(_draw, diagnosis, name))
        for name in compared
    ]
    return Analysis("calibration", "Do the scores measure what they claim?", pd.DataFrame(rows), says, note, figures)


def _said(row: Mapping[str, Any]) -> str:
    at_best = "" if math.isnan(row["ceiling"]) else f" of {row['ceiling']:.2f} that noise of seeds allows"
    return f"{row['definition']}: {row['measure']} {row['ρ']:.2f}{at_best}."


def _draw(diagnosis: Diagnosis, name: str, narrow: bool) -> Figure:
    from lcd.report.calibration_figures import calibration_figure

    return calibration_figure(diagnosis, name)
