"""From per-seed areas to scores: what is computed from the seeds of one task, and again from resampled seeds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lcd.curves.index import Curve, CurveIndex
from lcd.curves.spans import area, interval_of_agents
from lcd.scores.contrasts import HEADLINE, Contrast, StepsFormula, all_conditions
from lcd.statistics.alignment import (
    BINS,
    Shift,
    bin_centres,
    bin_edges,
    binned,
    mean_shift,
    passing,
    returns_that_matter,
    shift_between,
)
from lcd.statistics.confidence import LEVEL
from lcd.statistics.intervals import (
    BOOTSTRAP_SEED,
    RESAMPLES,
    Interval,
    bootstrap,
    half_width,
    mean_over_seeds,
    own_seeds,
    replicates,
)

OF_CURVES = 1000
"""Resamples of whole curves: their spread is known to 2 %, at a quarter of what areas' many would take."""
LEAST_RISE = 0.05
"""Normalised return that some curve has to gain, or steps to it tell nothing."""


def score_columns(asked: Sequence[Contrast] = HEADLINE) -> tuple[str, ...]:
    """The unscaled scores of some contrasts, of every formula: "phi_paper", "psi_paper" and so on."""
    return tuple(f"{contrast.name}_{formula}" for formula, contrast in _formulas(asked))


def step_columns(asked: Sequence[Contrast] = HEADLINE) -> tuple[str, ...]:
    """Those of `score_columns` that are log₂ of factors in steps."""
    return tuple(
        f"{contrast.name}_{name}"
        for name, contrast in _formulas(asked)
        if isinstance(contrast.formulas[name], StepsFormula)
    )


