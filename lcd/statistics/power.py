"""How many seeds, and how many steps, until the scores of two tasks can be told apart."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import stdtrit
from scipy.stats import nct

from lcd.curves.index import CurveIndex
from lcd.scores.challenge_table import GROUP
from lcd.scores.contrasts import HEADLINE, USUAL_DEFINITION, check_definition
from lcd.scores.diagnosis import Thresholds, normalised_curves, solved_views
from lcd.scores.scoring import (
    TaskSamples,
    common_steps,
    curves_by_condition,
    samples_between,
    score_columns,
    score_replicates,
)
from lcd.statistics.confidence import ALPHA

MOST_SEEDS = 100_000
SHARES = (0.25, 0.5, 0.75, 1.0)


def power_of(seeds: int, effect: float, alpha: float = ALPHA) -> float:
    """Probability of a two-sided t-test's telling a mean apart from 0, `effect` = |mean| / deviation of one seed."""
    if seeds < 2:
        return 0.0
    critical = stdtrit(seeds - 1, 1 - alpha / 2)
    noncentral = effect * math.sqrt(seeds)
    if noncentral > 37:  # beyond, the tail cannot be told from 0, and its series does not end
        return 1.0
    return float(nct.sf(critical, seeds - 1, noncentral) + nct.cdf(-critical, seeds - 1, noncentral))


def seeds_needed(effect: float, power: float = 0.8, alpha: float = ALPHA) -> float:
    """The fewest seeds that tell an effect apart with this probability; infinite where no number up to 100,000 does."""
    if not effect > 0 or power_of(MOST_SEEDS, effect, alpha) < power:
        return math.inf
    low, high = 1, 2
    while power_of(high, effect, alpha) < power:
        low, high = high, min(2 * high, MOST_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_of(middle, effect, alpha) >= power else (middle, high)
    return high


def tell_apart(
    curves: pd.DataFrame,
    definition: str = USUAL_DEFINITION,
    power: float = 0.8,
    alpha: float = ALPHA,
    shares: Sequence[float] = SHARES,
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> pd.DataFrame:
    """What it takes to tell the raw scores of every two tasks of a study apart.

    Args:
        curves: as `lcd.scores.diagnosis.diagnose_curves` takes them.
        definition: of the scores.
        power: wanted probability of finding the difference.
        alpha: wanted probability of finding one that is not there.
        shares: the shares of the trained steps after which training might have ended.
        ranges: as `diagnose_curves` takes them.

    Returns:
        A row for each score, group and pair of tasks: score, group columns, task, other, seeds (the study's own),
        difference (at all steps), power (with the study's own seeds), seeds_needed (at all steps), steps_needed (the
        first of the shares' steps at which the study's own seeds do; infinite where they never do), best_steps and
        best_seeds (the pair of them that costs fewest steps in all). A seed's deviation is the study's own: the spread
        of the difference over resampled seeds.
    """
    definition, thresholds = check_definition(definition), Thresholds()
    held_out, _ = normalised_curves(curves, ranges)
    rows = []
    index, solved = CurveIndex(held_out), solved_views(held_out)
    groups = sorted({tuple(where[name] for name in GROUP) for where in index})
    for key in groups:
        named = dict(zip(GROUP, key, strict=True))
        samples = _samples(index, named, solved[named["benchmark"]], thresholds, shares)
        drawn = _replicates(samples, thresholds.no_signal)
        for contrast in HEADLINE:
            column = score_columns().index(f"{contrast.name}_{definition}")
            for pair in combinations(samples, 2):
                found = _of_pair(
                    [samples[t] for t in pair], [drawn[t] for t in pair], column, thresholds.no_signal, power, alpha
                )
                if found is not None:
                    rows.append({"score": contrast.name, **named, "task": pair[0], "other": pair[1], **found})
    columns = ("score", *GROUP, "task", "other", *COLUMNS)
    return pd.DataFrame(rows, columns=list(columns))


COLUMNS = (
    "seeds", "difference", "power", "seeds_needed", "steps_needed", "best_steps", "best_seeds"
)  # fmt: skip


def _samples(
    index: CurveIndex, group: Mapping[str, str], solved: str, thresholds: Thresholds, shares: Sequence[float]
) -> dict[str, list[tuple[float, TaskSamples]]]:
    """Task → for each share its steps, and the areas up to there."""
    found = {}
    tasks = sorted({where["task"] for where in index if group.items() <= where.items()})
    for task in tasks:
        curves = curves_by_condition(index, {**group, "task": task}, solved)
        if curves:
            agents = dict.fromkeys(curves, group["agent"])
            low, high = common_steps(curves, agents, f"task '{task}'", thresholds.overlap)
            ends = [low + share * (high - low) for share in shares]
            found[task] = [(end, samples_between(curves, dict.fromkeys(curves, (low, end)), solved)) for end in ends]
    return found


def _replicates(samples: dict[str, list[tuple[float, TaskSamples]]], least: float) -> dict[str, list[np.ndarray]]:
    """Task → for each share the scores of resampled seeds, (resamples, scores)."""
    shares = zip(*samples.values(), strict=True)
    drawn = [score_replicates({t: s for t, (_, s) in zip(samples, each, strict=True)}, least) for each in shares]
    return {task: [of_share[:, place] for of_share in drawn] for place, task in enumerate(samples)}


def _of_pair(
    tasks: list[list[tuple[float, TaskSamples]]],
    replicates: list[list[np.ndarray]],
    column: int,
    least: float,
    power: float,
    alpha: float,
) -> dict[str, float] | None:
    """The pair's row; None where one of them lacks the score or has a single seed."""
    found = []
    for at_share, drawn in zip(zip(*tasks, strict=True), zip(*replicates, strict=True), strict=True):
        steps = max(end for end, _ in at_share)
        samples = [each for _, each in at_share]
        count = min(each.count for each in samples)
        if count < 2:
            return None
        first, second = (each.estimate(least)[column] for each in samples)
        deviation = (drawn[0][:, column] - drawn[1][:, column]).std() * math.sqrt(count)
        if math.isnan(deviation):
            return None
        effect = abs(first - second) / deviation if deviation > 0 else math.inf * abs(first - second or math.nan)
        found.append((steps, first - second, effect, seeds_needed(effect, power, alpha)))
    steps, difference, effect, needed = found[-1]
    enough = [at for at, *_, seeds in found if seeds <= count]
    best = min(found, key=lambda each: (each[0] * each[3], each[0]))
    feasible = math.isfinite(best[3])
    return {
        "seeds": count,
        "difference": difference,
        "power": power_of(count, effect, alpha) if math.isfinite(effect) else 1.0,
        "seeds_needed": needed,
        "steps_needed": enough[0] if enough else math.inf,
        "best_steps": best[0] if feasible else math.nan,
        "best_seeds": best[3] if feasible else math.nan,
    }
