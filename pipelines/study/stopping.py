"""`stopping=auto`: seeds in rounds, for those conditions alone on which a score still depends."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pandas as pd
from rich.console import Console

from lcd.config.schemas import DiagnoseConfig
from lcd.config.values import seed_list
from lcd.curves.index import PLACES
from lcd.envs.errors import InputError
from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.study import longer, store
from lcd.pipelines.study.configs import RunConfig, condition, is_training, task_name
from lcd.pipelines.study.quarantine import fault_of
from lcd.scores.challenge_table import KEYS
from lcd.scores.contrasts import HEADLINE, all_conditions
from lcd.scores.diagnosis import diagnose_curves, samples_by_task
from lcd.scores.enough_seeds import Enough, Row, margins, next_conditions, open_scores
from lcd.scores.hard import HardFrom
from lcd.scores.judging import Thresholds
from lcd.statistics.sequential import looks, nominal_levels

RECORD = "stopping"
"""Where study.yaml keeps which task stopped after how many seeds, and at what nominal levels its intervals are."""
CLASS = "class"
FORMULAS = {contrast.name: contrast for contrast in HEADLINE}
SCORES = tuple(FORMULAS)


class Look(NamedTuple):
    """One look: after how many seeds, and at what nominal level."""

    seeds: int
    level: float


class Cell(NamedTuple):
    """What gets seeds by itself: a condition of a row of the table.

    Attributes:
        row: the values of `KEYS`.
        view, reward_p: the condition.
        beside: whether it is trained on points of the task's family.
    """

    row: Row
    view: str
    reward_p: float
    beside: bool = False


@dataclass
class Progress:
    """What has been decided up to a look.

    Attributes:
        have: cell to how many of the study's seeds it has.
        tasks: row to its task without knobs, to which further contrasts belong that change some.
        wanted: the cells that get more of them.
        levels: (row, score) to the nominal level of the look at which it was sure enough.
    """

    have: dict[Cell, int]
    tasks: dict[Row, str]
    wanted: set[Cell]
    levels: dict[tuple[Row, str], float] = field(default_factory=dict)


def check(cfg: DiagnoseConfig) -> None:
    """Refuse what rounds cannot be made of."""
    rule = cfg.stopping
    for key in SCORES:
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
    expand: Callable[[DiagnoseConfig], Sequence[Job]],
    train: Callable[[Sequence[Job]], bool],
    console: Console,
) -> bool:
    """Train the study's seeds in rounds until every score has enough; whether all went well.

    Every decision follows from the curves alone, so that a study that was interrupted decides the same again. A task
    that lost a run stops there: more seeds would not bring the condition back.

    Args:
        expand: the jobs of a config.
        train: does those of some jobs that are not done yet and says whether they are.
    """
    seeds = seed_list("study.seeds", cfg.study.seeds)
    counts = looks(cfg.stopping.first, cfg.stopping.every, len(seeds))
    levels = nominal_levels(counts, len(seeds), cfg.stopping.alpha, cfg.stopping.spending)
    tasks = {cell_of(job.config): job.config["task"] for job in expand(cfg) if is_training(job.config)}
    at = Progress(dict.fromkeys(tasks, 0), {cell.row: task for cell, task in tasks.items()}, set(tasks))
    whole = True
    for place, (count, level) in enumerate(zip(counts, map(float, levels), strict=True)):
        whole = train(_jobs_of_round(cfg, expand, seeds, at, count)) and whole
        at.have |= dict.fromkeys(at.wanted, count)
        before = {cell.row for cell in at.wanted}
        lost = _left_out(study, at, seeds) & before
        at.wanted = set()
        # After the last look all tasks end, whatever their curves say: the report diagnoses them.
        if count < len(seeds) and before > lost:
            following = Look(counts[place + 1], float(levels[place + 1]))
            _decide(cfg, _curves(study, at, seeds, before - lost), at, level, following)
        ended = before - {cell.row for cell in at.wanted}
        at.levels = {(row, score): level for row in ended for score in SCORES} | at.levels
        told = _round_sentence(count, len(seeds), ended - lost, lost, at)
        console.print(told, highlight=False, soft_wrap=True, markup=False)
        if not at.wanted:
            break
    study.note(**{RECORD: {"most": len(seeds), "tasks": _recorded(at)}})
    return whole


def cell_of(config: RunConfig) -> Cell:
    """What a run gives seeds to."""
    where: Mapping[str, Any] = condition(config)
    return Cell(tuple(where[key] for key in KEYS), where["view"], round(where["reward_p"], PLACES), "points" in config)


def levels(study: store.Study) -> dict[str, dict[str, float]]:
    """Task → score → the nominal level of its intervals; empty where nothing was stopped."""
    record: Any = study.record.get(RECORD)
    tasks = record.get("tasks") if isinstance(record, dict) else None
    found: dict[str, dict[str, float]] = {}
    for task, entry in tasks.items() if isinstance(tasks, dict) else ():
        # Studies of before scores stopped by themselves have one level for both.
        given = (entry.get("levels") or dict.fromkeys(SCORES, entry.get("level"))) if isinstance(entry, dict) else {}
        each = {score: given.get(score) for score in SCORES} if isinstance(given, dict) else {}
        good = {score: level for score, level in each.items() if isinstance(level, float) and 0 < level < 1}
        found |= {task: good} if good else {}
    return found


def told(study: store.Study) -> str:
    """What a reader of the report should know of the rounds; "" where there were none."""
    if not levels(study):
        return ""
    record: Any = study.record[RECORD]
    entries = [entry.get("seeds") for entry in record["tasks"].values() if isinstance(entry, dict)]
    counts = [count for each in entries if isinstance(each, dict) for count in each.values() if isinstance(count, int)]
    have = f", whose conditions have {min(counts)} to {max(counts)} seeds" if counts else ""
    return f"{len(levels(study))} tasks were looked at repeatedly{have}; intervals allow for that"


def _jobs_of_round(
    cfg: DiagnoseConfig,
    expand: Callable[[DiagnoseConfig], Sequence[Job]],
    seeds: Sequence[int],
    at: Progress,
    count: int,
) -> list[Job]:
    """The jobs that bring the wanted cells to so many seeds; one that was left out for a while catches up."""
    found = {}
    for begun in sorted({at.have[cell] for cell in at.wanted}):
        for job in expand(replace(cfg, study=replace(cfg.study, seeds=list(seeds[begun:count])))):
            cell = cell_of(job.config) if is_training(job.config) else None
            if cell is None or (cell in at.wanted and at.have[cell] == begun):
                found[job.id] = job
    return list(found.values())


def _decide(cfg: DiagnoseConfig, curves: pd.DataFrame, at: Progress, level: float, following: Look) -> None:
    """Note which scores are sure enough at this level, and which cells the others want more seeds of."""
    both = {task: dict.fromkeys(SCORES, level) for task in curves["task"].unique()}
    diagnosis = diagnose_curves(curves, definition=cfg.definition, levels=both)
    rows = [tuple(row) for row in diagnosis.table[list(KEYS)].itertuples(index=False)]
    enough = enough_of(cfg)
    still = {each for each in open_scores(diagnosis.table, enough) if each not in at.levels}
    at.levels = {(row, score): level for row in rows for score in SCORES if (row, score) not in still} | at.levels
    if not still:
        return
    held_out = diagnosis.curves[(diagnosis.curves["split"] == "eval") & diagnosis.curves["normalised"].notna()]
    samples, room = samples_by_task(held_out), margins(diagnosis.table, enough)
    compared: set[Cell] = set()
    for row in rows:
        if row in samples:
            found = all_conditions(HEADLINE, samples[row].solved)
            cells = {name: Cell(row, each.view, round(each.reward_p, PLACES)) for name, each in found.items()}
            compared |= {*cells.values()}
            for score in SCORES:
                if (row, score) in still:
                    column = f"{score}_{FORMULAS[score].formula_under(cfg.definition)}"
                    most = room[row, score][1]
                    names = next_conditions(samples[row], column, most, *following, Thresholds.no_signal)
                    at.wanted |= {cells[name] for name in names} & at.have.keys()
    # What φ and ψ do not compare goes on as long as its task does.
    going = {at.tasks[row] for row, _ in still}
    at.wanted |= {cell for cell in at.have if cell not in compared and at.tasks[cell.row] in going}


def enough_of(cfg: DiagnoseConfig) -> Enough:
    """The rule that a config asks for."""
    classes = HardFrom.parse("study.threshold", cfg.study.threshold) if cfg.stopping.until == CLASS else None
    return Enough({score: getattr(cfg.stopping, score) for score in SCORES}, classes)


def _left_out(study: store.Study, at: Progress, seeds: Sequence[int]) -> set[Row]:
    """The rows of tasks of which a run failed or diverged, or cannot be believed."""
    bad = {
        run.config["task"]
        for run in _runs(study, at, seeds)
        if not run.done or fault_of(run) or task_name(run.config) in run.lost
    }
    return {row for row, task in at.tasks.items() if task in bad}


def _curves(study: store.Study, at: Progress, seeds: Sequence[int], rows: Collection[Row]) -> pd.DataFrame:
    from lcd.curves.table import read_curves

    tasks = {at.tasks[row] for row in rows}
    wanted = [run for run in _runs(study, at, seeds) if run.done and run.config["task"] in tasks]
    return pd.concat([read_curves(run.path / "curve.csv") for run in wanted], ignore_index=True)


def _runs(study: store.Study, at: Progress, seeds: Sequence[int]) -> list[store.Training]:
    """The runs of those seeds that each cell has at this look: a study that goes on may hold more."""
    return [
        run
        for run in longer.longest(study.trainings())
        if {*run.config["seeds"]} <= {*seeds[: at.have.get(cell_of(run.config), 0)]}
    ]


def _recorded(at: Progress) -> dict[str, Any]:
    """What study.yaml keeps: of each task the seeds of its conditions, and the levels of its scores."""
    found: dict[str, Any] = {}
    for cell, seeds in at.have.items():
        of_task = found.setdefault(cell.row[-1], {"seeds": {}, "levels": {}})
        name = f"{cell.view}, p={cell.reward_p:g}"
        of_task["seeds"][name] = max(seeds, of_task["seeds"].get(name, 0))
        for score in SCORES:
            level = max(round(at.levels[cell.row, score], 6), of_task["levels"].get(score, 0))
            of_task["levels"][score] = level
    return found


def _round_sentence(count: int, most: int, ended: Iterable[Row], lost: Iterable[Row], at: Progress) -> str:
    def told(rows: Iterable[Row]) -> str:
        return ", ".join(dict.fromkeys(row[-1] for row in at.tasks if row in rows))

    going = {cell.row for cell in at.wanted}
    certain = f"certain enough: {told(ended)}" if ended else "none is certain enough"
    gone = f"; stopped, because runs are left out: {told(lost)}" if lost else ""
    every = sum(cell.row in going for cell in at.have)
    left = f"; {len(going)} go on, with {len(at.wanted)} of their {every} conditions" if going else ""
    return f"After {count} of at most {most} seeds {certain}{gone}{left}."
