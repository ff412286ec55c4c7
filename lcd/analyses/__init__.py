"""What a study says beyond φ and ψ: the paper's analyses, as functions of curves."""

from collections.abc import Callable, Mapping

import pandas as pd

from lcd.analyses.adaptive import adaptive
from lcd.analyses.agreement import agreement
from lcd.analyses.analysis import Analysis
from lcd.analyses.gains import gains
from lcd.analyses.levels import final_performance, generalisation
from lcd.analyses.outcomes import elsewhere
from lcd.analyses.published import compare
from lcd.analyses.raw_returns import raw_returns
from lcd.analyses.synergy import synergy
from lcd.analyses.taxonomy import taxonomy
from lcd.envs.errors import InputError
from lcd.scores.contrasts import DEFINITIONS
from lcd.scores.diagnosis import Diagnosis

__all__ = ["Analysis", "analyse"]


def analyse(
    diagnosis: Diagnosis,
    threshold: float = 0.5,
    first: str | None = None,
    chosen: Mapping[str, Mapping[str, str]] | None = None,
    shared_seeds: bool = False,
) -> tuple[list[Analysis], list[str]]:
    """All analyses that a study's curves allow.

    Args:
        diagnosis: of the study, with its curves.
        threshold: from where on a scaled score counts as hard.
        first: the key of the analysis that comes first: an ablation's.
        chosen: task to agent and front-end that an earlier diagnosis recommends; see `lcd.analyses.adaptive`.
        shared_seeds: whether that diagnosis was made from the same seeds.

    Returns:
        The analyses, and sentences on those that the curves do not allow though they could.
    """
    curves = diagnosis.curves
    unranged = len(curves) > 0 and bool(curves["normalised"].isna().any())
    if unranged:
        curves = curves[curves["normalised"].notna()]
    made: list[Analysis] = [taxonomy(diagnosis, threshold)] if len(diagnosis.table) else []
    made += [of_known_hardness(diagnosis)] if diagnosis.calibration else []
    notes: list[str] = []
    of_trained: list[Callable[[], list[Analysis | None]]] = [
        lambda: [agreement(diagnosis)],
        lambda: [synergy(curves)],
        lambda: list(gains(diagnosis, "frontend", threshold)),
        lambda: list(gains(diagnosis, "shaping", threshold)),
        lambda: [adaptive(curves, chosen, shared_seeds) if chosen else None],
        lambda: [final_performance(curves)],
        lambda: [generalisation(curves)],
    ]
    everything: list[Callable[[], list[Analysis | None]]] = [
        lambda: [elsewhere(pd.concat([each for each in (diagnosis.curves, diagnosis.others) if len(each)]))],
    ]
    if unranged:
        of_trained = [lambda: list(raw_returns(diagnosis.curves)), *(of_trained if len(curves) else ())]
    wanted = of_trained if len(diagnosis.curves) else []
    for step in [*wanted, *(everything if len(diagnosis.others) else ())]:
        try:
            made += [analysis for analysis in step() if analysis is not None]
        except InputError as impossible:
            # Curves of different lengths cannot be compared with each other; each is diagnosed all the same.
            notes.append(f"An analysis is left out: {impossible}")
    beside = compare(made)
    made += [beside] if beside is not None else []
    made = [analysis for analysis in made if len(analysis.table)]
    return sorted(made, key=lambda analysis: not analysis.key.startswith(first or "\0")), notes


def of_known_hardness(diagnosis: Diagnosis) -> Analysis:
    """Recovery and cross-talk of every definition, where it is known how hard the tasks were made."""
    rows = [
        {"definition": name, "measure": measure.replace("_", " ")}
        | {"ρ": found["value"], "ρ_low": found["low"], "ρ_high": found["high"], "tasks": float(found["tasks"])}
        for name in DEFINITIONS
        for measure, found in diagnosis.calibration[name].items()
    ]
    says = [
        f"{row['definition']}: {row['measure']} {row['ρ']:.2f}." for row in rows if row["measure"].endswith("recovery")
    ]
    note = (
        "Spearman's ρ of the scores with the hardness that the tasks were made with: recovery (φ with perception, ψ "
        "with reward) should be high, crosstalk near 0."
    )
    return Analysis("calibration", "Do the scores measure what they claim?", pd.DataFrame(rows), says, note)
