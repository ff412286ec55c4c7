"""Which scores need more seeds, and in which of their conditions: what `stopping=auto` asks at each look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from lcd.scores.challenge_table import GROUP, KEYS
from lcd.scores.contrasts import HEADLINE
from lcd.scores.hard import HardFrom
from lcd.scores.judging import GUARDED
from lcd.scores.scoring import TaskSamples, score_columns
from lcd.statistics.intervals import influences, mean_over_seeds

Row = tuple[str, ...]
"""The values of `KEYS` of a row of a diagnosis' table."""
SHARE = 0.9
"""Of what more seeds of all of a score's conditions would take off its variance: so much must those of some of them."""


@dataclass(frozen=True)
class Enough:
    """When a score has seen enough seeds.

    Attributes:
        widths: score to half the width that its raw interval may have.
        classes: from where on a task is hard: a score has enough seeds, too, once it is for sure on one side of that.
            None: the width alone counts.
    """

    widths: Mapping[str, float]
    classes: HardFrom | None = None


def margins(table: pd.DataFrame, enough: Enough) -> dict[tuple[Row, str], tuple[float, float]]:
    """(row, score) → half the width of its interval, and that which would be enough; NaN for a score that is not there.

    A class is sure once the interval of the distance to where hard begins does not hold 0. Hard begins somewhere
    between scores of other tasks, whose own intervals widen that of the distance as those of independent estimates do
    (the square root of the sum of squares: Zou and Donner 2008). Where a task itself sets the scale, only its width
    counts.

    Args:
        table: of a diagnosis whose intervals have the level of the look.
        enough: the rule.
    """
    found: dict[tuple[Row, str], tuple[float, float]] = {}
    for _, rows in table.groupby(list(GROUP), sort=False):
        keys = [tuple(key) for key in rows[list(KEYS)].itertuples(index=False, name=None)]
        for score, width in enough.widths.items():
            raw = rows[f"{score}_raw"].to_numpy(float)
            half = (rows[f"{score}_raw_high"] - rows[f"{score}_raw_low"]).to_numpy(float) / 2
            sets = np.where(rows[f"{score}_status"].isin(GUARDED), np.nan, raw)
            room = _room(raw, half, None if enough.classes is None else enough.classes.border(score, sets.tolist()))
            found |= {
                (key, score): (float(mine), max(width, float(free)))
                for key, mine, free in zip(keys, half, room, strict=True)
            }
    return found


def open_scores(table: pd.DataFrame, enough: Enough) -> set[tuple[Row, str]]:
    """The (row, score)s that more seeds are wanted of; see `margins`.

    While any task's class is open, those that set the scale go on until they are narrow enough, because it depends on
    them. A score that a task does not have (because the task is unsolved, say) keeps nobody waiting.
    """
    found = margins(table, enough)
    wide = {each for each, (half, most) in found.items() if half > most}
    if enough.classes is None:
        return wide
    setting = _scale_setters(table, enough.classes)
    waiting = {(key[:-1], score) for key, score in wide - setting}
    return {(key, score) for key, score in wide if (key, score) not in setting or (key[:-1], score) in waiting}


def next_conditions(
    samples: TaskSamples, column: str, most: float, count: int, level: float, least: float
) -> tuple[str, ...]:
    """The conditions that get a score's next seeds: those that its variance comes from.

    The fewest by which its interval is expected to become narrow enough; where none are, the fewest that take at least
    `SHARE` off its variance of what all of them would.

    Args:
        samples: the per-seed areas of the task's conditions.
        column: of `lcd.scores.scoring.score_columns`.
        most: half the width that the interval may have.
        count: seeds that those which go on have at the next look.
        level: the nominal level of that look.
        least: the least AUC that scores divide by.
    """
    moved, shared = _parts_of_variance(samples, column, least)
    own = np.array([len(mine) for mine in samples.seeds])
    places = [int(place) for place in np.flatnonzero(moved) if own[place] < count]

    def variance(chosen: tuple[int, ...]) -> float:
        counts = own.copy()
        counts[list(chosen)] = count
        # Seeds come in one order: of two conditions the one with fewer has none that the other has not.
        return float(moved @ (shared / np.maximum.outer(counts, counts)) @ moved)

    now, then = variance(()), variance(tuple(places))
    wanted = (most / stdtrit(count - 1, 0.5 + level / 2)) ** 2
    goal = wanted if then <= wanted else now - SHARE * (now - then)
    subsets = chain.from_iterable(combinations(places, size) for size in range(1, len(places) + 1))
    enough = [(len(each), variance(each), each) for each in subsets if variance(each) <= goal]
    chosen = min(enough)[-1] if enough else tuple(places)
    return tuple(samples.names[place] for place in chosen)


def _parts_of_variance(samples: TaskSamples, column: str, least: float) -> tuple[np.ndarray, np.ndarray]:
    """A score's slope in each condition's mean (0 where it has none), and the covariances of single seeds."""
    place = score_columns(samples.contrasts).index(column)
    counts = [len(area) for area in samples.areas]
    spread = np.array([area.std(ddof=1) if len(area) > 1 else 0.0 for area in samples.areas])
    error = spread / np.sqrt(counts)
    means = np.array([mean_over_seeds(area) for area in samples.areas])
    moved = influences(lambda averages: samples.scores(averages, least)[..., [place]], means, error)[:, 0]
    slopes = np.divide(moved, error, out=np.zeros(len(error)), where=error > 0)
    shared = np.diag(spread**2)
    for one, other in combinations(range(len(counts)), 2):
        both = [each for each in samples.seeds[one] if each in samples.seeds[other]]
        if len(both) > 1:
            together = np.cov(_at(samples, one, both), _at(samples, other, both))
            shared[one, other] = shared[other, one] = together[0, 1]
    return slopes, shared


def _at(samples: TaskSamples, place: int, seeds: list[int]) -> np.ndarray:
    known = dict(zip(samples.seeds[place], samples.areas[place], strict=True))
    return np.array([known[seed] for seed in seeds])


def _room(raw: np.ndarray, half: np.ndarray, border: Mapping[int, float] | None) -> np.ndarray:
    """How wide each interval may be with its score still for sure on one side of the border; 0 where it cannot be."""
    if border is None:
        return np.zeros(len(raw))
    places, weights = np.array(list(border)), np.array(list(border.values()))
    distance = np.nan_to_num(raw - weights @ raw[places])
    rest = np.nan_to_num((weights * half[places]) ** 2, nan=np.inf).sum()
    room = np.sqrt(np.maximum(distance**2 - rest, 0))
    room[places] = 0
    return room


def _scale_setters(table: pd.DataFrame, classes: HardFrom) -> set[tuple[Row, str]]:
    found = set()
    for _, rows in table.groupby(list(GROUP), sort=False):
        keys = [tuple(key) for key in rows[list(KEYS)].itertuples(index=False, name=None)]
        for score in (contrast.name for contrast in HEADLINE):
            sets = rows[f"{score}_raw"].where(~rows[f"{score}_status"].isin(GUARDED)).to_list()
            found |= {(keys[place], score) for place in classes.border(score, sets) or ()}
    return found
