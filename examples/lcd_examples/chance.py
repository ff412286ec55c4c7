"""A kind of job: a task played at random, which leaves what each step paid.

As a command: `python -m lcd_examples.chance benchmark=corridors study.steps=512 out=studies/chance tracker=none`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from lcd.config.compose import compose
from lcd.envs.benchmarks import get_benchmark, make_copies
from lcd.envs.errors import InputError
from lcd.files.atomic import write_atomic
from lcd.pipelines.kinds.kind import Job, Kind
from lcd.pipelines.study.configs import JobConfig
from lcd.pipelines.study.store import Study, finish
from lcd.pipelines.study.training import train_missing

REWARDS = "rewards.txt"


def play(config: Mapping[str, Any], folder: str | Path, tracker: Mapping[str, Any], device: Any) -> None:
    """Act at random for as many steps as are asked for, and write a line a step.

    Args:
        config: what the job is asked for.
        folder: its run's, which takes the file.
        tracker: what mirrors curves; this job has none.
        device: where networks are; this job has none.
    """
    benchmark, (seed,) = get_benchmark(config["benchmark"]), config["seeds"]
    view = benchmark.views[0]
    env = make_copies(benchmark, config["task"], view=view, split="train", num_envs=1, seed=seed)
    try:
        env.reset(seed=seed)
        env.action_space.seed(seed)
        paid = [float(np.sum(env.step(env.action_space.sample())[1])) for _ in range(config["steps"])]
    finally:
        env.close()
    write_atomic(Path(folder) / REWARDS, "".join(f"{reward:g}\n" for reward in paid))
    finish(folder, step=config["steps"])


CHANCE = Kind(
    work="lcd_examples.chance:play",
    label=lambda config: f"{config['task']} played at random",
    is_config=lambda config: isinstance(config.get("task"), str),
    outputs=(REWARDS,),
)


class ChanceConfig(JobConfig):
    """What such a job is asked for: one seed, and the task besides."""

    task: str


def main(words: list[str]) -> int:
    """Play every task of a benchmark; what is done already is not done again.

    Args:
        words: as those of `lcd diagnose`: benchmark, study.steps, out, launcher, …

    Returns:
        The exit code.
    """
    cfg, jobs = compose("diagnose", words), []
    name, steps = cfg.benchmark.name, int(cfg.study.steps or 512)
    for task in get_benchmark(name).tasks:
        jobs.append(Job(ChanceConfig(kind="chance", benchmark=name, seeds=[0], steps=steps, task=task)))
    study = Study(cfg.out or f"studies/chance-{name}", create=True)
    with study.at_work():
        runs = study.ask({"chance": name, "steps": steps}, jobs)
        whole = train_missing(cfg, study, runs, Console())
    for run in runs:
        print(f"{run.label:<40} {run.path / REWARDS}")
    return 0 if whole else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except InputError as mistake:
        print(f"chance: {mistake}", file=sys.stderr)
        sys.exit(2)
