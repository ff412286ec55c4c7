"""What a sweep over dimensions of hardness says: areas with intervals, rank correlations, one-sided tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from lcd.curves.table import area
from lcd.envs.errors import InputError
from lcd.envs.hardness.task_names import parse_task
from lcd.statistics.intervals import bootstrap

LEVEL = 0.05
METRICS = {
    "train": ("train", "return_mean"),
    "eval": ("eval", "return_mean"),
    "length": ("eval", "length_mean"),
    "noise_free": ("noise_free", "return_mean"),
}
"""Metric -> (the curve's split, the column)."""


def factor(knobs: Mapping[str, Any]) -> float:
    """What brings the discrete toy's best return to that without delay and sequences (the paper's section 6.1.2)."""
    horizon, delay, length = (knobs.get(k, v) for k, v in (("horizon", 100), ("delay", 0), ("sequence_length", 1)))
    return horizon / (horizon - delay) * length


def areas(
    curves: pd.DataFrame, dimensions: Sequence[str], knobs: Mapping[str, Any], normalise: bool = False
) -> pd.DataFrame:
    """The area under every seed's curve, divided by its span.

    Args:
        curves: rows of `curve.csv`.
        dimensions: the knobs that are varied; each becomes a column.
        knobs: those that are the same for all.
        normalise: bring returns of the discrete toy to one scale whatever delay and sequence length.

    Returns:
        base, agent, seed, metric, value, and the dimensions (as they are written in the tasks' names).
    """
    rows = []
    for (task, agent, seed), of_run in curves.groupby(["task", "agent", "seed"], sort=False):
        base, varied = parse_task(task)
        scale = factor({**knobs, **varied}) if normalise and base == "discrete" else 1.0
        point = {name: value_text(varied.get(name, "default")) for name in dimensions}
        for metric, (split, column) in METRICS.items():
            chosen = of_run[of_run["split"] == split].sort_values("step")
            if len(chosen) < 2:
                continue
            steps, values = chosen["step"].to_numpy(float), chosen[column].to_numpy(float)
            size = 1.0 if metric == "length" else scale
            value = size * area(steps, values, steps[0], steps[-1])
            rows.append({"base": base, "agent": agent, "seed": int(seed), "metric": metric, "value": value, **point})
    if not rows:
        raise InputError("There are no curves with two evaluations yet: has the sweep been trained?")
    return pd.DataFrame(rows)


def value_text(value: Any) -> str:
    """A value of a knob as figures and tables show it."""
    if isinstance(value, list | tuple):
        return "+".join(value_text(entry) for entry in value)
    if value is None:
        return "none"
    if isinstance(value, str):
        return value.replace(",", "+")
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def summarise(table: pd.DataFrame, dimensions: Sequence[str]) -> pd.DataFrame:
    """Mean, standard deviation and interval over seeds of every bar.

    Of k bars beside each other (one base, agent and metric) every interval has the level 1 - 0.05 / C(k, 2): the
    Bonferroni correction for comparing all pairs.
    """
    rows = []
    for key, of_plot in table.groupby(["base", "agent", "metric"], sort=False):
        bars = list(of_plot.groupby(list(dimensions), sort=False)["value"])
        level = 1 - LEVEL / max(comb(len(bars), 2), 1)
        for point, values in bars:
            seeds = values.to_numpy(float)
            row = dict(zip(("base", "agent", "metric"), key, strict=True))
            row |= dict(zip(dimensions, point if isinstance(point, tuple) else (point,), strict=True))
            low, high = np.nan, np.nan
            if len(seeds) > 1:
                interval = bootstrap([seeds], lambda means: means, paired=False, level=level)
                low, high = float(np.ravel(interval.low)[0]), float(np.ravel(interval.high)[0])
            spread = float(seeds.std(ddof=1)) if len(seeds) > 1 else np.nan
            rows.append(
                {
                    **row,
                    "seeds": len(seeds),
                    "mean": seeds.mean(),
                    "std": spread,
                    "low": low,
                    "high": high,
                    "level": level,
                }
            )
    return pd.DataFrame(rows)


def rank_correlation(toy: Sequence[float], complex_: Sequence[float]) -> tuple[float, float]:
    """Spearman's rank correlation of performances across the amounts of a dimension, and its two-sided p-value."""
    if len(toy) != len(complex_) or len(toy) < 3:
        raise InputError(
            f"A rank correlation needs the same three or more amounts of a dimension in both, not {len(toy)} "
            f"and {len(complex_)}."
        )
    found = stats.spearmanr(toy, complex_)
    return float(found.statistic), float(found.pvalue)


def correlations(summary: pd.DataFrame, dimensions: Sequence[str], metric: str = "train") -> pd.DataFrame:
    """Rank correlations between the toy and every other base, for each agent, by position along the dimension.

    The amounts themselves may differ between toy and complex environments (they do for reward noise); what is
    compared is the order from the least to the most.
    """
    chosen = summary[summary["metric"] == metric]
    rows = []
    for agent, of_agent in chosen.groupby("agent", sort=False):
        means = {base: rows_of["mean"].tolist() for base, rows_of in of_agent.groupby("base", sort=False)}
        toys = [base for base in means if base in ("discrete", "continuous")]
        for toy in toys:
            for base in means:
                if base not in toys:
                    r, p = rank_correlation(means[toy], means[base])
                    rows.append({"environment": base, "agent": agent, "r": r, "pvalue": p})
    return pd.DataFrame(rows, columns=["environment", "agent", "r", "pvalue"])


def run_tests(table: pd.DataFrame, tests: Sequence[Mapping[str, Any]], dimensions: Sequence[str]) -> pd.DataFrame:
    """One-sided Wilcoxon signed-rank tests over seeds, as an experiment's config states them.

    A test has `claim` (a sentence), `agent`, `greater` and `less` (each a point of the grid and a metric); seeds that
    both have are paired.
    """
    rows = []
    for test in tests:
        sides = [_side(table, test["agent"], test[name], dimensions) for name in ("greater", "less")]
        seeds = sorted(set(sides[0].index) & set(sides[1].index))
        if len(seeds) < 5:
            raise InputError(f"The test '{test['claim']}' has {len(seeds)} seeds in common, but needs at least 5.")
        one, other = (side.loc[seeds].to_numpy(float) for side in sides)
        gap = one - other
        p = 1.0 if not gap.any() else float(stats.wilcoxon(gap, alternative="greater").pvalue)
        rows.append(
            {"claim": test["claim"], "agent": test["agent"], "seeds": len(seeds), "greater": one.mean(),
             "less": other.mean(), "p": p, "holds": p < LEVEL}
        )  # fmt: skip
    return pd.DataFrame(rows)


def _side(table: pd.DataFrame, agent: str, side: Mapping[str, Any], dimensions: Sequence[str]) -> pd.Series:
    chosen = table[(table["agent"] == agent) & (table["metric"] == side.get("metric", "eval"))]
    for name in dimensions:
        if name in side:
            chosen = chosen[chosen[name] == value_text(side[name])]
    values = chosen.set_index("seed")["value"]
    if values.empty or values.index.has_duplicates:
        raise InputError(f"The point {dict(side)} of a test is not one point of the grid of agent {agent}.")
    return values
