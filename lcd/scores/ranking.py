"""Ranks of tasks by their scores, with intervals: rank 1 is the hardest."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from lcd.scores.contrasts import Contrast
from lcd.scores.scoring import TaskSamples, factor_columns, score_columns, score_replicates
from lcd.statistics.confidence import LEVEL
from lcd.statistics.intervals import widen


def add_ranks(
    table: pd.DataFrame,
    samples: Mapping[tuple, TaskSamples],
    group: Sequence[str],
    contrast: Contrast,
    definition: str,
    least: float,
) -> None:
    """Fill a contrast's rank, with _low and _high, into the table of a diagnosis, in place.

    Tasks without the score have no rank; equal scores share their mean rank. Bounds are the quantiles over
    resampled seeds, whose deviations are first widened to what so few seeds leave open; NaN with a single seed.

    Args:
        table: Rows in the order of `samples`, with the columns of `group` and the contrast's raw score.
        samples: (group…, task) → its per-seed areas.
        group: The columns that tell groups apart.
        contrast: Whose scores are ranked.
        definition: The headline's.
        least: The least AUC that scores divide by.
    """
    keys, score = list(samples), contrast.name
    for _, rows in table.groupby(list(group), sort=False):
        scored = [place for place in rows.index if not math.isnan(table.loc[place, f"{score}_raw"])]
        if not scored:
            continue
        chosen = {keys[place]: samples[keys[place]] for place in scored}
        estimate = table.loc[scored, f"{score}_raw"].to_numpy()
        column = score_columns(next(iter(chosen.values())).contrasts).index(
            f"{score}_{contrast.formula_under(definition)}"
        )
        in_steps = bool(factor_columns([contrast], definition))
        drawn = score_replicates(chosen, least, steps=in_steps)[..., column]
        low, high = rank_intervals(estimate, drawn, min(each.count for each in chosen.values()))
        for end, values in (("", ranks_of(estimate)), ("_low", low), ("_high", high)):
            table.loc[scored, f"{score}_rank{end}"] = values


def ranks_of(scores: np.ndarray) -> np.ndarray:
    """Ranks along the last axis: 1 is the highest score; equal ones share their mean rank."""
    return rankdata(-scores, axis=-1)


def rank_intervals(
    estimate: np.ndarray,
    drawn: np.ndarray,
    count: int,
    ranks: Callable[[np.ndarray], np.ndarray] = ranks_of,
    level: float = LEVEL,
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of ranks, which are quantiles of replicates and so never lie beyond the first or the last rank.

    Args:
        estimate: scores (n,).
        drawn: their replicates (resamples, n).
        count: of how many seeds these are.
        ranks: what ranks (…, k) scores (…, n) have.
        level: the confidence.
    """
    found = ranks(widen(estimate, drawn, count))
    if np.isnan(drawn).any():
        return np.full(found.shape[-1], np.nan), np.full(found.shape[-1], np.nan)
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")
    return low, high
