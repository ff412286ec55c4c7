"""What things are called in W&B: a run's config, its tags, and the numbers of a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lcd.curves.names import evaluated_name
from lcd.pipelines.kinds.kind import MACHINE, NAMED
from lcd.pipelines.study.configs import JobConfig, agent_name, flat, frontend_name, is_training, task_name
from lcd.pipelines.study.lease import run_folder

STEP = "env_step"
STATISTICS = ("return_mean", "return_std", "length_mean", "episodes", "loss", "static_loss", "speed", "outside")
LONGEST_TAG = 64
"""W&B takes no longer ones."""
Rows = Sequence[Mapping[str, Any]]


def study_of(run_dir: Path) -> str:
    """The name of the study that a run's folder is in."""
    return run_folder(run_dir.resolve()).parents[1].name


def flat_config(config: JobConfig, run_dir: Path) -> dict[str, Any]:
    """A run's config on one level: what runs are grouped by is a plain value (`agent`, `view`)."""
    given: Mapping[str, Any] = config
    shown = {key: value for key, value in given.items() if key not in ("points", "sources", "code")}
    found = flat(shown)
    for key in ("agent", "frontend"):
        if isinstance(entry := given.get(key), Mapping) and "name" in entry:
            found[key] = entry.get("label") or entry["name"]
    if is_training(config):
        found["task"] = task_name(config)
    if "points" in given:
        found["points"] = len(given["points"])
    return found | {"study": study_of(run_dir), "run_id": run_dir.name}


def tags_of(config: JobConfig) -> list[str]:
    """What a run's tags are: its benchmark, and of a training view, p, agent, front-end and shaping."""
    found = [str(config["benchmark"])]
    if is_training(config):
        found += [config["view"], f"p={config['reward_p']:g}", agent_name(config["agent"]), frontend_name(config)]
        found += [config["shaping"]] if config["shaping"] != "none" else []
    return short_tags(found)


def short_tags(names: Iterable[str]) -> list[str]:
    """Names as W&B takes them for tags, each once."""
    return list(dict.fromkeys(name[:LONGEST_TAG] for name in names if name))


def metrics(rows: Rows) -> dict[str, float]:
    """One step's rows of a curve: each seed's numbers, and their mean over seeds (of points: over all)."""
    values: dict[str, list[float]] = {}
    logged: dict[str, float] = {}
    for row in rows:
        # Several tasks may be evaluated at a step; the one that is trained alone needs no name.
        name, context = row.get("task", ""), row.get("context") or ""
        trained = not row.get("stage") and row.get("trained_on", name) == evaluated_name(name, context)
        # Points of a family are told together: hundreds would each be a chart.
        point = trained and bool(context)
        place = f"{row['split']}/{evaluated_name(name, context)}"
        if trained:
            place = f"{row['split']}/points" if point else row["split"]
        for statistic in STATISTICS:
            value = row.get(statistic)
            if value not in (None, ""):
                if not point:
                    logged[f"{place}/{statistic}/seed_{row['seed']}"] = float(value)
                values.setdefault(f"{place}/{statistic}", []).append(float(value))
    return logged | _means(values)


def scalar_metrics(rows: Rows) -> dict[str, float]:
    """One step's rows of `train.csv`: what seeds tell of learning, their means, and what the machine did."""
    values: dict[str, list[float]] = {}
    logged: dict[str, float] = {}
    for row in rows:
        for name, value in row.items():
            if name in NAMED or value in (None, ""):
                continue
            if name in MACHINE:
                logged[f"machine/{name}"] = float(value)
            else:
                logged[f"learning/{name}/seed_{row['seed']}"] = float(value)
                values.setdefault(f"learning/{name}", []).append(float(value))
    return logged | _means(values)


def _means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: sum(found) / len(found) for name, found in values.items()}
