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
from lcd.consoles import console_for_tables
from lcd.envs.errors import InputError
from lcd.pipelines.check.examined_task import Case
from lcd.pipelines.check.now import Now
from lcd.pipelines.check.rows import CONTRACT, Row, Summary, Verdict, judged, not_judged, summed_up, worst_of
from lcd.pipelines.kinds.kind import Job, trainings
from lcd.pipelines.launch.launchers import launch
from lcd.pipelines.launch.order import Call
from lcd.pipelines.study import determinism, dry_run, runs
from lcd.pipelines.study.configs import RunConfig
from lcd.pipelines.study.cost import HOUR, hours_text
from lcd.process.exits import FAILED, OK

STYLES: dict[Verdict, str] = {"pass": "green", "not judged": "dim", "warn": "yellow", "fail": "bold red"}
SIGNS: dict[Verdict, str] = {"not judged": "–"}
"""How a verdict stands on the page, where not as it is."""
CHANCE, COST = "determinism", "cost"
NOT_LOOKED_AT = "not looked at: mend first what fails."


def run(cfg: CheckConfig, console: Console | None = None) -> int:
    """Print the page; returns the exit code, 1 where something fails."""
    console = console or console_for_tables()
    jobs = runs.expand(cfg)
    with Now(Console(stderr=True, quiet=cfg.format == "json")) as now:
        rows = examined(_cases(cfg, trainings(jobs)), cfg, now)
        broken = {row.task for row in rows if row.check == CONTRACT and row.verdict == "fail"}
        if sound := [config for config in trainings(jobs) if config["task"] not in broken]:
            now.tell(f"{cfg.benchmark.name}: {CHANCE} (made twice, in two processes)")
            rows.append(_of_chance(sound, cfg))
        else:
            rows.append(Row(CHANCE, "not judged", NOT_LOOKED_AT))
        if cfg.forecast and any(row.verdict == "fail" for row in rows):
            rows.append(Row(COST, "not judged", NOT_LOOKED_AT))
        elif cfg.forecast:
            now.tell(f"{cfg.benchmark.name}: {COST} (training a little, to time it)")
            rows.append(_of_cost(jobs, cfg))
    worst = worst_of(row.verdict for row in judged(rows))
    if cfg.format == "json":
        told = {"benchmark": cfg.benchmark.name, "verdict": worst, "not_judged": not_judged(rows)}
        print(json.dumps({**told, "rows": [asdict(row) for row in rows]}))
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


def examined(cases: Sequence[Case], cfg: CheckConfig, now: Now) -> list[Row]:
    """The rows of some tasks, at least one a check, each looked at by a process that may die or never return."""
    from lcd.pipelines.check.examine import CHECKS, at_work

    with tempfile.TemporaryDirectory(prefix="lcd-check-") as folder:
        files = [Path(folder) / f"{number}.json" for number in range(len(cases))]
        calls = [
            Call((asdict(case), str(file)), file.with_suffix(".txt")) for case, file in zip(cases, files, strict=True)
        ]
        how = {"workers": cfg.launcher.workers, "threads": cfg.launcher.threads, "deadlines": cfg.deadlines}
        told = {case.task: at_work(file) for case, file in zip(cases, files, strict=True)}
        examine = "lcd.pipelines.check.examine:examine_to_file"
        outcomes = launch("local", examine, calls, lambda: now.follow(told), **how)
        rows = []
        for case, file, outcome in zip(cases, files, outcomes, strict=True):
            if outcome.error is not None:
                why = f"it cannot be played ({outcome.error})."
                mine = [Row(CONTRACT, "fail", why, "mend that first", case.task)]
            else:
                mine = [Row(**row) for row in json.loads(file.read_text())]
            lacking = [check for check in CHECKS if check not in {row.check for row in mine}]
            rows += [*mine, *(Row(check, "not judged", NOT_LOOKED_AT, task=case.task) for check in lacking)]
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
        sign = Text(SIGNS.get(line.verdict, line.verdict), STYLES[line.verdict])
        table.add_row(line.check, sign, text)
    console.print(table)
    console.print(_end(worst, sum(line.verdict == "not judged" for line in lines)), highlight=False, markup=False)


def _end(worst: Verdict, open_checks: int) -> str:
    """What the page comes to."""
    told = f"{open_checks} check{'s' * (open_checks != 1)} could not judge (–)"
    ends = {
        "pass": f"Nothing is wrong in what could be judged; {told}."
        if open_checks
        else "Nothing is wrong as far as this can tell.",
        "warn": "It can be diagnosed; the warnings say what to know first.",
        "fail": "What fails would make scores wrong: mend it first.",
    }
    return f"{ends[worst]} {told}." if open_checks and worst == "warn" else ends[worst]
