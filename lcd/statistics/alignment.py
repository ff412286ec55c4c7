"""By what factor one learning curve is slower than another: the shift in log₂ steps that aligns the two.

Of every return that matters it is asked within which steps a curve passes it: known, before the first evaluation, or
not within the budget. Two curves' differences of log steps are then censored on either side, and the shift is the one
that is nearest to all of them. Returns that neither curve tells apart say nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

BINS = 48
"""Stretches of equal length in log steps, over which a curve is averaged: they smooth what evaluations scatter."""
RETURNS = 24
"""Returns at which curves are compared."""
SPAN = (0.1, 0.9)
"""The returns that matter: of the way from the return before training to the highest that is reached."""
LEAST_SHARE = 0.25
"""A shift is bounded on a side only if at least this share of the returns says so: a single one may be noise."""
HIGHEST = 3
"""Bins whose mean is the highest return that a curve reaches."""
STEPS_OF_SEARCH = 60


class Passing(NamedTuple):
    """Between which log₂ steps returns are passed, each (…, `RETURNS`); equal where that is known."""

    earliest: np.ndarray
    latest: np.ndarray


class Shift(NamedTuple):
    """Log₂ of the factors that fit best: equal where one does, infinite where there is no bound on a side."""

    least: np.ndarray
    most: np.ndarray

    @property
    def value(self) -> np.ndarray:
        """The factor's log₂: the middle of those that fit, or the bound where there is but one; NaN without any."""
        below, above = np.isinf(self.least), np.isinf(self.most)
        least, most = np.where(below, self.most, self.least), np.where(above, self.least, self.most)
        return np.where(below & above, np.nan, (least + np.where(below & above, least, most)) / 2)

    @property
    def open(self) -> np.ndarray:
        """1 where the value is a lower bound, −1 where it is an upper one, 0 where it is the factor."""
        return np.isinf(self.most).astype(int) - np.isinf(self.least)


def bin_edges(first: float, last: float) -> np.ndarray | None:
    """The ends of `BINS` stretches of equal length in log steps; None where the steps span no stretch."""
    return np.geomspace(first, last, BINS + 1) if 0 < first < last * (1 - 1e-9) else None


def bin_centres(edges: np.ndarray) -> np.ndarray:
    """Log₂ steps of the bins' centres."""
    return (np.log2(edges[1:]) + np.log2(edges[:-1])) / 2


def binned(steps: np.ndarray, values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Mean heights of a piecewise-linear curve in each bin; exact."""
    grid = np.union1d(steps, edges)
    heights = np.interp(grid, steps, values)
    sums = np.concatenate([[0.0], np.cumsum(np.diff(grid) * (heights[1:] + heights[:-1]) / 2)])
    return np.diff(sums[np.searchsorted(grid, edges)]) / np.diff(edges)


def returns_that_matter(profiles: np.ndarray, starts: np.ndarray, least_rise: float = 0.0) -> np.ndarray:
    """The returns at which several curves are compared, (…, `RETURNS`); NaN where no curve rises.

    Args:
        profiles: Binned mean curves (…, curves, `BINS`).
        starts: Their returns before training (…, curves); where one is NaN, the least return of any counts.
        least_rise: What some curve has to gain.
    """
    before = np.where(np.isnan(starts).any(-1), profiles.min((-1, -2)), starts.max(-1))
    highest = np.partition(profiles, -HIGHEST, axis=-1)[..., -HIGHEST:].mean(-1).max(-1)
    rise = np.where(highest - before > least_rise, highest - before, np.nan)
    return before[..., None] + rise[..., None] * np.linspace(*SPAN, RETURNS)


def passing(profile: np.ndarray, returns: np.ndarray, centres: np.ndarray) -> Passing:
    """When a curve passes returns: after as many log steps as it spends below them, whatever their order.

    Sorting a noisy curve's heights makes it rise throughout and moves none of the time that it spends below a return.

    Args:
        profile: Binned mean curve (…, `BINS`).
        returns: In rising order (…, `RETURNS`).
        centres: Of the bins.
    """
    rising = np.sort(profile, axis=-1)
    below = (rising[..., None, :] < returns[..., :, None]).sum(-1)
    after, before = np.clip(below, 1, BINS - 1), np.clip(below, 1, BINS - 1) - 1
    lower, upper = np.take_along_axis(rising, before, -1), np.take_along_axis(rising, after, -1)
    rise = upper - lower
    share = np.divide(returns - lower, rise, out=np.zeros_like(rise), where=rise > 0)
    known = centres[before] + np.clip(share, 0, 1) * (centres[after] - centres[before])
    unknown = np.isnan(returns)
    return Passing(
        np.where((below == 0) | unknown, -np.inf, np.where(below == BINS, centres[-1], known)),
        np.where((below == BINS) | unknown, np.inf, np.where(below == 0, centres[0], known)),
    )


def shift_between(slow: Passing, fast: Passing) -> Shift:
    """The shift that is nearest, by squares, to what each return says of it.

    Where no return contradicts another, it is all that they leave open: with a curve that never gets to the returns,
    no upper bound.
    """
    low, high = slow.earliest - fast.latest, slow.latest - fast.earliest
    low = np.where(np.isfinite(low).mean(-1, keepdims=True) < LEAST_SHARE, -np.inf, low)
    high = np.where(np.isfinite(high).mean(-1, keepdims=True) < LEAST_SHARE, np.inf, high)
    least, most = low.max(-1), high.min(-1)
    agree = least <= most
    found = np.full(least.shape, np.nan)
    if not agree.all():
        found[~agree] = _nearest(low[~agree], high[~agree])
    return Shift(np.where(agree, least, found), np.where(agree, most, found))


def _nearest(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The points that are nearest to intervals (n, k) which have none in common: Newton's steps within a bracket."""
    left, right = high.min(-1), low.max(-1)
    point = (left + right) / 2
    for _ in range(STEPS_OF_SEARCH):
        short, long = np.maximum(low - point[:, None], 0), np.maximum(point[:, None] - high, 0)
        pull = short.sum(-1) - long.sum(-1)
        left, right = np.where(pull >= 0, point, left), np.where(pull <= 0, point, right)
        moved = point + pull / np.maximum(((short > 0) | (long > 0)).sum(-1), 1)
        moved = np.where((moved >= left) & (moved <= right), moved, (left + right) / 2)
        if np.abs(moved - point).max() <= 1e-12 * (1 + np.abs(moved).max()):
            return moved
        point = moved
    return point


def mean_shift(shifts: list[Shift]) -> Shift:
    """The mean of those shifts of which anything is known: bounded on a side where all of these are."""
    least, most = np.stack([each.least for each in shifts]), np.stack([each.most for each in shifts])
    nothing = np.isinf(least) & np.isinf(most)
    count = (~nothing).sum(0)
    ends = [np.where(nothing, 0.0, end).sum(0) / np.maximum(count, 1) for end in (least, most)]
    return Shift(np.where(count > 0, ends[0], -np.inf), np.where(count > 0, ends[1], np.inf))
