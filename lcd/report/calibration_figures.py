"""The outcome of a calibration as a table for the terminal and as figures."""

import math
from collections.abc import Mapping
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
    """Recovery and cross-talk of every definition and of the scores in samples: Spearman's ρ with their intervals.

    Beside a recovery is the best that noise of seeds allows. What is not known of a kind of hardness has no column.
    """
    told = [name for name in COMPARED if diagnosis.calibration.get(name)]
    heads = [measure for measure in HEADS if any(measure in diagnosis.calibration[name] for name in told)]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title="Calibration: Spearman's ρ [95 %]")
    table.add_column("definition")
    for measure in heads:
        table.add_column(HEADS[measure], justify="right")
        if measure.endswith("recovery"):
            table.add_column("at best", justify="right")
    for name in told:
        table.add_row(name, *(cell for measure in heads for cell in _cells(diagnosis.calibration[name], measure)))
    return table


def _cells(found: Mapping[str, Any], measure: str) -> list[str]:
    """A measure in words, and of a recovery its ceiling."""
    told = found[measure]
    cells = [f"{told['value']:.2f} [{told['low']:.2f}, {told['high']:.2f}]"]
    return [*cells, f"{told.get('ceiling', math.nan):.2f}"] if measure.endswith("recovery") else cells


def calibration_figure(diagnosis: Diagnosis, name: str) -> Figure:
    """Both raw scores by a definition against both kinds of hardness, with intervals."""
    figure = Figure(figsize=(7.2, 5.6), layout="constrained")
    for axes, (measure, (score, kind)) in zip(figure.subplots(2, 2).flat, MEASURES.items(), strict=True):
        found = diagnosis.calibration[name].get(measure)
        if found is None:
            axes.set_axis_off()
            continue
        _panel(axes, diagnosis, f"{score}_{name}", kind)
        axes.set_title(f"ρ = {found['value']:.2f} [{found['low']:.2f}, {found['high']:.2f}]", fontsize=9)
        axes.set_ylabel(f"{SIGNS[score]}, {name}")
        if measure.endswith("recovery") and axes.get_legend_handles_labels()[1]:
            # There points leave a corner free; the panel across has the same colours.
            axes.legend(fontsize=7, frameon=False, loc="upper left")
    return figure


def _panel(axes: Any, diagnosis: Diagnosis, score: str, kind: str) -> None:
    """One score against one kind of hardness; where the other kind has few levels, these side by side."""
    other = next(each for each in LEVELS if each != kind)
    table, few = diagnosis.table, 0 < diagnosis.table[LEVELS[other]].nunique() <= len(COLOURS)
    for place, (level, rows) in enumerate(table.groupby(LEVELS[other]) if few else [("", table)]):
        shift = 0.1 * (place - (table[LEVELS[other]].nunique() - 1) / 2) if few else 0.0
        ends = np.abs(rows[[f"{score}_low", f"{score}_high"]].to_numpy(float).T - rows[score].to_numpy(float))
        axes.errorbar(
            rows[LEVELS[kind]] + shift,
            rows[score],
            yerr=ends,
            fmt=MARKERS[place % len(MARKERS)],
            color=COLOURS[place % len(COLOURS)],
            markersize=4,
            linewidth=1,
            label=f"{NAMES[other]} {level:g}" if few else None,
        )
    axes.set_xlabel(NAMES[kind])
    levels = sorted(table[LEVELS[kind]].dropna().unique())
    if len(levels) <= len(COLOURS):
        axes.set_xticks(levels)
