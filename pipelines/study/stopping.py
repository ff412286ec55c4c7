"""`stopping=auto`: seeds in rounds, and no more of them for a task whose scores are certain enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from lcd.config.schemas import DiagnoseConfig, StoppingConfig
from lcd.config.values import seed_list
from lcd.envs.errors import InputError
from lcd.pipelines.study import longer, store
from lcd.pipelines.study.configs import task_name
from lcd.pipelines.study.quarantine import fault_of
from lcd.scores.diagnosis import diagnose_curves
from lcd.statistics.sequential import looks, nominal_levels

RECORD = "stopping"
"""Where study.yaml keeps which task stopped after how many seeds, and at what nominal level its intervals are."""
SCORES = ("phi", "psi")


def check(cfg: DiagnoseConfig) -> None:
    """Refuse what rounds cannot be made of."""
    rule = cfg.stopping
    for key in ("phi", "psi"):
        value = getattr(rule, key)
        if not (math.isfinite(value) and value > 0):
            raise InputError(f"stopping.{key}={value} must be above 0: half the width of an interval.")
    if not 0 < rule.alpha < 1:
        raise InputError(f"stopping.alpha={rule.alpha} must lie between 0 and 1.")
    if len(seed_list("study.seeds", cfg.study.seeds)) < rule.first:
        raise InputError(
            f"study.seeds={cfg.study.seeds} is less than stopping.first={rule.first}: give more seeds, or a smaller "
            "first round."
        )


def rounds(
    cfg: DiagnoseConfig,
    study: store.Study,
    tasks: list[str],
    train: Callable[[DiagnoseConfig], bool],
    console: Console,
) -> bool:
    """Train the study's seeds in rounds until every task has stopped; whether all went well.

    Every decision follows from the curves alone, so that a study that was interrupted decides the same again. A task
    that lost a run stops there: more seeds would not bring the condition back.

    Args:
        tasks: those of the study.
        train: trains a config's runs that are not done yet and says whether they are.
    """
    seeds = seed_list("study.seeds", cfg.study.seeds)
    counts = looks(cfg.stopping.first, cfg.stopping.every, len(seeds))
    levels = nominal_levels(counts, len(seeds), cfg.stopping.alpha, cfg.stopping.spending)
    stopped: dict[str, Any] = {}
    active, begun, whole = list(tasks), 0, True
    for count, level in zip(counts, levels, strict=True):
        part = replace(cfg.study, seeds=seeds[begun:count], tasks=active)
        whole = train(replace(cfg, study=part)) and whole
        lost = _tasks_left_out(study, active, seeds[:count])
        known = [task for task in active if task not in lost]
        # After the last look all tasks end, whatever their curves say: the report diagnoses them.
        last = count == len(seeds)
        curves = _curves(study, known, seeds[:count]) if known and not last else None
        certain = {} if curves is None else decide(curves, cfg.stopping, cfg.definition, float(level))
        ended = [task for task in active if last or task in lost or certain[task]]
        stopped |= {task: {"seeds": count, "level": round(float(level), 6)} for task in ended}
        active, begun = [task for task in active if task not in ended], count
        told = _round_sentence(count, len(seeds), [task for task in ended if task not in lost], lost, active)
        console.print(told, highlight=False, soft_wrap=True, markup=False)
        if not active:
            break
    study.note(**{RECORD: {"most": len(seeds), "tasks": stopped}})
    return whole


def decide(curves: pd.DataFrame, rule: StoppingConfig, definition: str, level: float) -> dict[str, bool]:
    """Task → whether the intervals of both raw scores, at this nominal level, are narrow enough.

    A score that a task does not have (because the task is unsolved, say) keeps nobody waiting.
    """
    tasks = curves["task"].unique()
    both = {task: dict.fromkeys(SCORES, level) for task in tasks}
    table = diagnose_curves(curves, definition=definition, levels=both).table.set_index("task")
    return {task: is_narrow_enough(table.loc[task], rule) for task in tasks}


def is_narrow_enough(row: pd.Series, rule: StoppingConfig) -> bool:
    """Whether a task's intervals are as narrow as the rule asks."""
    half = {score: (row[f"{score}_raw_high"] - row[f"{score}_raw_low"]) / 2 for score in ("phi", "psi")}
    return all(np.isnan(half[score]) or half[score] <= getattr(rule, score) for score in half)


def levels(study: store.Study) -> dict[str, dict[str, float]]:
    """Task → score → the nominal level of its intervals; empty where nothing was stopped."""
    record: Any = study.record.get(RECORD)
    tasks = record.get("tasks") if isinstance(record, dict) else None
    if not isinstance(tasks, dict):
        return {}
    found = {task: entry.get("level") for task, entry in tasks.items() if isinstance(entry, dict)}
    known = {task: level for task, level in found.items() if isinstance(level, float) and 0 < level < 1}
    return {task: dict.fromkeys(SCORES, level) for task, level in known.items()}


def _tasks_left_out(study: store.Study, tasks: list[str], seeds: list[int]) -> list[str]:
    """The tasks of which a run failed or diverged, or cannot be believed."""
    mine = [run for run in longer.longest(study.trainings()) if set(run.config["seeds"]) <= set(seeds)]
    bad = {run.config["task"] for run in mine if not run.done or fault_of(run) or task_name(run.config) in run.lost}
    return [task for task in tasks if task in bad]


def _curves(study: store.Study, tasks: list[str], seeds: list[int]) -> pd.DataFrame:
    from lcd.curves.table import read_curves

    wanted = [
        run
        for run in longer.longest(study.trainings())
        if run.config["task"] in tasks and set(run.config["seeds"]) <= set(seeds)
    ]
    return pd.concat([read_curves(run.path / "curve.csv") for run in wanted if run.done], ignore_index=True)


def _round_sentence(count: int, most: int, ended: list[str], lost: list[str], active: list[str]) -> str:
    certain = f"certain enough: {', '.join(ended)}" if ended else "none is certain enough"
    gone = f"; stopped, because runs are left out: {', '.join(lost)}" if lost else ""
    left = f"; {len(active)} go on" if active else ""
    return f"After {count} of at most {most} seeds {certain}{gone}{left}."
