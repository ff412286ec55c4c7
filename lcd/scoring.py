"""From per-seed areas to scores: what is computed from the seeds of one task, and again from resampled seeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lcd.curves import area, common_interval, split_curves
from lcd.definitions import DEFINITIONS, gain
from lcd.statistics import BOOTSTRAP_SEED, LEVEL, RESAMPLES, Interval, bootstrap, mean_over_seeds, replicates

Curve = tuple[np.ndarray, np.ndarray]
CONDITIONS = {
    "pixels": ("pixels", 1.0),
    "figure_ground": ("figure_ground", 1.0),
    "semantic": ("semantic", 1.0),
    "p0.75": ("semantic", 0.75),
    "p0.5": ("semantic", 0.5),
    "p0.25": ("semantic", 0.25),
}
SCORES = (*(f"{score}_{name}" for name in DEFINITIONS for score in ("phi", "psi")), "phi_gain")
"""The unscaled scores of every definition, and φ's gain as a difference of areas."""


@dataclass(frozen=True)
class TaskSamples:
    """The per-seed areas of one task's conditions.

    Parameters
    ----------
    names
        The conditions that were trained, in the order of `CONDITIONS`.
    areas
        One array of AUCs a condition, in the order of its seeds.
    seeds
        Each condition's seeds, in order.
    """

    names: tuple[str, ...]
    areas: tuple[np.ndarray, ...]
    seeds: tuple[tuple[int, ...], ...]

    @property
    def paired(self) -> bool:
        """Whether all conditions were trained on the same seeds."""
        return len(set(self.seeds)) == 1

    @property
    def count(self) -> int:
        """Seeds of the condition that has fewest."""
        return min(map(len, self.areas))

    def scores(self, averages: np.ndarray, least: float) -> np.ndarray:
        """Mean AUCs (..., conditions) to `SCORES`, (..., scores)."""
        missing = np.full(averages.shape[:-1], np.nan)
        areas = {name: averages[..., self.names.index(name)] if name in self.names else missing for name in CONDITIONS}
        found = [score(areas, least) for each in DEFINITIONS.values() for score in (each.phi, each.psi)]
        return np.stack([*found, gain(areas)], axis=-1)

    def estimate(self, least: float) -> np.ndarray:
        """`SCORES` of the means over all seeds."""
        return self.scores(np.array([area.mean() for area in self.areas]), least)

    def intervals(self, least: float, level: float = LEVEL) -> tuple[np.ndarray, Interval]:
        """AUCs of the conditions and then `SCORES`: estimates, and their intervals over seeds."""

        def statistic(averages: np.ndarray) -> np.ndarray:
            return np.concatenate([averages, self.scores(averages, least)], axis=-1)

        estimate = statistic(np.array([mean_over_seeds(area) for area in self.areas]))
        return estimate, bootstrap(list(self.areas), statistic, paired=self.paired, level=level)


def curves_by_condition(rows: pd.DataFrame) -> dict[str, dict[int, Curve]]:
    """Condition to seed to (steps, normalised returns), seeds in order; of one task's held-out rows."""
    found = {}
    for name, (view, p) in CONDITIONS.items():
        chosen = rows[(rows["view"] == view) & np.isclose(rows["reward_p"], p)]
        if len(chosen):
            found[name] = {key[0]: curve for key, curve in split_curves(chosen, ["seed"]).items()}
    return found


def span(curves: Mapping[str, Mapping[int, Curve]], where: str, overlap: float) -> tuple[float, float]:
    """The steps that all curves of a task have in common; see `lcd.curves.common_interval`."""
    return common_interval([steps for seeds in curves.values() for steps, _ in seeds.values()], where, overlap)


def samples_between(curves: Mapping[str, Mapping[int, Curve]], low: float, high: float) -> TaskSamples:
    """The areas of a task's curves between two steps."""
    areas = tuple(np.array([area(*curve, low, high) for curve in seeds.values()]) for seeds in curves.values())
    return TaskSamples(tuple(curves), areas, tuple(tuple(seeds) for seeds in curves.values()))


def score_replicates(
    tasks: Mapping[Any, TaskSamples], least: float, resamples: int = RESAMPLES, seed: int = BOOTSTRAP_SEED
) -> np.ndarray:
    """Scores of several tasks from resampled seeds, (resamples, tasks, scores).

    Tasks that were all trained on the same seeds are resampled together, because a seed may make several of them
    easy; others each on their own.
    """
    together = len({samples.seeds for samples in tasks.values()}) == 1
    return np.stack(
        [
            samples.scores(
                replicates(
                    list(samples.areas),
                    paired=samples.paired,
                    resamples=resamples,
                    rng=np.random.default_rng(seed if together else [seed, place]),
                ),
                least,
            )
            for place, samples in enumerate(tasks.values())
        ],
        axis=1,
    )
