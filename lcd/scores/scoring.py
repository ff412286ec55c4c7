"""From per-seed areas to scores: what is computed from the seeds of one task, and again from resampled seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lcd.curves.index import Curve, CurveIndex
from lcd.curves.spans import area, interval_of_agents
from lcd.scores.contrasts import HEADLINE, Contrast, all_conditions
from lcd.statistics.confidence import LEVEL
from lcd.statistics.intervals import BOOTSTRAP_SEED, RESAMPLES, Interval, bootstrap, mean_over_seeds, replicates


def score_columns(asked: Sequence[Contrast] = HEADLINE) -> tuple[str, ...]:
    """The unscaled scores of some contrasts, of every formula: "phi_paper", "psi_paper" and so on."""
    return tuple(f"{contrast.name}_{formula}" for formula, contrast in _formulas(asked))


def _formulas(asked: Sequence[Contrast]) -> list[tuple[str, Contrast]]:
    names = dict.fromkeys(name for contrast in asked for name in contrast.formulas)
    return [(name, contrast) for name in names for contrast in asked if name in contrast.formulas]


@dataclass(frozen=True)
class TaskSamples:
    """The per-seed areas of one task's conditions.

    Attributes:
        names: The conditions that were trained, in the order of the contrasts.
        areas: One array of AUCs a condition, in the order of its seeds.
        seeds: Each condition's seeds, in order.
        solved: The view that `lcd.scores.contrasts.SOLVED` stands for.
        contrasts: What is asked of them.
    """

    names: tuple[str, ...]
    areas: tuple[np.ndarray, ...]
    seeds: tuple[tuple[int, ...], ...]
    solved: str
    contrasts: tuple[Contrast, ...] = HEADLINE

    @property
    def paired(self) -> bool:
        """Whether all conditions were trained on the same seeds."""
        return len(set(self.seeds)) == 1

    @property
    def count(self) -> int:
        """Seeds of the condition that has fewest."""
        return min(map(len, self.areas))

    def scores(self, averages: np.ndarray, least: float) -> np.ndarray:
        """Mean AUCs (..., conditions) to `score_columns`, (..., scores)."""
        missing = np.full(averages.shape[:-1], np.nan)
        found = []
        for formula, contrast in _formulas(self.contrasts):
            wanted = [each.name for each in contrast.conditions(self.solved)]
            areas = [averages[..., self.names.index(name)] if name in self.names else missing for name in wanted]
            found.append(contrast.formulas[formula].score(np.stack(areas, axis=-1), least))
        return np.stack(found, axis=-1)

    def estimate(self, least: float) -> np.ndarray:
        """The scores of the means over all seeds."""
        return self.scores(np.array([area.mean() for area in self.areas]), least)

    def intervals(self, least: float, level: float = LEVEL) -> tuple[np.ndarray, Interval]:
        """AUCs of the conditions and then the scores: estimates, and their intervals over seeds."""

        def statistic(averages: np.ndarray) -> np.ndarray:
            return np.concatenate([averages, self.scores(averages, least)], axis=-1)

        estimate = statistic(np.array([mean_over_seeds(area) for area in self.areas]))
        return estimate, bootstrap(list(self.areas), statistic, paired=self.paired, level=level)


def curves_by_condition(
    index: CurveIndex, row: Mapping[str, Any], solved: str, asked: Sequence[Contrast] = HEADLINE
) -> dict[str, dict[int, Curve]]:
    """Condition to seed to (steps, normalised returns), seeds in order.

    Args:
        index: The held-out curves.
        row: The task and its group: benchmark, agent, front-end, shaping.
        solved: The view that `lcd.scores.contrasts.SOLVED` stands for.
        asked: The contrasts whose conditions are looked for.
    """
    found = {name: index.under(row, each) for name, each in all_conditions(asked, solved).items()}
    return {name: curves for name, curves in found.items() if curves}


def common_steps(
    curves: Mapping[str, Mapping[int, Curve]], agents: Mapping[str, str], where: str, overlap: float
) -> tuple[float, float]:
    """The steps that all curves of a task have in common; see `lcd.curves.spans.interval_of_agents`.

    Args:
        curves: Condition to its curves.
        agents: Condition to its agent.
    """
    grids: dict[str, list[np.ndarray]] = {}
    for name, seeds in curves.items():
        grids.setdefault(agents[name], []).extend(steps for steps, _ in seeds.values())
    return interval_of_agents(grids, where, overlap)


def samples_between(
    curves: Mapping[str, Mapping[int, Curve]],
    steps: Mapping[str, tuple[float, float]],
    solved: str,
    asked: Sequence[Contrast] = HEADLINE,
) -> TaskSamples:
    """The areas of a task's curves, of each condition between two steps."""
    areas = tuple(np.array([area(*curve, *steps[name]) for curve in curves[name].values()]) for name in curves)
    return TaskSamples(tuple(curves), areas, tuple(tuple(seeds) for seeds in curves.values()), solved, tuple(asked))


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
