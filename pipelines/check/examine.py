"""One task looked at, in a process of its own: one that never returns, or dies, must not take the command with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from lcd.envs.benchmarks import Benchmark, get_benchmark, make_copies
from lcd.envs.lockstep import ViewComparison, compare_views
from lcd.pipelines.check import mask_probes, mask_shapes, play_checks
from lcd.pipelines.check.contract import SEEDS, contract_rows
from lcd.pipelines.check.examined_task import Case
from lcd.pipelines.check.random_play import COPIES, Moments, played
from lcd.pipelines.check.rows import CONTRACT, Row

LOCKSTEP, SPEED = "views in lockstep", "speed"
CHECKS = (
    CONTRACT, SEEDS, LOCKSTEP, mask_probes.MASKS, *mask_probes.COMPARING, mask_shapes.SHAPES,
    play_checks.RANGE, play_checks.BLIND, play_checks.EPISODES, play_checks.BUDGET, play_checks.GAMMA, SPEED,
)  # fmt: skip
"""What is told of every task, judged or not, in order."""
NO_REPLAY = "the same view does not give the same twice."


def examine_to_file(case: dict[str, Any], file: str) -> None:
    """Write down the rows of a task, and while they are found, beside them, what is looked at (`at_work`)."""
    asked = Case(**{**case, "views": tuple(case["views"])})
    with at_work(Path(file)).open("w") as told:
        rows = list(examined(asked, partial(print, file=told, flush=True)))
    Path(file).write_text(json.dumps([asdict(row) for row in rows]))


def at_work(file: Path) -> Path:
    """Where a task's process says what it looks at, line by line."""
    return file.with_suffix(".now")


def examined(case: Case, now: Callable[[str], None] = lambda what: None) -> Iterator[Row]:
    """The rows of a task; what cannot be stepped is not looked at any further.

    Args:
        case: the task.
        now: told what is looked at, before it is.
    """
    benchmark = get_benchmark(case.benchmark)
    now(CONTRACT)
    contract = list(contract_rows(benchmark, case.task, case.views, case.seed, case.knobs))
    yield from contract
    if any(row.verdict == "fail" for row in contract):
        return
    views = list(case.views)
    how: dict[str, Any] = {"seed": case.seed, "knobs": case.knobs}
    now(LOCKSTEP)
    compared = compare_views(benchmark, case.task, views=views, seed=case.seed, steps=256, **case.knobs)
    yield from _of_lockstep(case, compared)
    if compared.differences:
        views = views[:1]
    now(f"random play under {', '.join(views)}")
    moments = played(benchmark, case.task, views, moments=case.moments, patience=case.patience, **how)
    env = make_copies(benchmark, case.task, view=views[0], split="train", num_envs=1, seed=case.seed, **case.knobs)
    space = env.single_observation_space
    env.close()
    now("what masks preserve")
    if not compared.differences and compared.replays:
        yield from mask_probes.view_rows(benchmark, case.task, moments, space, case.seed)
        yield mask_shapes.shape_row(benchmark, case.task, moments)
        yield from mask_shapes.unseen_colours(benchmark, case.task, moments)
    elif not compared.differences:
        for check in (mask_probes.MASKS, *mask_probes.COMPARING, mask_shapes.SHAPES):
            yield Row(check, "not judged", NO_REPLAY, task=case.task)
    now(play_checks.BLIND)
    yield from _of_play(benchmark, case, views[-1], moments)


def _of_lockstep(case: Case, compared: ViewComparison) -> Iterator[Row]:
    """Whether the views are one task."""
    for sentence in compared.differences:
        told, _, fix = sentence.partition(": give")
        yield Row(LOCKSTEP, "fail", f"{told}.", f"give{fix}".rstrip("."), case.task)
    if compared.differences:
        return
    if len(case.views) == 1:
        yield Row(LOCKSTEP, "not judged", f"there is one view, {case.views[0]}.", task=case.task)
    elif not compared.replays:
        yield Row(LOCKSTEP, "not judged", NO_REPLAY, task=case.task)
    else:
        told = f"{', '.join(case.views)}: the same rewards and ends for the same actions."
        yield Row(LOCKSTEP, "pass", told, task=case.task)


def _of_play(benchmark: Benchmark, case: Case, view: str, moments: Moments) -> Iterator[Row]:
    """What random play tells, and how fast it was."""
    how: dict[str, Any] = {"seed": case.seed, "knobs": case.knobs}
    episodes = moments.episodes()
    yield play_checks.range_row(benchmark, case.task, episodes, **how)
    yield play_checks.blind_row(benchmark, case.task, view, episodes, patience=case.patience, **how)
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
