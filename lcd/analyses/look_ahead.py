"""Do tasks that take a long look ahead have other challenges? φ and ψ against the effective horizon H."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lcd.analyses.analysis import Analysis, Drawing, Evidence
from lcd.scores.contrasts import HEADLINE
from lcd.scores.diagnosis import GROUP
from lcd.scores.horizons import LONG
from lcd.statistics.hypotheses import correlation

_FEWEST = 3


def against_horizon(evidence: Evidence) -> Analysis | None:
    """Do φ and ψ go with the effective horizon? Spearman's ρ over the tasks whose H is known."""
    table = evidence.diagnosis.table
    if table.empty or table[["H", "H_low"]].isna().all(axis=None):
        return None
    if table[[f"{contrast.name}_raw" for contrast in HEADLINE]].isna().all(axis=None):
        return None
    rows = []
    for key, group in table.groupby(list(GROUP), sort=False):
        rows += [dict(zip(GROUP, key, strict=True)) | found for found in _of_group(group)]
    says = [_sentence(row) for row in rows if np.isfinite(row["Spearman"])]
    note = (
        "Spearman's ρ between H and a raw score over the tasks of a group that have both. Tasks of which only a lower "
        "bound on H is known take no part in ρ; n (H ≥ 8) and n (H < 8) count them where the bounds decide."
    )
    figures = [Drawing("horizon", "φ and ψ of each task against its effective horizon", partial(_draw, table))]
    return Analysis("horizon", "Scores against the effective horizon", pd.DataFrame(rows), says, note, figures)


def _of_group(group: pd.DataFrame) -> list[dict[str, float | str]]:
    found: list[dict[str, float | str]] = []
    low, high = group["H"].fillna(group["H_low"]), group["H"].fillna(group["H_high"])
    for contrast in HEADLINE:
        raw = group[f"{contrast.name}_raw"]
        both = group["H"].notna() & raw.notna()
        x, y = group.loc[both, "H"].to_numpy(float), raw[both].to_numpy(float)
        tested = correlation(x, y) if len(x) >= _FEWEST and np.ptp(x) > 0 and np.ptp(y) > 0 else None
        long, short = raw[low >= LONG].dropna(), raw[high < LONG].dropna()
        found.append(
            {
                "score": contrast.sign,
                "n": float(len(x)),
                "Spearman": np.nan if tested is None else tested.statistic,
                "p": np.nan if tested is None else tested.p,
                "mean (H ≥ 8)": float(long.mean()) if len(long) else np.nan,
                "n (H ≥ 8)": str(len(long)),
                "mean (H < 8)": float(short.mean()) if len(short) else np.nan,
                "n (H < 8)": str(len(short)),
            }
        )
    return found


def _sentence(row: dict) -> str:
    way = "higher" if row["Spearman"] > 0 else "lower"
    return (
        f"{row['agent']}: tasks with a longer effective horizon have {way} {row['score']}, "
        f"ρ = {row['Spearman']:.2f} over {row['n']:.0f} tasks."
    )


def _draw(table: pd.DataFrame, narrow: bool) -> Figure:
    from lcd.report.horizon_figures import scores_against_horizon

    return scores_against_horizon(table, LONG, narrow)
