"""What a study has cost: steps, and hours of cores and of GPUs."""

import math
from collections.abc import Iterable
from typing import Any

from lcd.pipelines.kinds.kind import kind_of
from lcd.pipelines.study.configs import JobConfig, Status, is_training, population
from lcd.pipelines.study.store import Run

HOUR = 3600.0


def units(config: JobConfig) -> int:
    """Rollouts of a training, batches of a pretraining."""
    return math.ceil(config["steps"] / kind_of(config).unit_steps(config))


def cost_so_far(runs: Iterable[Run]) -> dict[str, Any]:
    """As `cost_of`, of runs as they lie on the disk."""
    return cost_of((run.config, run.status) for run in runs)


def cost_of(seen: Iterable[tuple[JobConfig, Status]]) -> dict[str, Any]:
    """What runs have taken so far, unfinished ones included, by their configs and statuses.

    Returns:
        runs, seeds (seeds of all runs together), steps (environment steps of all seeds), wall_hours (of all workers
        together), core_hours (times each worker's threads) and gpu_hours. Hours are of training and evaluation, resumed
        parts included; what a worker takes to start is not in them.
    """
    total = {"runs": 0, "seeds": 0, "steps": 0, "wall_hours": 0.0, "core_hours": 0.0, "gpu_hours": 0.0}
    for config, status in seen:
        hours = status["wall_s"] / HOUR
        total["runs"] += 1
        if is_training(config):
            total["seeds"] += population(config)
            total["steps"] += int(status["step"]) * population(config)
        total["wall_hours"] += hours
        total["core_hours"] += hours * status["threads"]
        total["gpu_hours"] += hours * (status["device"] == "cuda")
    return total


def cost_sentence(cost: dict[str, Any]) -> str:
    """The cost in one line."""
    gpu = f", {hours_text(cost['gpu_hours'])} of a GPU" if cost["gpu_hours"] else ""
    return f"{cost['runs']} runs, {cost['steps']:,} environment steps, {hours_text(cost['core_hours'])} of a core{gpu}"


def hours_text(hours: float) -> str:
    """Hours as people say them."""
    if hours < 2 / 60:
        return f"{hours * HOUR:.0f} s"
    return f"{hours * 60:.0f} min" if hours < 2 else f"{hours:,.1f} h"
