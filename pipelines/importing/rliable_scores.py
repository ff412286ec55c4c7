"""rliable's dictionaries, in an `.npz` file: algorithm → scores of runs × tasks, or of runs × tasks × steps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lcd.envs.errors import InputError
from lcd.envs.npz_files import keys_in, numbers_in, opened
from lcd.pipelines.importing.read_run import ReadRun

STEPS = ("steps", "frames", "timesteps")
"""What an array is called that says at which steps scores were taken."""


def read_scores(path: Path) -> Iterator[ReadRun]:
    """A run for each algorithm; `history.task` and `history.seed` count tasks and runs from 0.

    Without an array of steps, `history.step` counts the scores of a task from 0.
    """
    import pandas as pd

    with opened(path, "an .npz file of rliable's scores (numpy.savez(path, **scores))") as archive:
        there = keys_in(archive)
        named = next((key for key in STEPS if key in there), None)
        steps = None if named is None else numbers_in(path, archive, named, (1,))
        algorithms = [key for key in there if key != named]
        if not algorithms:
            raise InputError(f"{path} has no scores: save them by numpy.savez(path, **scores).")
        for algorithm in algorithms:
            scores = numbers_in(path, archive, algorithm, (2, 3)).astype(float)
            scores = scores[..., None] if scores.ndim == 2 else scores
            grid = np.arange(scores.shape[-1]) if steps is None else steps
            if len(grid) != scores.shape[-1]:
                raise InputError(
                    f"{path}: '{algorithm}' has {scores.shape[-1]} scores of a task and run, but '{named}' has "
                    f"{len(grid)} steps."
                )
            seed, task, step = (each.reshape(-1) for each in np.indices(scores.shape))
            table = pd.DataFrame({"seed": seed, "task": task, "step": grid[step], "score": scores.reshape(-1)})
            table["task"] = table["task"].astype(str)
            usual = {name: f"history.{name}" for name in ("seed", "task", "step")}
            yield ReadRun(
                name=algorithm, history=table, usual=usual | {"agent": "run.name", "return_mean": "history.score"}
            )