def factor_columns(asked: Sequence[Contrast], definition: str) -> dict[str, str]:
    """Contrast whose score is in steps → its column of `step_columns`."""
    of = {each.name: f"{each.name}_{each.formula_under(definition)}" for each in asked}
    return {name: column for name, column in of.items() if column in step_columns(asked)}


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
        curves: For each condition its seeds' curves (seeds, `BINS` + 1): binned, then the return before training (NaN
            where that was not evaluated); empty where the steps are too few for it.
        centres: Log₂ steps of the bins.
    """

    names: tuple[str, ...]
    areas: tuple[np.ndarray, ...]
    seeds: tuple[tuple[int, ...], ...]
    solved: str
    contrasts: tuple[Contrast, ...] = HEADLINE
    curves: tuple[np.ndarray, ...] = ()
    centres: np.ndarray = field(default_factory=lambda: np.zeros(BINS))

    @property
    def count(self) -> int:
        """Seeds of the condition that has fewest."""
        return min(map(len, self.areas))

    def count_of(self, contrast: Contrast) -> int:
        """Seeds of the one that has fewest of a contrast's conditions; all of them are there."""
        return min(len(self.seeds[self.names.index(each.name)]) for each in contrast.conditions(self.solved))

    def scores(self, averages: np.ndarray, least: float) -> np.ndarray:
        """Mean AUCs (..., conditions) to `score_columns`, (..., scores); NaN for those in steps, which `shifts` has."""
        missing = np.full(averages.shape[:-1], np.nan)
        found = []
        for name, contrast in _formulas(self.contrasts):
            formula = contrast.formulas[name]
            if isinstance(formula, StepsFormula):
                found.append(missing)
                continue
            wanted = [each.name for each in contrast.conditions(self.solved)]
            areas = [averages[..., self.names.index(name)] if name in self.names else missing for name in wanted]
            found.append(formula.score(np.stack(areas, axis=-1), least))
        return np.stack(found, axis=-1)

    def shifts(self, means: np.ndarray) -> dict[str, Shift]:
        """Mean curves (..., conditions, `BINS` + 1) to the scores in steps, by column; none where one is not trained.

        All conditions of a contrast are compared at the same returns, so that factors along a chain multiply.
        """
        found = {}
        for name, contrast in _formulas(self.contrasts):
            formula = contrast.formulas[name]
            wanted = [each.name for each in contrast.conditions(self.solved)]
            if isinstance(formula, StepsFormula) and self.curves and set(wanted) <= set(self.names):
                mine = means[..., [self.names.index(each) for each in wanted], :]
                profiles, returns = mine[..., :-1], returns_that_matter(mine[..., :-1], mine[..., -1], LEAST_RISE)
                passed = [passing(profiles[..., place, :], returns, self.centres) for place in range(len(wanted))]
                pairs = formula.pairs(len(wanted))
                found[f"{contrast.name}_{name}"] = mean_shift(
                    [shift_between(passed[slow], passed[fast]) for slow, fast in pairs]
                )
        return found

    def shift_intervals(self, levels: Mapping[str, float] | None = None) -> dict[str, tuple[Shift, Interval]]:
        """The scores in steps by column, with their intervals over seeds.

        Args:
            levels: Contrast to its intervals' nominal level, where that is not 95 %.
        """
        if not self.curves:
            return {}
        of = {f"{contrast.name}_{name}": contrast for name, contrast in _formulas(self.contrasts)}
        estimates = self.shifts(np.array([each.mean(0) for each in self.curves]))
        drawn = self.shifts(self.resampled_curves(np.random.default_rng(BOOTSTRAP_SEED), OF_CURVES))
        found = {}
        for name, each in estimates.items():
            level = (levels or {}).get(of[name].name, LEVEL)
            found[name] = each, shift_interval(each, drawn[name], self.count_of(of[name]), level)
        return found

    def resampled_curves(
        self, rng: np.random.Generator, resamples: int, among: Iterable[int] | None = None
    ) -> np.ndarray:
        """Mean curves (resamples, conditions, `BINS` + 1) of resampled seeds, which are `among` others' where given."""
        return replicates(self.curves, seeds=self.seeds, rng=rng, resamples=resamples, among=among)

    def estimate(self, least: float) -> np.ndarray:
        """The scores of the means over all seeds."""
        return self.scores(np.array([area.mean() for area in self.areas]), least)

    def intervals(
        self, least: float, levels: Mapping[str, float] | None = None, resamples: int = RESAMPLES
    ) -> tuple[np.ndarray, Interval]:
        """AUCs of the conditions and then the scores: estimates, and their intervals over seeds.

        Args:
            least: The least AUC that scores divide by.
            levels: Contrast to its intervals' nominal level, where that is not 95 %; areas have the highest of them.
            resamples: How many are drawn.
        """
        given = levels or {}
        level = [max([LEVEL, *given.values()])] * len(self.names)
        level += [given.get(contrast.name, LEVEL) for _, contrast in _formulas(self.contrasts)]

        def statistic(averages: np.ndarray) -> np.ndarray:
            return np.concatenate([averages, self.scores(averages, least)], axis=-1)

        estimate = statistic(np.array([mean_over_seeds(area) for area in self.areas]))
        areas, nominal = list(self.areas), np.array(level)
        return estimate, bootstrap(areas, statistic, seeds=self.seeds, level=nominal, resamples=resamples)


def shift_interval(estimate: Shift, drawn: Shift, count: int, level: float = LEVEL) -> Interval:
    """The interval of a score in steps over `count` seeds: the estimate ± t times the spread of what was drawn.

    An end is infinite where the estimate is but a bound, or where more of the drawn ones are than may be missed.
    """
    values = drawn.value[~np.isnan(drawn.value)]
    half = float(half_width(values, count, level)) if len(values) else np.nan
    value, side = float(estimate.value), int(estimate.open)
    if np.isnan(half) or np.isnan(value):
        return Interval(*np.full((2,), np.nan))
    above, below = (np.isinf(end).mean() > (1 - level) / 2 for end in (drawn.most, drawn.least))
    low = -np.inf if side < 0 or (below and side == 0) else value - half
    return Interval(np.array(low), np.array(np.inf if side > 0 or (above and side == 0) else value + half))


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
    staged = any(contrast.follows_stages for contrast in asked)
    areas = tuple(np.array([area(*curve, *steps[name]) for curve in curves[name].values()]) for name in curves)
    seeds = tuple(tuple(seeds) for seeds in curves.values())
    found = TaskSamples(tuple(curves), areas, seeds, solved, tuple(asked))
    if not step_columns(asked):
        return found
    profiles, centres = binned_curves(curves, steps, staged)
    return replace(found, curves=profiles, centres=centres)


