"""More seeds of a study that is there: what it has stays, and what it lacks becomes runs of their own.

A run trains its seeds together, and each as it would be trained alone. So a run of seeds 0 to 7 is one of seeds 0 to 4,
which is done, and one of 5 to 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.study import store
from lcd.pipelines.study.configs import JobConfig, canonical, is_training, without_places


def extended(study: Path, jobs: Iterable[Job]) -> list[Job]:
    """Jobs, those whose seeds a study has in part as the runs that have them and one for the others.

    Args:
        study: a study's folder, which need not be there.
        jobs: those that are asked for.
    """
    there: dict[str, list[list[int]]] = {}
    names = set()
    for run in store.Study(study).trainings() if (study / "study.yaml").is_file() else ():
        names.add(run.path.name)
        there.setdefault(_but_for_seeds(run.config), []).append(run.config["seeds"])
    found: dict[str, Job] = {}
    for job in jobs:
        parts = [job]
        if there and is_training(job.config) and job.id not in names:
            seeds = _parted(job.config["seeds"], there.get(_but_for_seeds(job.config), []))
            parts = [Job(cast(JobConfig, {**job.config, "seeds": part})) for part in seeds]
        found |= {part.id: part for part in parts}
    return list(found.values())


def _but_for_seeds(config: Mapping[str, Any]) -> str:
    return canonical({**without_places(config), "seeds": None})


def _parted(asked: list[int], there: list[list[int]]) -> list[list[int]]:
    """The seeds of runs that are there and are asked for as a whole, and the seeds of none of them."""
    kept = [seeds for seeds in there if {*seeds} <= {*asked}]
    known = {seed for seeds in kept for seed in seeds}
    rest = [seed for seed in asked if seed not in known]
    return [*kept, rest] if rest else kept
