"""What a grid over knobs says: areas with intervals, rank correlations, one-sided tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import comb
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from lcd.analyses.analysis import Analysis, Drawing, Evidence
from lcd.curves.spans import area
from lcd.curves.table import as_trained
from lcd.envs.errors import InputError
from lcd.envs.hardness.task_names import PREFIX
from lcd.report.grid_figures import METRICS, drawings
from lcd.scores.contrasts import SETTING
from lcd.statistics.confidence import ALPHA
from lcd.statistics.intervals import bootstrap

KEY = "grid"
TOYS = ("discrete", "continuous")
KINDS: dict[str, type] = {
    "name": str,
    "dimensions": list,
    "tasks": dict,
    "agents": list,
    "knobs": dict,
    "normalise": bool,
    "tests": list,
}
LATER: dict[str, type] = {"settings": dict}
"""What grids of studies that are older do not have."""


@dataclass(frozen=True)
class Grid:
    """What a study asked of its grid.

    Attributes:
        name: The study's.
        dimensions: The knobs that are varied; each becomes a column.
        tasks: What curves call a task → `base`, the task without what is varied, and `point`, knob → value; in order.
        agents: Their names, in order.
        knobs: Those that are the same for all.
        normalise: Whether returns of the discrete toy are brought to one scale whatever delay and sequence length.
        tests: Claims; see `run_tests`.
        settings: What curves call an agent → `agent`, its name without the settings that are varied, and `point`,
            `agent.<setting>` → value; of the agents that have any.
    """

    name: str
    dimensions: Sequence[str]
    tasks: Mapping[str, Mapping[str, Any]]
    agents: Sequence[str]
    knobs: Mapping[str, Any]
    normalise: bool
    tests: Sequence[Mapping[str, Any]]
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def dials(self) -> list[str]:
        """The dimensions that are knobs of the tasks, and no settings of the agents."""
        return [name for name in self.dimensions if not name.startswith(SETTING)]

    @classmethod
    def from_plain(cls, plain: Any) -> Grid | None:
        """What a study remembers of its grid; None where it is none, because a file of anybody's may hold anything."""
        if not isinstance(plain, Mapping) or set(plain) | set(LATER) != {*KINDS, *LATER}:
            return None
        if not all(isinstance(plain.get(key, kind()), kind) for key, kind in (KINDS | LATER).items()):
            return None
        settings = plain.get("settings", {}).values()
        if not all(isinstance(each, Mapping) and isinstance(each.get("agent"), str) for each in settings):
            return None
        places = [*plain["tasks"].values(), *settings]
        if not all(isinstance(each, Mapping) and isinstance(each.get("point"), Mapping) for each in places):
            return None
        return cls(**plain)


def places_of_the_grid(evidence: Evidence) -> list[Analysis]:
    """How do areas change with the knobs of the study's grid?"""
    if evidence.grid is None:
        return []
    return list(analyses_of(evidence.grid, evidence.read, whole=not evidence.diagnosis.left_out))


def analyses_of(grid: Grid, curves: pd.DataFrame, whole: bool) -> Iterator[Analysis]:
    """Everything that a grid says.

    Args:
        grid: What was asked.
        curves: Checked curves.
        whole: Whether no run is left out; else there are no correlations and tests, which compare all of them.
    """
    curves = curves[as_trained(curves)]
    curves = curves[curves["task"].isin(grid.tasks) & curves["agent"].isin(grid.agents)]
    grid, curves = settings_in_places(grid, curves)
    table = areas(curves, grid)
    summary = summarise(table, grid.dimensions)
    yield Analysis(
        KEY,
        f"What changes with {' and '.join(grid.dimensions)}",
        summary.rename(columns={"low": "mean_low", "high": "mean_high"}),
        says=list(_says(summary, grid.dimensions)),
        note="Areas under the curves of each seed, divided by their span. Of k bars beside each other every interval "
        f"has the level 1 − {ALPHA:g}/C(k, 2), for comparing all pairs.",
        files={f"{KEY}-areas": table},
        figures=[
            Drawing(name, caption, figure)
            for name, caption, figure in drawings(summary, curves, grid.dimensions, _places(grid), grid.name)
        ],
    )
    if not whole:
        return
    if len(set(summary["base"])) > 1 and len(grid.dimensions) == 1:
        yield Analysis(
            f"{KEY}-correlations",
            "Rank correlations of toy and complex environments",
            correlations(summary, grid.dimensions),
            note="Spearman's r of performances along the dimension, from the least amount to the most.",
        )
    if grid.tests:
        yield Analysis(
            f"{KEY}-tests",
            "Claims, tested",
            run_tests(table, grid.tests, grid.dimensions),
            note=f"One-sided Wilcoxon signed-rank tests over seeds, each at the level {ALPHA:g}.",
        )


def settings_in_places(grid: Grid, curves: pd.DataFrame) -> tuple[Grid, pd.DataFrame]:
    """The grid and its curves with varied settings told by places, as knobs are, and not by agents' names."""
    if not grid.settings:
        return grid, curves
    tasks, agents, places = dict(grid.tasks), [], {}
    for label in grid.agents:
        told = grid.settings.get(label, {"agent": label, "point": {}})
        agents.append(told["agent"])
        for task, place in grid.tasks.items():
            places[task, label] = f"{task} {told['point']}"
            tasks[places[task, label]] = {**place, "point": {**place["point"], **told["point"]}}
    named = curves.assign(
        task=[places[pair] for pair in zip(curves["task"], curves["agent"], strict=True)],
        agent=curves["agent"].map(lambda label: grid.settings.get(label, {"agent": label})["agent"]),
    )
    asked = {name: tasks[name] for name in dict.fromkeys(places.values())}
    return replace(grid, tasks=asked, agents=list(dict.fromkeys(agents))), named


