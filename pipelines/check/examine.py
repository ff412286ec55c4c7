"""One task looked at, in a process of its own: one that never returns, or dies, must not take the command with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lcd.envs.benchmarks import get_benchmark, make_copies
from lcd.envs.lockstep import compare_views
from lcd.pipelines.check import mask_probes, play_checks
from lcd.pipelines.check.contract import contract_rows
from lcd.pipelines.check.examined_task import Case
from lcd.pipelines.check.random_play import COPIES, played
from lcd.pipelines.check.rows import Row

LOCKSTEP, SPEED = "views in lockstep", "speed"


def examine_to_file(case: dict[str, Any], file: str) -> None:
    """Write down the rows of a task."""
    rows = examined(Case(**{**case, "views": tuple(case["views"])}))
    Path(file).write_text(json.dumps([asdict(row) for row in rows]))


def examined(case: Case) -> Iterator[Row]:
    """The rows of a task; what cannot be stepped is not looked at any further."""
    benchmark = get_benchmark(case.benchmark)
    contract = list(contract_rows(benchmark, case.task, case.views, case.seed, case.knobs))
    yield from contract
    if any(row.verdict == "fail" for row in contract):
        return
    views = list(case.views)
    how: dict[str, Any] = {"seed": case.seed, "knobs": case.knobs}
    compared = compare_views(benchmark, case.task, views=views, seed=case.seed, steps=256, **case.knobs)
    for sentence in compared.differences:
        told, _, fix = sentence.partition(": give")
        yield Row(LOCKSTEP, "fail", f"{told}.", f"give{fix}".rstrip("."), case.task)
    if len(views) > 1 and compared.replays and not compared.differences:
        told = f"{', '.join(views)}: the same rewards and ends for the same actions."
        yield Row(LOCKSTEP, "pass", told, task=case.task)
    if compared.differences:
        views = views[:1]
    moments = played(benchmark, case.task, views, moments=case.moments, patience=case.patience, **how)
    env = make_copies(benchmark, case.task, view=views[0], split="train", num_envs=1, seed=case.seed, **case.knobs)
    space = env.single_observation_space
    env.close()
    if not compared.differences and compared.replays:
        yield from mask_probes.view_rows(benchmark, case.task, moments, space, case.seed)
    episodes = moments.episodes()
    yield play_checks.range_row(benchmark, case.task, episodes, **how)
    yield play_checks.blind_row(benchmark, case.task, views[-1], episodes, patience=case.patience, **how)
    asked = case.moments // COPIES
    yield play_checks.episode_row(case.task, episodes, len(moments.rewards), asked, case.evaluation, case.steps)
    yield play_checks.budget_row(case.task, moments, episodes, case.steps)
    yield play_checks.gamma_row(case.task, moments, episodes, case.gamma)
    slowest = min(moments.steps_per_s, key=lambda view: moments.steps_per_s[view])
    told = ", ".join(f"{view} {pace:,.0f}" for view, pace in moments.steps_per_s.items())
    took = case.steps / moments.steps_per_s[slowest]
    slow = took > 3600
    fix = "step all copies at once (numpy over copies, in place of gymnasium.vector.SyncVectorEnv)" if slow else ""
    told = f"{told} steps/s with {COPIES} copies: a seed's {case.steps:,} take {_duration(took)} of stepping."
    yield Row(SPEED, "warn" if slow else "pass", told, fix, case.task)


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )
