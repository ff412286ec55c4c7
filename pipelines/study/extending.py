"""More seeds of a study that is there: what it has stays, and what it lacks becomes runs of their own.

A run trains its seeds together, and each as it would be trained alone. So a run of seeds 0 to 7 is one of seeds 0 to 4,
which is done, and one of 5 to 7. Where it is for more steps, too, one of seeds 0 to 4 goes on from that which is done.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import cast

from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.study import store
from lcd.pipelines.study.configs import JobConfig, is_training
from lcd.pipelines.study.longer import but_for_steps


def extended(study: Path, jobs: Iterable[Job]) -> list[Job]:
    """Jobs, those whose seeds a study has in part as the runs that have them and one for the others.

    Args:
        study: a study's folder, which need not be there.
        jobs: those that are asked for.
    """
    there: dict[str, list[tuple[int, list[int]]]] = {}
    names = set()
    for run in store.Study(study).trainings() if (study / "study.yaml").is_file() else ():
        names.add(run.path.name)
        there.setdefault(but_for_steps(run.config, "seeds"), []).append((run.config["steps"], run.config["seeds"]))
    found: dict[str, Job] = {}
    for job in jobs:
        parts = [job]
        if there and is_training(job.config) and job.id not in names:
            known = there.get(but_for_steps(job.config, "seeds"), [])
            seeds, rest = _parted(job.config["seeds"], [each for steps, each in known if steps == job.config["steps"]])
            shorter = sorted((each for each in known if each[0] < job.config["steps"]), reverse=True)
            more, rest = _parted(rest, [each for _, each in shorter])
            seeds += [*more, rest] if rest else more
            parts = [Job(cast(JobConfig, {**job.config, "seeds": part})) for part in seeds]
        found |= {part.id: part for part in parts}
    return list(found.values())


def _parted(asked: list[int], there: list[list[int]]) -> tuple[list[list[int]], list[int]]:
    """The seeds of runs that are there and are asked for as a whole, and the seeds of none of them."""
    kept: list[list[int]] = []
    for seeds in there:
        if {*seeds} <= {*asked}:
            kept.append(seeds)
            asked = [seed for seed in asked if seed not in seeds]
    return kept, asked