def binned_curves(
    curves: Mapping[str, Mapping[int, Curve]], steps: Mapping[str, tuple[float, float]], staged: bool = False
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """`TaskSamples.curves` and its `centres`.

    Args:
        curves: Condition to its curves.
        steps: Condition to the steps that its curves have in common.
        staged: Whether steps are counted from where these begin.
    """
    begun = {name: low if staged else 0.0 for name, (low, _) in steps.items()}
    since = {name: [(at - begun[name], heights) for at, heights in curves[name].values()] for name in curves}
    last = min(high - begun[name] for name, (_, high) in steps.items())
    firsts = [at[at > 0][:1] for mine in since.values() for at, _ in mine]
    edges = bin_edges(max(float(first[0]) for first in firsts), last) if all(map(len, firsts)) else None
    if edges is None:
        return (), np.zeros(BINS)
    found = tuple(
        np.array([[*binned(at, heights, edges), heights[0] if at[0] == 0 else np.nan] for at, heights in mine])
        for mine in since.values()
    )
    return found, bin_centres(edges)


def shift_of(pair: Mapping[str, Mapping[int, Curve]], overlap: float) -> tuple[Shift, Interval] | None:
    """A condition's steps as a multiple of another's to the same return, and the interval over seeds.

    Args:
        pair: "slow" and "fast" to their curves; those of the one may be longer than the other's.
        overlap: The least share of steps that one condition's own curves have in common.

    Returns:
        None where the steps are too few.
    """
    steps = dict.fromkeys(pair, common_steps(pair, {name: name for name in pair}, "two tasks", overlap))
    curves, centres = binned_curves(pair, steps)
    if not curves:
        return None

    def shift(means: np.ndarray) -> Shift:
        returns = returns_that_matter(means[..., :-1], means[..., -1], LEAST_RISE)
        slow, fast = (passing(means[..., place, :-1], returns, centres) for place in range(2))
        return shift_between(slow, fast)

    estimate = shift(np.array([each.mean(0) for each in curves]))
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = shift(replicates(curves, seeds=own_seeds(curves), rng=rng, resamples=OF_CURVES))
    return estimate, shift_interval(estimate, drawn, min(map(len, curves)))


def score_replicates(
    tasks: Mapping[Any, TaskSamples],
    least: float,
    resamples: int = RESAMPLES,
    seed: int = BOOTSTRAP_SEED,
    steps: bool = False,
) -> np.ndarray:
    """Scores of several tasks from resampled seeds, (resamples, tasks, scores).

    A seed that several tasks were trained on is drawn for all of them together, because it may make several easy.

    Args:
        tasks: What is known of each.
        least: The least AUC that scores divide by.
        resamples: How many are drawn.
        seed: Of the generator that draws them.
        steps: Whether the scores in steps are wanted, which take longer; otherwise they are NaN.
    """
    every = list(dict.fromkeys(each for samples in tasks.values() for mine in samples.seeds for each in mine))
    found = []
    for samples in tasks.values():
        rng = np.random.default_rng(seed)
        averages = replicates(samples.areas, seeds=samples.seeds, rng=rng, resamples=resamples, among=every)
        scores = samples.scores(averages, least)
        if steps and samples.curves:
            columns = score_columns(samples.contrasts)
            curves = samples.resampled_curves(np.random.default_rng(seed), resamples, every)
            for name, shift in samples.shifts(curves).items():
                scores[..., columns.index(name)] = shift.value
        found.append(scores)
    return np.stack(found, axis=1)
