"""`lcd check`: what is wrong with a benchmark, told before anything is trained, on one page."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lcd.config.schemas import CheckConfig
from lcd.envs.errors import InputError
from lcd.pipelines.check.examined_task import Case
from lcd.pipelines.check.rows import CONTRACT, Row, Summary, Verdict, summed_up, worst_of
from lcd.pipelines.kinds.kind import Job, trainings
from lcd.pipelines.launch.launchers import launch
from lcd.pipelines.launch.order import Call
from lcd.pipelines.study import determinism, dry_run, runs
from lcd.pipelines.study.configs import RunConfig
from lcd.pipelines.study.cost import HOUR, hours_text
from lcd.process.exits import FAILED, OK

STYLES: dict[Verdict, str] = {"pass": "green", "warn": "yellow", "fail": "bold red"}
CHANCE, COST = "determinism", "cost"


def run(cfg: CheckConfig, console: Console | None = None) -> int:
    """Print the page; returns the exit code, 1 where something fails."""
    console = console or Console()
    jobs = runs.expand(cfg)
    with Console(stderr=True).status("") as status:
        status.update(f"{cfg.benchmark.name}: stepping its tasks under each view")
        rows = examined(_cases(cfg, trainings(jobs)), cfg)
        broken = {row.task for row in rows if row.check == CONTRACT and row.verdict == "fail"}
        if sound := [config for config in trainings(jobs) if config["task"] not in broken]:
            status.update(f"{cfg.benchmark.name}: made twice, in two processes")
            rows.append(_of_chance(sound, cfg))
        if cfg.forecast and not any(row.verdict == "fail" for row in rows):
            status.update("training a little, to time it")
            rows.append(_of_cost(jobs, cfg))
    worst = worst_of(row.verdict for row in rows)
    if cfg.format == "json":
        print(json.dumps({"benchmark": cfg.benchmark.name, "verdict": worst, "rows": [asdict(row) for row in rows]}))
    else:
        _print(cfg, summed_up(rows), worst, console)
    return FAILED if worst == "fail" else OK


def _cases(cfg: CheckConfig, run_configs: Sequence[RunConfig]) -> list[Case]:
    """The tasks as they are to be trained, each once, in its views' own order."""
    found: dict[str, list[RunConfig]] = {}
    for config in run_configs:
        found.setdefault(config["task"], []).append(config)
    cases = []
    for task, mine in found.items():
        first, views = mine[0], dict.fromkeys(config["view"] for config in mine)
        gamma = first["agent"].get("gamma")
        evaluation = {key: first["evaluation"][key] for key in ("every", "copies", "episodes")}
        case = Case(
            cfg.benchmark.name, task, tuple(views), dict(first["knobs"]), first["steps"], evaluation,
            gamma if isinstance(gamma, float | int) else None, cfg.moments, cfg.patience, first["seeds"][0],
        )  # fmt: skip
        cases.append(case)
    return cases


def examined(cases: Sequence[Case], cfg: CheckConfig) -> list[Row]:
    """The rows of some tasks, each looked at by a process that may die or never return."""
    with tempfile.TemporaryDirectory(prefix="lcd-check-") as folder:
        files = [Path(folder) / f"{number}.json" for number in range(len(cases))]
        calls = [
            Call((asdict(case), str(file)), file.with_suffix(".txt")) for case, file in zip(cases, files, strict=True)
        ]
        how = {"workers": cfg.launcher.workers, "threads": cfg.launcher.threads, "deadlines": cfg.deadlines}
        outcomes = launch("local", "lcd.pipelines.check.examine:examine_to_file", calls, **how)
        rows = []
        for case, file, outcome in zip(cases, files, outcomes, strict=True):
            if outcome.error is not None:
                told = f"it cannot be played ({outcome.error})."
                rows.append(Row(CONTRACT, "fail", told, "mend that first", case.task))
            else:
                rows += [Row(**row) for row in json.loads(file.read_text())]
        return rows


def _of_chance(run_configs: Sequence[RunConfig], cfg: CheckConfig) -> Row:
    """Whether the same seed gives the same, in this process and in another."""
    try:
        found = determinism.left_to_chance(determinism.environments(run_configs), cfg.deadlines)
    except InputError as wrong:
        return Row(CHANCE, "fail", str(wrong), "mend that first")
    for sentence in found.values():
        told, _, fix = sentence.partition(": draw")
        return Row(CHANCE, "fail", f"{told}.", f"draw{fix}".rstrip("."))
    return Row(CHANCE, "pass", "the same seed gives the same, made twice in each of two processes.")


def _of_cost(jobs: Sequence[Job], cfg: CheckConfig) -> Row:
    """What the diagnosis takes."""
    try:
        found = dry_run.forecast(jobs, cfg)
    except InputError as wrong:
        return Row(COST, "fail", str(wrong), "mend that first")
    alone = hours_text(found.alone_s / HOUR)
    told = f"{len(jobs)} runs: {found.time_text()}; {alone} with one worker."
    long = found.training_s > 24 * HOUR
    fix = "budget=smoke or budget=cpu, fewer tasks (study.tasks=) or seeds (study.seeds=), a cluster (launcher=slurm)"
    return Row(COST, "warn" if long else "pass", told, fix if long else "")


def _print(cfg: CheckConfig, lines: Sequence[Summary], worst: Verdict, console: Console) -> None:
    title = f"{cfg.benchmark.name}, to be diagnosed with agent={cfg.agent['name']} budget={cfg.budget}"
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")
    for column in ("check", "", "found, and what to do"):
        table.add_column(column, overflow="fold")
    for line in lines:
        text = Text("\n".join(line.found))
        for fix in line.fixes:
            text.append(f"\n→ {fix}", style="bold")
        table.add_row(line.check, Text(line.verdict, STYLES[line.verdict]), text)
    console.print(table)
    ends = {
        "pass": "Nothing is wrong as far as this can tell.",
        "warn": "It can be diagnosed; the warnings say what to know first.",
        "fail": "What fails would make scores wrong: mend it first.",
    }
    console.print(ends[worst], highlight=False, markup=False)
