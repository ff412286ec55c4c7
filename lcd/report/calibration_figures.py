"""The outcome of a calibration as a table for the terminal and as figures."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from lcd.scores.calibration import LEVELS, MEASURES
from lcd.scores.contrasts import COMPARED
from lcd.scores.diagnosis import Diagnosis

# Okabe and Ito's colours, which the colour-blind tell apart; markers say the same.
COLOURS, MARKERS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"), "os^Dv"
HEADS = {
    "phi_recovery": "φ with perceptual level",
    "psi_recovery": "ψ with RL level",
    "phi_crosstalk": "φ with RL level",
    "psi_crosstalk": "ψ with perceptual level",
}
SIGNS = {"phi": "φ", "psi": "ψ"}
NAMES = {"perception": "perceptual level", "reward": "RL level"}


def calibration_table(diagnosis: Diagnosis) -> Table:
    """Recovery and cross-talk of every definition and of the scores in samples: Spearman's ρ with their intervals."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title="Calibration: Spearman's ρ [95 %]")
    table.add_column("definition")
    for head in HEADS.values():
        table.add_column(head, justify="right")
    for name in COMPARED:
        found = diagnosis.calibration.get(name)
        if not found:
            continue
        table.add_row(name, *(f"{m['value']:.2f} [{m['low']:.2f}, {m['high']:.2f}]" for m in map(found.get, HEADS)))
    return table


def calibration_figure(diagnosis: Diagnosis, name: str) -> Figure:
    """Both raw scores by a definition against both kinds of hardness, with intervals."""
    figure = Figure(figsize=(7.2, 5.6), layout="constrained")
    for axes, (measure, (score, kind)) in zip(figure.subplots(2, 2).flat, MEASURES.items(), strict=True):
        _panel(axes, diagnosis, f"{score}_{name}", kind)
        found = diagnosis.calibration[name][measure]
        axes.set_title(f"ρ = {found['value']:.2f} [{found['low']:.2f}, {found['high']:.2f}]", fontsize=9)
        axes.set_ylabel(f"{SIGNS[score]}, {name}")
        if measure.endswith("recovery"):  # there points leave a corner free; the panel across has the same colours
            axes.legend(fontsize=7, frameon=False, loc="upper left")
    return figure


def _panel(axes: Any, diagnosis: Diagnosis, score: str, kind: str) -> None:
    """One score against one kind of hardness; the levels of the other kind side by side."""
    other = next(each for each in LEVELS if each != kind)
    for place, (level, rows) in enumerate(diagnosis.table.groupby(LEVELS[other])):
        shift = 0.1 * (place - (diagnosis.table[LEVELS[other]].nunique() - 1) / 2)
        ends = np.abs(rows[[f"{score}_low", f"{score}_high"]].to_numpy(float).T - rows[score].to_numpy(float))
        axes.errorbar(
            rows[LEVELS[kind]] + shift,
            rows[score],
            yerr=ends,
            fmt=MARKERS[place % len(MARKERS)],
            color=COLOURS[place % len(COLOURS)],
            markersize=4,
            linewidth=1,
            label=f"{NAMES[other]} {level:g}",
        )
    axes.set_xlabel(NAMES[kind])
    axes.set_xticks(sorted(diagnosis.table[LEVELS[kind]].dropna().unique()))
