"""Synthetic learning curves whose areas are known by construction."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

CONDITIONS = {
    "pixels": ("pixels", 1.0),
    "figure_ground": ("figure_ground", 1.0),
    "semantic": ("semantic", 1.0),
    "p0.75": ("semantic", 0.75),
    "p0.5": ("semantic", 0.5),
    "p0.25": ("semantic", 0.25),
}


def curve_rows(
    area: float,
    *,
    task: str = "toy/a",
    condition: str = "pixels",
    seed: int = 0,
    steps: Sequence[float] = (0, 500, 1000),
    r_min: float = 0.0,
    r_max: float = 1.0,
    **columns,
) -> list[dict]:
    """A straight line from 0.8 × area to 1.2 × area, so that its normalised AUC is the area on any grid."""
    view, p = CONDITIONS[condition]
    share = (np.asarray(steps, float) - steps[0]) / (steps[-1] - steps[0])
    returns = r_min + (r_max - r_min) * area * (0.8 + 0.4 * share)
    shared = {"task": task, "view": view, "reward_p": p, "seed": seed, "r_min": r_min, "r_max": r_max}
    shared |= columns
    return [shared | {"step": step, "return_mean": value} for step, value in zip(steps, returns, strict=True)]


def study(tasks: dict[str, Sequence[float]], seeds: int = 1, noise: float = 0.0, **columns) -> pd.DataFrame:
    """Curves of tasks with these mean AUCs, in the order of `CONDITIONS`; None leaves a condition out.

    Noise is added per seed and condition and sums to zero over seeds: the mean AUC stays what was asked for.
    """
    rng = np.random.default_rng(1)
    rows = []
    for task, areas in tasks.items():
        for condition, area in zip(CONDITIONS, areas, strict=True):
            if area is None:
                continue
            offsets = rng.normal(0, noise, seeds)
            for seed, offset in enumerate(offsets - offsets.mean()):
                rows += curve_rows(area + offset, task=task, condition=condition, seed=seed, **columns)
    return pd.DataFrame(rows)


TASKS = {
    "toy/easy": (0.80, 0.82, 0.84, 0.83, 0.82, 0.80),
    "toy/perception": (0.20, 0.50, 0.80, 0.78, 0.77, 0.75),
    "toy/reward": (0.70, 0.72, 0.74, 0.50, 0.30, 0.10),
    "toy/both": (0.20, 0.40, 0.60, 0.40, 0.25, 0.10),
}
