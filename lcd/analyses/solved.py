"""Which tasks of known effective horizon are solved exactly, after how many steps, and whether H says which."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Drawing, Evidence
from lcd.curves.names import knobs_of_task, unvaried_task
from lcd.scores.horizons import COLUMNS, LONG
from lcd.statistics.hypotheses import correlation

TOLERANCE = 1e-6
"""A return is the best there is where it differs from R_max by at most this share of it."""
SETTINGS = "["
"""What follows an agent's name where a study varies its settings: `ppo[rollout=128]`."""
_FEWEST = 3


def solved(evidence: Evidence) -> Analysis | None:
    """Which tasks of known effective horizon reach the best return exactly; the settings of an agent count as one."""
    curves, spans = evidence.curves, evidence.diagnosis.horizons
    horizons = pd.DataFrame(spans.values(), index=list(spans), columns=list(COLUMNS), dtype=float)
    horizons = horizons[_is_known(horizons)]
    if horizons.empty or curves.empty:
        return None
    plain = (curves["split"] == "eval") & (curves["reward_p"] == 1) & (curves["shaping"] == "none")
    # A task whose knobs are changed is shown beside it, though its own H may be unknown.
    near = curves["task"].isin(horizons.index) | curves["task"].map(unvaried_task).isin(horizons.index)
    held_out = curves[plain & near]
    found = pd.DataFrame(_outcomes(held_out)).join(horizons, on="task") if len(held_out) else pd.DataFrame()
    if found.empty:
        return None
    note = (
        "A task is solved where, at any evaluation of any seed and setting of an agent, all episodes have the best "
        "return, R_max. N is the median over seeds of the training steps of one seed until then, of the setting with "
        "the least; without it, less than half of the seeds came so far. With evaluation.greedy=true and one episode "
        "this is the measure of Laidlaw et al. (2025), who test every 1,000 steps of ten million."
    )
    caption = "Steps until a task is solved, against its effective horizon"
    drawing = Drawing("solved", caption, partial(_draw, found[_is_known(found)]))
    told = [_horizon(*bounds) for bounds in found[["H", "H_low"]].itertuples(index=False)]
    alike = [name for name in ("view", "frontend", "settings") if found[name].nunique() == 1]
    shown = found.assign(H=told).drop(columns=["H_low", "H_high", *alike])
    ways = [name for name in ("view", "frontend") if name not in alike]
    says = [
        sentence
        for key, mine in found.groupby(["agent", *ways], sort=True)
        for sentence in _sentences(" ".join(map(str, key)), mine)
    ]
    return Analysis("solved", "Solved exactly", shown, says, note, [drawing])


def _outcomes(held_out: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """One row for each task, agent (whatever its settings) and view."""
    best = np.abs(held_out["return_mean"] - held_out["r_max"]) <= TOLERANCE * np.maximum(1, np.abs(held_out["r_max"]))
    # Rows say nothing of single episodes but their spread.
    best &= ~(held_out["return_std"] > TOLERANCE * np.maximum(1, np.abs(held_out["r_max"])))
    seeds = held_out.assign(hit=held_out["step"].where(best, np.inf), family=_families(held_out["agent"]))
    keys = ["task", "family", "view", "frontend", "agent", "seed"]
    first = seeds.groupby(keys, observed=True, sort=True)["hit"].min().reset_index()
    for key, mine in first.groupby(keys[:4], observed=True, sort=True):
        by_setting = mine.groupby("agent", observed=True)["hit"]
        median = by_setting.median().min()
        yield dict(zip(("task", "agent", "view", "frontend"), map(str, key), strict=True)) | {
            "solved": bool(np.isfinite(mine["hit"]).any()),
            "seeds solved": f"{int(np.isfinite(mine['hit']).sum())} of {len(mine)}",
            "settings": float(by_setting.ngroups),
            "N": float(median) if np.isfinite(median) else np.nan,
        }


def _is_known(rows: pd.DataFrame) -> pd.Series:
    """Of which rows H, or the least that it can be, is known."""
    return rows[["H", "H_low"]].notna().any(axis=1)


def _horizon(h: float, low: float) -> str:
    if np.isfinite(h):
        return f"{h:.1f}"
    return f"≥ {low:.1f}" if np.isfinite(low) else "–"


def _families(agents: pd.Series) -> pd.Series:
    return agents.astype(str).str.partition(SETTINGS)[0]


def _sentences(agent: str, rows: pd.DataFrame) -> Iterator[str]:
    """What an agent solves, a row a task: one view and front-end at a time, each of which has all tasks again."""
    known = _is_known(rows)
    # In a grid every task has its knobs, and its own row says enough.
    beside = rows["task"].map(unvaried_task).isin(rows["task"])
    knobs = rows["task"].map(knobs_of_task)
    others, rows = rows[beside & (knobs != "")], rows[known]
    horizon = rows["H"].fillna(rows["H_low"])
    parts = [_share(rows["solved"])]
    for words, chosen in (("H < 8", rows["H"].fillna(rows["H_high"]) < LONG), ("H ≥ 8", horizon >= LONG)):
        if chosen.any():
            parts.append(f"{_share(rows.loc[chosen, 'solved'])} with {words}")
    yield f"{agent} solves {parts[0]} tasks exactly{': ' + ', '.join(parts[1:]) if parts[1:] else ''}."
    for varied, mine in others.groupby(knobs[others.index], sort=False):
        yield f"With {varied} {agent} solves {_share(mine['solved'])} exactly."
    told = f"{agent}: tasks with a longer effective horizon (or lower bound of it)"
    for values, verb, ways in (
        (rows["solved"].astype(float), "are solved", ("less often", "more often")),
        (rows["N"], "that are solved take", ("fewer steps", "more steps")),
    ):
        both = horizon.notna() & values.notna()
        x, y = horizon[both].to_numpy(float), values[both].to_numpy(float)
        if len(x) >= _FEWEST and np.ptp(x) > 0 and np.ptp(y) > 0:
            tested = correlation(x, y)
            rho = f"ρ = {tested.statistic:.2f} (p = {tested.p:.2f}) over {len(x)} tasks"
            yield f"{told} {verb} {ways[tested.statistic > 0]}, {rho}."


def _share(solved: pd.Series) -> str:
    return f"{int(solved.sum())} of {len(solved)}"


def _draw(found: pd.DataFrame, narrow: bool) -> Any:
    from lcd.report.horizon_figures import steps_against_horizon

    return steps_against_horizon(found, narrow)
