"""Whether the scores measure what they claim, where it is known how hard the tasks were made."""

from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from lcd.analyses.analysis import Analysis, Drawing, Evidence
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
        | {"ρ": found["value"], "ρ_low": found["low"], "ρ_high": found["high"], "tasks": float(found["tasks"])}
        for name in compared
        for measure, found in diagnosis.calibration[name].items()
    ]
    says = [
        f"{row['definition']}: {row['measure']} {row['ρ']:.2f}." for row in rows if row["measure"].endswith("recovery")
    ]
    note = (
        "Spearman's ρ of the scores with the hardness that the tasks were made with: recovery (φ with perception, ψ "
        "with reward) should be high, crosstalk near 0."
    )
    figures = [
        Drawing(f"calibration-{name}", f"Scores against known hardness, {name}", partial(_draw, diagnosis, name))
        for name in compared
    ]
    return Analysis("calibration", "Do the scores measure what they claim?", pd.DataFrame(rows), says, note, figures)


def _draw(diagnosis: Diagnosis, name: str, narrow: bool) -> Figure:
    from lcd.report.calibration_figures import calibration_figure

    return calibration_figure(diagnosis, name)
