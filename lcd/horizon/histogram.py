"""How long the effective horizons of a benchmark are, beside those of BRIDGE's MDPs: figure 1 of the 2025 paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lcd.envs.errors import InputError
from lcd.files.reading import read_table
from lcd.horizon.listed import SURVIVES, Row, least_h
from lcd.report.figures import INK, MUTED, SET_STYLES, styled_figure
from lcd.scores.horizons import LONG

ORIGINS = {"atari": "Atari (BRIDGE)", "procgen": "Procgen (BRIDGE)"}
NEEDED = ("mdp_name", "origin", "effective_horizon")
_PANEL = (6.4, 1.5)
_FEWEST_BINS, _MOST_BINS = 12, 20


def read_bridge(path: Path) -> dict[str, np.ndarray]:
    """Collection to its MDPs' effective horizons, from the `summary.csv` of the BRIDGE dataset."""
    table = read_table(path, "bridge", NEEDED, "BRIDGE's summary.csv")
    if "type" in table:
        table = table[table["type"] == "base"]
    horizons = pd.to_numeric(table["effective_horizon"], errors="coerce")
    wrong = table[(horizons < 0) | (horizons.isna() & table["effective_horizon"].notna())]
    if len(wrong):
        name, value = wrong[["mdp_name", "effective_horizon"]].iloc[0]
        raise InputError(f"bridge={path} has effective_horizon {value!r} for '{name}': give numbers of at least 0.")
    found = {shown: horizons[table["origin"] == origin].dropna().to_numpy() for origin, shown in ORIGINS.items()}
    if not any(len(values) for values in found.values()):
        raise InputError(f"bridge={path} has no MDP of Atari or Procgen: give BRIDGE's summary.csv.")
    return found


@styled_figure
def draw(rows: Sequence[Row], name: str, others: Mapping[str, np.ndarray] | None = None) -> Figure:
    """One panel a collection, its MDPs counted by H; where GORP did not succeed H is what it is at least."""
    kept = [row for row in rows if row["filter"] == SURVIVES]
    known = np.array([least_h(row) for row in kept if row["h"] is not None])
    open_ones = np.array([least_h(row) for row in kept if row["h"] is None])
    panels = [(shown, values, np.zeros(0)) for shown, values in (others or {}).items()]
    panels.append((name, known, open_ones[np.isfinite(open_ones)]))
    finite = np.concatenate([values[np.isfinite(values)] for _, *both in panels for values in both])
    bins = int(np.clip(np.floor(finite.max(initial=0.0)) + 1, _FEWEST_BINS, _MOST_BINS))
    edges = np.arange(bins + 1.0)
    figure = Figure(figsize=(_PANEL[0], _PANEL[1] * len(panels) + 0.5), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (shown, exact, least) in zip(axes, panels, strict=True):
        _panel(axis, shown, exact, least, edges)
    axes[-1].set_xlabel(f"effective horizon H; {bins - 1} and more stand at the right end")
    return figure


def _panel(axis: Axes, shown: str, exact: np.ndarray, least: np.ndarray, edges: np.ndarray) -> None:
    counts, bounds = (np.histogram(np.clip(values, 0, edges[-1]), edges)[0] for values in (exact, least))
    total = max(len(exact) + len(least), 1)
    colour = SET_STYLES[2][0]
    axis.bar(edges[:-1] + 0.5, counts, 0.9, color=colour, label="H")
    if len(least):
        axis.bar(
            edges[:-1] + 0.5, bounds, 0.9, counts, color="white", edgecolor=colour, hatch="////", label="at least H"
        )
        axis.legend(loc="upper right")
    axis.axvline(LONG, color=MUTED, linewidth=1, linestyle="--")
    long = (np.concatenate([exact, least]) >= LONG).sum()
    axis.set_ylabel("MDPs")
    axis.set_title(f"{shown}: {long} of {total} with H ≥ {LONG:g}", loc="left", color=INK, fontsize=9.5)
    axis.set_xlim(edges[0], edges[-1])
    axis.yaxis.get_major_locator().set_params(integer=True)
