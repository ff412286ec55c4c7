"""What changing one thing alone gains: a front-end (figure 3, A.7), or reward for sub-goals (figure 13)."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Drawing, Evidence
from lcd.analyses.areas import final_returns, rows_where, seed_areas, tasks_of, with_interval
from lcd.curves.reading import kept
from lcd.envs.benchmarks import registered_benchmark
from lcd.envs.protocols import moving_tasks_of
from lcd.files.slugs import slug
from lcd.scores.contrasts import PERCEPTION, Contrast
from lcd.scores.diagnosis import Diagnosis
from lcd.scores.hard import FROM_HALF, HardFrom
from lcd.statistics.hypotheses import adjust, correlation, t_test

BASE = {"frontend": "identity", "shaping": "none"}
VIEW = {"frontend": PERCEPTION.baseline, "shaping": PERCEPTION.variants[-1]}
SCORE = {"frontend": "phi", "shaping": "psi"}
GAINED = {"frontend": "AUC gained over pixels", "shaping": "AUC gained by shaping"}
SIGN = {"phi": "φ", "psi": "ψ"}
LEAST = 0.01
MOVING = "moving"


def frontend_gains(evidence: Evidence) -> list[Analysis]:
    """What front-ends gain on pixels, and whether they help where it is hard to see."""
    return [] if evidence.curves.empty else gains(evidence.diagnosis, "frontend", evidence.threshold)


def shaping_gains(evidence: Evidence) -> list[Analysis]:
    """What reward for sub-goals gains, and whether it helps where reward is hard."""
    return [] if evidence.curves.empty else gains(evidence.diagnosis, "shaping", evidence.threshold)


def gains(diagnosis: Diagnosis, factor: str, threshold: HardFrom = FROM_HALF) -> list[Analysis]:
    """What each value of a factor gains over none: by task, and over easy, hard and all tasks.

    Args:
        factor: frontend (on φ's baseline) or shaping (on its last variant), all else equal and p = 1.
        threshold: from where on scaled scores are hard.

    Returns:
        The gain of each task, and that of groups of tasks with tests; empty where the factor was not varied.
    """
    rows, samples = _by_task(diagnosis, factor)
    if not rows:
        return []
    title = {"frontend": "front-ends", "shaping": "reward for sub-goals"}[factor]
    table = pd.DataFrame(rows)
    table["p (Holm)"] = adjust(table["p"].to_numpy())
    note = (
        f"AUC of held-out returns on {VIEW[factor]} at p = 1, with and without. The relative gain (the paper's A.7) "
        f"divides by the AUC without, and means little where that is near 0 (left out below {LEAST}); t is Welch's "
        "over seeds, one-tailed, with Holm's correction over all rows."
    )
    title = f"What {title} gain, task by task"
    caption = "AUC gained on each task, with 95 % intervals over seeds"
    figures = [Drawing(factor, caption, partial(_draw, table, factor)), *_curves(diagnosis, table, factor)]
    by_task = Analysis(factor, title, table, _sentences(table, factor), note, figures)
    grouped = _by_hardness(diagnosis, table, samples, factor, threshold)
    return [by_task, grouped]


def _draw(table: pd.DataFrame, factor: str, narrow: bool) -> Any:
    from lcd.report.analysis_figures import outcomes

    return outcomes(table, ("gain",), factor, GAINED[factor], narrow)


def _curves(diagnosis: Diagnosis, table: pd.DataFrame, factor: str) -> Iterator[Drawing]:
    """Learning curves with and without, over each other: a drawing an agent (figures 3a, 12 and 13)."""
    other = "shaping" if factor == "frontend" else "frontend"
    held = diagnosis.curves
    held = kept(held, held["normalised"].notna() & (held["split"] == "eval") & (held[other] == BASE[other]))
    for agent, rows in table.groupby("agent", sort=True):
        compared = Contrast(
            name=factor, sign=factor, asks="", axis=factor, baseline=BASE[factor],
            variants=tuple(sorted(set(rows[factor]))),
            formulas={}, at={"view": VIEW[factor], other: BASE[other]},
        )  # fmt: skip
        mine = kept(held, (held["agent"] == agent) & held["task"].isin(set(rows["task"])))
        caption = f"Held-out learning curves of {agent} on {VIEW[factor]}, with and without"
        yield Drawing(f"{factor}-curves-{slug(str(agent))[:40]}", caption, partial(_draw_curves, mine, compared))


def _draw_curves(curves: pd.DataFrame, contrast: Contrast, narrow: bool) -> Any:
    from lcd.report.analysis_figures import curve_grid

    return curve_grid(curves, contrast, "held-out return, normalised", narrow)


def _by_task(diagnosis: Diagnosis, factor: str) -> tuple[list[dict], dict]:
    rows: list[dict[str, Any]] = []
    samples: dict[Any, Any] = {}
    if set(diagnosis.curves[factor].unique()) <= {BASE[factor]}:
        return rows, samples
    other = "shaping" if factor == "frontend" else "frontend"
    # Without a range an area is no share of what is possible.
    held = kept(diagnosis.curves, diagnosis.curves["normalised"].notna())
    for (benchmark, task), curves in tasks_of(kept(held, held[other] == BASE[other])):
        for agent, mine in curves.groupby("agent", sort=True):
            fixed = {"agent": agent, other: BASE[other], "view": VIEW[factor], "reward_p": 1.0}
            for value in sorted(set(mine[factor].unique()) - {BASE[factor]}):
                conditions = {name: fixed | {factor: name} for name in (BASE[factor], value)}
                areas = seed_areas(mine, conditions)
                if areas is None:
                    continue
                found = _plain_scores(diagnosis, benchmark, agent)
                found = found[found["task"] == task]
                placed = {name: float(found[name].iloc[0]) if len(found) else np.nan for name in ("phi", "psi")}
                key = (benchmark, agent, value)
                samples.setdefault(key, {})[task] = areas
                rows.append(
                    {"benchmark": benchmark, "task": task, "agent": agent, factor: value}
                    | _row(list(areas.values()), [rows_where(mine, **wanted) for wanted in conditions.values()])
                    | {SIGN[SCORE[factor]]: placed[SCORE[factor]]}
                )
    return rows, samples


def _plain_scores(diagnosis: Diagnosis, benchmark: str, agent: str) -> pd.DataFrame:
    """The scores of an agent's tasks without a front-end and shaping."""
    scores = diagnosis.table
    wanted = {"benchmark": benchmark, "agent": agent, **BASE}
    return scores[(scores[list(wanted)] == list(wanted.values())).all(axis=1)]


def _row(areas: list[pd.Series], curves: list[pd.DataFrame]) -> dict[str, float]:
    def statistic(averages: np.ndarray) -> np.ndarray:
        without, having = averages[..., 0], averages[..., 1]
        return np.stack([without, having, having - without, relative(without, having)], axis=-1)

    found = with_interval(
        ("AUC without", "AUC with", "gain", "gain %"), dict(zip(("without", "with"), areas, strict=True)), statistic
    )
    if found["AUC without"] <= LEAST:
        found |= {"gain %" + end: np.nan for end in ("", "_low", "_high")}
    test = t_test(areas[1].to_numpy(), areas[0].to_numpy())
    finals = [final_returns(rows).mean() for rows in curves]
    return found | {
        "final gain": float(finals[1] - finals[0]),
        "t": test.statistic,
        "p": test.p,
        "seeds": float(min(map(len, areas))),
    }


def relative(without: np.ndarray, having: np.ndarray) -> np.ndarray:
    """Gain in per cent of what is had without."""
    return 100 * (having - without) / np.maximum(np.abs(without), LEAST)


def _by_hardness(
    diagnosis: Diagnosis, table: pd.DataFrame, samples: Mapping, factor: str, threshold: HardFrom
) -> Analysis:
    """Gain over hard, easy and all tasks, and its rank correlation with the score."""
    rows, points, score = [], [], SCORE[factor]
    for (benchmark, agent, value), by_task in samples.items():
        least = threshold.of(_plain_scores(diagnosis, benchmark, agent))[score]
        mine = table[(table["benchmark"] == benchmark) & (table["agent"] == agent) & (table[factor] == value)]
        placed = mine.set_index("task")[SIGN[score]]
        gained = mine.set_index("task")["gain"]
        for name, (tasks, correlated) in _groups(benchmark, factor, placed, least).items():
            if not len(tasks):
                continue
            mean = {"benchmark": benchmark, "agent": agent, factor: value, "tasks of": name}
            ranked = correlation(placed[tasks].to_numpy(), gained[tasks].to_numpy()) if correlated else None
            rows.append(mean | _of_group({task: by_task[task] for task in tasks}))
            points += [mean | {"gain": gained[task]} for task in tasks]
            rows[-1] |= {
                f"Spearman with {SIGN[score]}": np.nan if ranked is None else ranked.statistic,
                "p (Spearman)": np.nan if ranked is None else ranked.p,
            }
    grouped = pd.DataFrame(rows)
    grouped["p (Holm)"] = adjust(grouped["p"].to_numpy())
    says = []
    for _, row in grouped[grouped["tasks of"].isin(["all", MOVING])].iterrows():
        rho, p = row[f"Spearman with {SIGN[score]}"], row["p (Spearman)"]
        over = "" if row["tasks of"] == "all" else f" over the {row['n']:.0f} tasks with motion of their own"
        if np.isfinite(rho):
            sure = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
            says.append(f"{row[factor]}: the gain's rank correlation with {SIGN[score]}{over} is {rho:.2f} ({sure}).")
    note = (
        "Gain is the mean over the group's tasks; its interval resamples seeds within each task. t is one-tailed over "
        "tasks (would it help on other tasks of the kind?). Rank correlations over few tasks take few values: with "
        "three tasks only ±1 and ±0.5, and p is never below 1/3."
    )
    if MOVING in set(grouped["tasks of"]):
        note += f" {MOVING.capitalize()}: the tasks whose motion the flow front-end learns from, as in the paper."
    words = {
        "frontend": "Do front-ends help where it is hard to see?",
        "shaping": "Does shaping help where reward is hard?",
    }[factor]
    if not table[SIGN[score]].notna().any():
        words = {"frontend": "What front-ends gain over all tasks", "shaping": "What shaping gains over all tasks"}[
            factor
        ]
        says.append(f"{SIGN[score]} was not measured: there are no hard or easy tasks to compare.")
    caption = "Mean gain over tasks, with 95 % intervals; a point a task"
    figure = Drawing(f"{factor}-by-hardness", caption, partial(_draw_groups, grouped, pd.DataFrame(points), factor))
    return Analysis(f"{factor}-by-hardness", words, grouped, says, note, [figure])


def _groups(benchmark: str, factor: str, placed: pd.Series, least: float) -> dict[str, tuple[pd.Index, bool]]:
    """Name of a group of tasks to its tasks, and whether the gain is correlated with the score over it.

    Args:
        placed: task to its score, NaN where it has none.
        least: from where on the score is hard.
    """
    sign = SIGN[SCORE[factor]]
    hard, easy = placed.index[placed >= least], placed.index[placed < least]
    groups = {f"hard {sign}": (hard, False), f"easy {sign}": (easy, False), "all": (placed.index, True)}
    known = registered_benchmark(benchmark)
    moving = placed.index if known is None else placed.index.intersection(list(moving_tasks_of(known)))
    if factor == "frontend" and 0 < len(moving) < len(placed):
        groups |= {
            f"hard {sign}, {MOVING}": (hard.intersection(moving), False),
            f"easy {sign}, {MOVING}": (easy.intersection(moving), False),
            MOVING: (moving, True),
        }
    return groups


def _draw_groups(grouped: pd.DataFrame, points: pd.DataFrame, factor: str, narrow: bool) -> Any:
    from lcd.report.analysis_figures import grouped_bars

    return grouped_bars(grouped, points, factor, GAINED[factor], narrow)


def _of_group(by_task: Mapping[str, Mapping[str, pd.Series]]) -> dict[str, float]:
    flat = {f"{task} {name}": sample for task, areas in by_task.items() for name, sample in areas.items()}

    def statistic(averages: np.ndarray) -> np.ndarray:
        return (averages[..., 1::2] - averages[..., 0::2]).mean(-1, keepdims=True)

    found = with_interval(("gain",), flat, statistic)
    each = [areas[1].mean() - areas[0].mean() for areas in (list(pair.values()) for pair in by_task.values())]
    test = t_test(np.array(each))
    return {"n": float(len(each)), **found, "t": test.statistic, "p": test.p}


def _sentences(table: pd.DataFrame, factor: str) -> list[str]:
    says = []
    for value, rows in table.groupby(factor, sort=True):
        better, worse = rows["gain_low"] > 0, rows["gain_high"] < 0
        says.append(
            f"{value} gains on {better.sum()} of {len(rows)} tasks for sure, loses on {worse.sum()} for sure; the rest "
            "is within what seeds differ by."
        )
    return says
