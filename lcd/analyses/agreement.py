"""Whether two agents find the same tasks hard (figure 4)."""

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Drawing, Evidence
from lcd.scores.challenge_table import GROUP
from lcd.scores.diagnosis import Diagnosis
from lcd.statistics.hypotheses import adjust, correlation
from lcd.statistics.intervals import BOOTSTRAP_SEED

KEPT = [name for name in GROUP if name != "agent"]
DRAWS = 2000
MOST = 0.999
SIGN = {"phi": "φ", "psi": "ψ"}


def agreements(evidence: Evidence) -> Analysis | None:
    """Do agents find the same tasks hard? Correlations of their scores over tasks."""
    return None if evidence.curves.empty else agreement(evidence.diagnosis)


def agreement(diagnosis: Diagnosis) -> Analysis | None:
    """Correlation over tasks of each raw score between every two agents; None with one agent."""
    rows = []
    for key, group in diagnosis.table.groupby(KEPT, sort=False):
        by_agent = {agent: found.set_index("task") for agent, found in group.groupby("agent")}
        for first, second in combinations(by_agent, 2):
            shared = by_agent[first].index.intersection(by_agent[second].index)
            for score in ("phi", "psi"):
                one, other = (by_agent[agent].loc[shared] for agent in (first, second))
                found = _correlated(one, other, f"{score}_raw")
                if found["n"] >= 3:
                    rows.append(
                        dict(zip(KEPT, key, strict=True)) | {"agents": f"{first}, {second}", "score": score} | found
                    )
    if not rows:
        return None
    table = pd.DataFrame(rows)
    table["p (Holm)"] = adjust(table["p (Spearman)"].to_numpy())
    says = [
        f"{row['agents']}: {SIGN[row['score']]} of {row['n']:.0f} tasks has the rank correlation {row['Spearman']:.2f} "
        f"(p = {row['p (Holm)']:.2g} after Holm)."
        for _, row in table.iterrows()
    ]
    note = "Correlations over tasks of raw scores; intervals from scores drawn with their errors over seeds."
    title = "Do agents find the same tasks hard?"
    figure = Drawing("agreement", title, partial(_draw, diagnosis, str(table["agents"].iloc[0])))
    return Analysis("agreement", title, table, says, note, [figure])


def _draw(diagnosis: Diagnosis, agents: str, narrow: bool) -> Any:
    from lcd.report.analysis_figures import scatter

    return scatter(diagnosis, *agents.split(", ", 1), narrow)


def _correlated(first: pd.DataFrame, second: pd.DataFrame, score: str) -> dict[str, float]:
    both = np.isfinite(first[score].to_numpy(float)) & np.isfinite(second[score].to_numpy(float))
    first, second = first[both], second[both]
    x, y = first[score].to_numpy(float), second[score].to_numpy(float)
    linear, ranked = correlation(x, y, kind="pearson"), correlation(x, y)
    found = {"n": float(len(x)), "Pearson": linear.statistic, "p (Pearson)": linear.p}
    found |= {"Spearman": ranked.statistic, "p (Spearman)": ranked.p, "Spearman_low": np.nan, "Spearman_high": np.nan}
    if len(x) >= 3:
        rng = np.random.default_rng(BOOTSTRAP_SEED)
        noise = rng.normal(size=(DRAWS, 2, len(x)))
        drawn = spearman_fast(*(_drawn(rows, score, noise[:, place]) for place, rows in enumerate((first, second))))
        if np.isfinite(drawn).all():
            # Noise lowers a correlation, so that quantiles of noisier scores would lie below the estimate.
            centre, *others = np.arctanh(np.clip([ranked.statistic, *drawn], -MOST, MOST))
            spread = np.std(others)
            found["Spearman_low"], found["Spearman_high"] = np.tanh(centre + np.array([-1.96, 1.96]) * spread)
    return found


def spearman_fast(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Rank correlations over the last axis of values without ties."""
    count = x.shape[-1]
    ranks = [np.argsort(np.argsort(values, axis=-1), axis=-1) - (count - 1) / 2 for values in (x, y)]
    # The sums are of whole numbers and quarters, so that no order of adding them matters.
    variances = [np.square(rank).sum(-1) for rank in ranks]
    return (ranks[0] * ranks[1]).sum(-1) / np.sqrt(variances[0]) / np.sqrt(variances[1])


def _drawn(rows: pd.DataFrame, score: str, noise: np.ndarray) -> np.ndarray:
    """Scores as they might have come out with other seeds."""
    half = ((rows[f"{score}_high"] - rows[f"{score}_low"]) / 2).to_numpy(float)
    return rows[score].to_numpy(float) + noise * half / 1.96
