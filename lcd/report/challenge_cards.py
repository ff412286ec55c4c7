"""Challenge cards: of each task everything that LCD can measure, with its interval, or what would measure it.

A line that is not measured says so, and gives the command that would, and about what that costs by what the study has
cost so far. Lines have units of their own: those that are differences of areas may be compared, others not.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd

from lcd.analyses.analysis import Analysis
from lcd.envs.benchmarks import registered_benchmark, reward_range
from lcd.envs.errors import InputError
from lcd.envs.protocols import ChecksKnobs, Families, RangesByKnobs, ShapedTasks, Shapings, Simulates, Tabular, offers
from lcd.files.atomic import write_atomic
from lcd.scores.challenge_table import GROUP
from lcd.scores.contrasts import (
    DIALS,
    FAMILY_LOSS,
    FRONTEND_GAIN,
    HEADLINE,
    KNOB,
    MEMORY_GAIN,
    PERCEPTION,
    SHAPING_GAIN,
    Contrast,
)
from lcd.scores.diagnosis import Diagnosis
from lcd.scores.left_out import STATES
from lcd.scores.scoring import factor_columns
from lcd.scores.validity import withheld

VERSION = 1
"""Of `cards.json`: it goes up where a reader of the version before would misread it."""
SCHEMA = f"challenge_card_{VERSION}.json"
FILE = "cards.json"
AREA, SHARE, STEPS, DOUBLINGS = "difference of areas", "score", "steps of look-ahead", "log2 of a factor in steps"
MEASURED, NOT_MEASURED, NOT_TOLD, NOT_THERE = "measured", "not measured", "not told", "not there"
"""What a line is: a number; a number that a command would give; one that a status withholds; nothing to measure."""
GAINS = {"frontend": FRONTEND_GAIN, "shaping": SHAPING_GAIN}
"""Analysis that measures a gain → the contrast that asks for it."""


@dataclass(frozen=True)
class Line:
    """One thing about a task.

    Attributes:
        key: names it in files.
        sign: how a reader meets it.
        asks: what it measures.
        unit: of the number; only lines of one unit may be compared.
        state: "measured", "not measured", "not told" or "not there".
        value, low, high: the number and its 95 % interval; NaN where there is none.
        why: in words, where there is no number.
        command: what would measure it.
        core_hours: about what that costs; NaN where nothing tells.
    """

    key: str
    sign: str
    asks: str
    unit: str
    state: str
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    why: str = ""
    command: str = ""
    core_hours: float = math.nan


@dataclass(frozen=True)
class Card:
    """What is known of one task, trained in one way."""

    benchmark: str
    agent: str
    frontend: str
    shaping: str
    task: str
    seeds: int
    steps: float
    kind: str
    lines: tuple[Line, ...]


def cards_of(diagnosis: Diagnosis, analyses: Sequence[Analysis]) -> list[Card]:
    """A card for each row of a diagnosis' table.

    Args:
        diagnosis: the scores.
        analyses: where front-ends' and shapings' gains and the classes stand.
    """
    found = {each.key: each.table for each in analyses}
    made = []
    for _, row in diagnosis.table.iterrows():
        named = {name: str(row[name]) for name in (*GROUP, "task")}
        lines = (*_scores(diagnosis, row), *_gains(diagnosis, row, found), *_not_asked(diagnosis, row))
        kind = _kind(row, found.get("taxonomy"))
        made.append(Card(**named, seeds=int(row["seeds"]), steps=float(row["steps"]), kind=kind, lines=lines))
    return made


def save_cards(path: Path, diagnosis: Diagnosis, analyses: Sequence[Analysis]) -> None:
    """Write the cards as strict JSON of the published schema."""
    cards = [asdict(card) for card in cards_of(diagnosis, analyses)]
    content = {"schema": "lcd challenge cards", "version": VERSION, "definition": diagnosis.definition, "cards": cards}
    write_atomic(path, json.dumps(_strict(content), indent=1, allow_nan=False, ensure_ascii=False) + "\n")


def card_schema() -> dict[str, Any]:
    """The JSON schema of `cards.json`."""
    return json.loads((resources.files("lcd.report") / SCHEMA).read_text("utf-8"))


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _strict(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _kind(row: Mapping[str, Any], classes: pd.DataFrame | None) -> str:
    if withheld(row["validity"]):
        return "withheld"
    if classes is None or classes.empty:
        return ""
    mine = classes[(classes[[*GROUP, "task"]] == [row[name] for name in (*GROUP, "task")]).all(axis=1)]
    return str(mine["class"].iloc[0]) if len(mine) else ""


def _scores(diagnosis: Diagnosis, row: Mapping[str, Any]) -> Iterator[Line]:
    """φ, ψ, H, and what else the study asked of the task."""
    for contrast in (*HEADLINE, *diagnosis.contrasts[len(HEADLINE) :]):
        in_steps = factor_columns([contrast], diagnosis.definition)
        unit = SHARE if contrast in HEADLINE else DOUBLINGS if in_steps else AREA
        told = (contrast.name, contrast.sign, contrast.asks, unit)
        value, low, high = (float(row[f"{contrast.name}_raw{end}"]) for end in ("", "_low", "_high"))
        status = row[f"{contrast.name}_status"]
        if math.isfinite(value):
            yield Line(*told, MEASURED, value, low, high)
        elif status in (contrast.lacks, "missing_values"):
            yield _would(diagnosis, row, contrast, told)
        else:
            yield Line(*told, NOT_TOLD, why=_words(row["status"] if row["status"] in STATES else status))
    yield _horizon(row)


def _words(status: str) -> str:
    from lcd.scores.judging import STATUSES

    return STATUSES.get(status, status.replace("_", " "))


def _horizon(row: Mapping[str, Any]) -> Line:
    told = ("horizon", "H", "how far an agent must look ahead of random play", STEPS)
    if any(math.isfinite(row[name]) for name in ("H", "H_low", "H_high")):
        return Line(*told, MEASURED, float(row["H"]), float(row["H_low"]), float(row["H_high"]))
    benchmark = registered_benchmark(str(row["benchmark"]))
    if benchmark is None or not (offers(benchmark, Tabular) or offers(benchmark, Simulates)):
        return Line(*told, NOT_THERE, why="the task has no tables; of an .npz file lcd horizon tells it")
    return Line(*told, NOT_MEASURED, command=f"lcd horizon {shlex.quote(str(row['task']))}")


def _gains(diagnosis: Diagnosis, row: Mapping[str, Any], found: Mapping[str, pd.DataFrame]) -> Iterator[Line]:
    """What front-ends and shapings gain, by the analyses that compare them."""
    asked = {each.name for each in diagnosis.contrasts}
    for factor, contrast in GAINS.items():
        if contrast.name in asked:
            continue
        table = found.get(factor)
        mine = (
            pd.DataFrame()
            if table is None
            else table[(table["task"] == row["task"]) & (table["agent"] == row["agent"])]
        )
        for _, each in mine.iterrows():
            name = f"{contrast.name}:{each[factor]}"
            asks = f"what the {'front-end' if factor == 'frontend' else 'shaping'} {each[factor]} adds"
            value, low, high = (float(each[f"gain{end}"]) for end in ("", "_low", "_high"))
            yield Line(name, contrast.sign, asks, AREA, MEASURED, value, low, high)
        if mine.empty:
            yield _would(diagnosis, row, contrast, (contrast.name, contrast.sign, contrast.asks, AREA))


def _not_asked(diagnosis: Diagnosis, row: Mapping[str, Any]) -> Iterator[Line]:
    """Dials, memory and the family, where the study did not ask."""
    asked = {each.name for each in diagnosis.contrasts}
    for contrast in (*DIALS, MEMORY_GAIN, FAMILY_LOSS):
        if contrast.name not in asked:
            yield _would(diagnosis, row, contrast, (contrast.name, contrast.sign, contrast.asks, AREA))


def _would(diagnosis: Diagnosis, row: Mapping[str, Any], contrast: Contrast, told: tuple[str, str, str, str]) -> Line:
    """A line that is not measured: the command that would, and its cost; or why none can."""
    name, task = str(row["benchmark"]), str(row["task"])
    reason = _impossible(name, task, str(row["agent"]), contrast)
    if reason:
        return Line(*told, NOT_THERE, why=reason)
    study = {FRONTEND_GAIN: "frontend", SHAPING_GAIN: "shaping", FAMILY_LOSS: "family"}.get(contrast)
    asks = [] if study or contrast in HEADLINE else [f"study.contrasts=[{contrast.name}]"]
    words = [
        "lcd",
        "ablate" if contrast in (FRONTEND_GAIN, SHAPING_GAIN) else "diagnose",
        *([f"study={study}"] if study else []),
        f"benchmark={name}",
        *([f"agent={row['agent']}"] if contrast is not MEMORY_GAIN else []),
        f"study.tasks=[{task}]",
        *asks,
        f"study.seeds={int(row['seeds'])}",
        # A task of which nothing is left has no steps.
        *([f"study.steps={int(row['steps'])}"] if math.isfinite(row["steps"]) else []),
    ]
    command = " ".join(map(shlex.quote, words))
    return Line(*told, NOT_MEASURED, command=command, core_hours=_hours(diagnosis, row, contrast))


def _hours(diagnosis: Diagnosis, row: Mapping[str, Any], contrast: Contrast) -> float:
    """Hours of a core, by what a seed of a condition has cost so far; the baseline is trained already."""
    cost = diagnosis.cost
    if not cost.get("steps") or contrast is FAMILY_LOSS:  # nobody knows how many points
        return math.nan
    return cost["core_hours"] / cost["steps"] * float(row["steps"]) * int(row["seeds"]) * len(contrast.variants)


def _impossible(name: str, task: str, agent: str, contrast: Contrast) -> str:
    """Why a contrast cannot be measured on a task by a command; "" where it can."""
    benchmark = registered_benchmark(name)
    if benchmark is None or task not in benchmark.tasks:
        return "its environment is not known here: train it elsewhere, and import the curves (lcd import)"
    if contrast is PERCEPTION and not set(PERCEPTION.values) <= set(benchmark.views):
        return f"the benchmark has the views {', '.join(benchmark.views)} alone"
    if contrast is MEMORY_GAIN and agent != contrast.baseline:
        return f"ready-made it starts from {contrast.baseline}: a study's file asks it of {agent}"
    if contrast is FAMILY_LOSS and not (offers(benchmark, Families) and benchmark.family(task) is not None):
        return "the benchmark knows no family of the task: study.family= gives one"
    if contrast is SHAPING_GAIN and not _is_shaped(benchmark, task, str(contrast.variants[0])):
        return "the task has no reward for sub-goals"
    if contrast.axis.startswith(KNOB) and not _takes(name, contrast.axis.removeprefix(KNOB), contrast.variants[0]):
        return f"its tasks have no knob {contrast.axis.removeprefix(KNOB)}: lcd.envs.hardness.wrappers have it"
    return ""


def _is_shaped(benchmark: Any, task: str, shaping: str) -> bool:
    if not offers(benchmark, Shapings) or shaping not in benchmark.shapings:
        return False
    return not offers(benchmark, ShapedTasks) or task in benchmark.shaped_tasks.get(shaping, ())


@cache
def _takes(name: str, knob: str, value: Any) -> bool:
    """Whether a benchmark's first task takes a knob: one look serves for all of its tasks."""
    benchmark: Any = registered_benchmark(name)
    first = benchmark.tasks[0]
    try:
        if offers(benchmark, ChecksKnobs):
            benchmark.check_knobs(first, {knob: value})
        elif offers(benchmark, RangesByKnobs):
            reward_range(name, first, 0, {knob: value})
        else:
            return False
    except (InputError, ImportError, TypeError):  # who writes a benchmark need not foresee the knob
        return False
    return True


def told(line: Line) -> str:
    """What is in place of a number, for a reader."""
    if line.state != NOT_MEASURED:
        return line.why
    about = "" if math.isnan(line.core_hours) else f", ≈ {_hours_text(line.core_hours)} of a core"
    return f"not measured: {line.command} would{about}"


def _hours_text(hours: float) -> str:
    return f"{hours * 3600:.0f} s" if hours < 2 / 60 else f"{hours * 60:.0f} min" if hours < 2 else f"{hours:,.1f} h"