def _says(summary: pd.DataFrame, dimensions: Sequence[str]) -> Iterator[str]:
    """From the best to the worst place of the grid, by base and agent."""
    held_out = summary[summary["metric"] == "eval"]
    for (base, agent), rows in held_out.groupby(["base", "agent"], sort=False):
        best, worst = rows.loc[rows["mean"].idxmax()], rows.loc[rows["mean"].idxmin()]
        where = [", ".join(f"{name} {row[name]}" for name in dimensions) for row in (best, worst)]
        yield (
            f"{base}, {agent}: held-out return is {best['mean']:.3g} at {where[0]} and {worst['mean']:.3g} at "
            f"{where[1]}."
        )


def _places(grid: Grid) -> dict[str, tuple[str, dict[str, str]]]:
    """Task → its base and the values of the dimensions, as figures and tables show them."""
    return {
        task: (
            str(place["base"]).removeprefix(PREFIX),
            {name: value_text(place["point"].get(name, "default")) for name in grid.dimensions},
        )
        for task, place in grid.tasks.items()
    }


def factor(knobs: Mapping[str, Any]) -> float:
    """What brings the discrete toy's best return to that without delay and sequences (the paper's section 6.1.2)."""
    horizon, delay, length = (knobs.get(k, v) for k, v in (("horizon", 100), ("delay", 0), ("sequence_length", 1)))
    return horizon / (horizon - delay) * length


def areas(curves: pd.DataFrame, grid: Grid) -> pd.DataFrame:
    """The area under every seed's curve, divided by its span.

    Args:
        curves: checked curves.
        grid: what was asked.

    Returns:
        base, agent, seed, metric, value, and the dimensions as they are written, in the order of the grid. Where one
        task was trained under several conditions, its base tells them apart.
    """
    rows, places, order = [], _places(grid), {task: place for place, task in enumerate(grid.tasks)}
    others = [name for name in ("view", "frontend", "reward_p", "shaping") if curves[name].nunique() > 1]
    for (task, agent, seed, *condition), of_run in curves.groupby(["task", "agent", "seed", *others], sort=False):
        base, point = places[task]
        varied = grid.tasks[task]["point"]
        scale = factor({**grid.knobs, **varied}) if grid.normalise and base == TOYS[0] else 1.0
        base = ", ".join([base, *(f"{name} {value}" for name, value in zip(others, condition, strict=True))])
        for metric, (split, column) in METRICS.items():
            chosen = of_run[of_run["split"] == split].sort_values("step")
            if len(chosen) < 2:
                continue
            steps, values = chosen["step"].to_numpy(float), chosen[column].to_numpy(float)
            size = 1.0 if metric == "length" else scale
            value = size * area(steps, values, steps[0], steps[-1])
            found = {"base": base, "agent": agent, "seed": int(seed), "metric": metric, "value": value, **point}
            rows.append(found | {"order": (order[task], list(grid.agents).index(agent))})
    if not rows:
        raise InputError("There are no curves with two evaluations yet: has the grid been trained?")
    # Bars stand in the order in which their values were asked for, whatever order the curves come in.
    bases = list(dict.fromkeys(row["base"] for row in sorted(rows, key=lambda row: row["order"])))
    ranked = sorted(rows, key=lambda row: (bases.index(row["base"]), row["order"][1], row["order"][0]))
    return pd.DataFrame(ranked).drop(columns="order")


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

    Of k bars beside each other (one base, agent and metric) every interval has the level 1 - α / C(k, 2): the
    Bonferroni correction for comparing all pairs.
    """
    rows = []
    for key, of_plot in table.groupby(["base", "agent", "metric"], sort=False):
        bars = list(of_plot.groupby(list(dimensions), sort=False)["value"])
        level = 1 - ALPHA / max(comb(len(bars), 2), 1)
        for point, values in bars:
            seeds = values.to_numpy(float)
            row = dict(zip(("base", "agent", "metric"), key, strict=True))
            row |= dict(zip(dimensions, point if isinstance(point, tuple) else (point,), strict=True))
            low, high = np.nan, np.nan
            if len(seeds) > 1:
                interval = bootstrap([seeds], lambda means: means, level=level)
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
        toys = [base for base in means if base in TOYS]
        for toy in toys:
            for base in means:
                if base not in toys:
                    r, p = rank_correlation(means[toy], means[base])
                    rows.append({"environment": base, "agent": agent, "r": r, "pvalue": p})
    return pd.DataFrame(rows, columns=["environment", "agent", "r", "pvalue"])


def run_tests(table: pd.DataFrame, tests: Sequence[Mapping[str, Any]], dimensions: Sequence[str]) -> pd.DataFrame:
    """One-sided Wilcoxon signed-rank tests over seeds, as a study's file states them.

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
             "less": other.mean(), "p": p, "holds": p < ALPHA}
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
