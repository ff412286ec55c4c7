"""What a run's config promises of its curve, and what of that a `curve.csv` does not keep."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lcd.curves.names import evaluated_name
from lcd.files.reading import Unreadable, read_bytes
from lcd.pipelines.study.configs import RunConfig
from lcd.pipelines.study.evaluated import evaluated_by, stages_of

NUMBERS, LOSSES = ("return_mean", "r_min", "r_max"), ("loss",)
"""Columns that hold finite numbers in every row: of a run's curve, and of a pretraining's."""
MAY_LACK = ("r_min", "r_max")
"""Those that are empty where the benchmark does not know its range."""
MOST = 10**6
"""Evaluations that a config is believed to ask for."""

Row = Mapping[str, str]


def promised_steps(run_config: RunConfig) -> list[int]:
    """The steps at which a run is evaluated; the last of them is the least at which it may end.

    An evaluation follows the iteration that reaches a multiple of `every`, and the last one of each stage.
    """
    agent, every = run_config["agent"], int(run_config["evaluation"]["every"])
    each = int(agent.get("copies", 1)) * int(agent.get("rollout", 1))
    stages = run_config.get("curriculum", [run_config])
    if run_config["steps"] // max(every, each) > MOST:
        raise ValueError("no curve holds so many evaluations")
    ends, end = [], 0
    for stage in stages:
        end += math.ceil(int(stage["steps"]) / each) * each
        ends.append(end)
    reached = {math.ceil(multiple / each) * each for multiple in range(0, end, every)}
    inner = sorted(step for step in {0, *reached, *ends} if step < end)
    # A library trains for as long as its own iterations take.
    return [*inner, end if len(stages) > 1 else int(run_config["steps"])]


def broken_promise(path: Path, run_config: RunConfig, condition: Mapping[str, Any], upto: float = math.inf) -> str:
    """What is wrong with a curve, in words that follow "its curve"; nothing where it is as promised.

    Args:
        path: of the `curve.csv`.
        condition: the columns that all of the run's rows share, as its config names them.
        upto: the step that the run has come to, if that is not the last; what lies beyond it is not looked at.
    """
    if not path.exists():
        return "is missing"
    try:
        text = read_bytes(path).decode("utf-8")
        whole = text if upto == math.inf else text[: text.rfind("\n") + 1]
        rows = list(csv.DictReader(io.StringIO(whole), strict=True))
        return wrong_in([row for row in rows if float(row["step"]) <= upto], run_config, condition, upto)
    except (Unreadable, UnicodeDecodeError, csv.Error) as error:
        return f"cannot be read ({' '.join(str(error).split())})"
    except (KeyError, ValueError, TypeError, AttributeError, ArithmeticError):
        # Of a stranger's run the config may be to blame, too.
        return "lacks a column, or has a row that is cut off or holds words in place of numbers"


def wrong_in(rows: Sequence[Row], run_config: RunConfig, condition: Mapping[str, Any], upto: float = math.inf) -> str:
    """As `broken_promise`, of a curve's rows."""
    return _wrong_value(rows, run_config, condition) or _missing(rows, run_config, condition, upto)


def _wrong_value(rows: Sequence[Row], run_config: RunConfig, condition: Mapping[str, Any]) -> str:
    """The first value that the run cannot have written."""
    pretrained = "videos" in run_config
    shared, varying = ({}, {}) if pretrained else (_must_have(condition), _may_have(run_config))
    for row in rows:
        where = f"of seed {row['seed']} at step {row['step']}"
        if int(row["seed"]) not in run_config["seeds"]:
            return f"has rows {where}, which is none of the run's"
        for name in LOSSES if pretrained else NUMBERS:
            if not (name in MAY_LACK and row[name] == "") and not math.isfinite(float(row[name])):
                return f"has {name}={row[name]} {where}"
        for name, values in varying.items():
            if row[name] not in values:
                return f"has {name}={row[name]} {where}, where the run's is {' or '.join(values)}"
        for name, value in shared.items():
            if row[name] != value and not (name == "reward_p" and float(row[name]) == value):
                return f"has {name}={row[name]} {where}, where the run's is {value}"
    return ""


def _missing(rows: Sequence[Row], run_config: RunConfig, condition: Mapping[str, Any], upto: float) -> str:
    """The first evaluation that is not there."""
    found: dict[tuple[str, int, str], set[int]] = {}
    for row in rows:
        name = evaluated_name(row["task"], row.get("context") or "")
        found.setdefault((name, int(row["seed"]), row["split"]), set()).add(int(float(row["step"])))
    *inner, end = promised_steps(run_config)
    splits = ("eval", "noise_free") if run_config["evaluation"].get("noise_free") else ("eval",)
    for task, trained in _evaluated(run_config).items():
        for seed in run_config["seeds"]:
            for split in splits if trained else splits[:1]:
                steps = found.get((task, seed, split), set())
                lacking = [step for step in inner if step <= upto and step not in steps]
                lacking += [end] if end <= upto and max(steps, default=-1) < end else []
                if lacking:
                    return f"lacks the evaluation of seed {seed} at step {lacking[0]} ({task}, {split})"
    return ""


def _must_have(condition: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the columns that all rows of a run share."""
    shared = {name: condition[name] for name in ("view", "frontend", "reward_p", "shaping", "agent")}
    return shared | {"trained_on": condition["task"]}


def _may_have(run_config: RunConfig) -> dict[str, list[str]]:
    """The values of the columns that differ between the rows of a run."""
    evaluated = evaluated_by(run_config)
    return {
        "stage": [stage.name for stage in stages_of(run_config)],
        "task": list(dict.fromkeys(each.task for each in evaluated)),
        "context": list(dict.fromkeys(each.context for each in evaluated)),
    }


def _evaluated(run_config: RunConfig) -> dict[str, bool]:
    """What is evaluated, and whether it is trained, too."""
    if "videos" in run_config:
        return dict.fromkeys(run_config["videos"]["tasks"], True)
    return {evaluated_name(each.task, each.context): each.trained for each in evaluated_by(run_config)}
