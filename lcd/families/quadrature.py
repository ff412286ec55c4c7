"""Bayesian quadrature: a Gaussian process over a family's features says which point tells most about its mean.

Scores are taken for a draw of a Gaussian process with an unknown mean, a kernel that is a product over the features,
and a part of each point's own. Given the scores of some points, the family's mean Σ p_i s_i then has an expectation,
which weighs these scores, and a variance, which does not depend on scores that are still to come: the next point is
the one that lowers it most. Which kernel it is nobody knows: there are some hundred hypotheses, each of which counts
for as much as what has been measured so far speaks for it. With few points that is for many of them, and none is
trusted alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri
from scipy.stats import qmc

VAGUE = 100.0
"""Variance of the process' mean, in those of its deviations: next to nothing is known of it."""
LENGTH, LENGTH_SPREAD = 1.0, 1.0
"""What is believed of a length before anything is measured (features go from 0 to 1): its median, sd of its log."""
ALIKE, ALIKE_SPREAD = -2.0, 1.0
"""Likewise of the share of a kernel that a feature does not change: the median of its log odds, and their sd."""
OWN, OWN_SPREAD = 0.3, 1.0
"""Likewise of the variance of a point's own."""
HYPOTHESES = 512
"""How many kernels are compared (a power of two)."""
KEPT = 8
"""By how many of them points are picked and weighed."""
FEWEST, MOST = 6, 96
"""Points from which it is first learned which kernels hold, and those after which nothing more is learned."""
BLOCK = 2e6
"""Numbers of an array."""


class Kernels(NamedTuple):
    """Several hypotheses of how scores of two points go together.

    Attributes:
        lengths: (kernels, features), where a feature goes from 0 to 1.
        alike: (kernels,): 0 where points that are far from each other in one feature have nothing in common any more,
            whatever the others; towards 1 scores become sums of what each feature does alone.
        own: (kernels,): the variance that a point shares with no other one, however near.
        weights: (kernels,): how much each counts; they sum to 1.
    """

    lengths: np.ndarray
    alike: np.ndarray
    own: np.ndarray
    weights: np.ndarray

    def between(self, some: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Covariances (kernels, some, others) without what is a point's own: products over the features."""
        found = np.ones((len(self.own), len(some), len(others)))
        alike = self.alike[:, None, None]
        for column in range(some.shape[1]):
            values, at = np.unique(np.concatenate([some[:, column], others[:, column]]), return_inverse=True)
            distance = np.sqrt(5) * np.abs(values[:, None] - values) / self.lengths[:, column, None, None]
            matern = (1 + distance + distance**2 / 3) * np.exp(-distance)
            found *= (alike + (1 - alike) * matern)[:, at[: len(some), None], at[len(some) :]]
        return found

    def some(self, which: np.ndarray) -> Kernels:
        """Only these of them."""
        return Kernels(*(each[which] for each in self))


def by_quadrature(
    table: np.ndarray,
    distribution: np.ndarray,
    budget: int,
    known: Mapping[int, np.ndarray],
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Places of points, the known ones first, and what the score of each weighs in the family's mean.

    Args:
        table: (points, features).
        distribution: the probability of each point.
        budget: how many points.
        known: place → score, or one a method; NaN where it is not known yet.
        rng: breaks ties.
    """
    features = positions(table)
    places = list(known)
    told = [place for place in places if np.isfinite(known[place]).all()]
    scores = np.array([np.atleast_1d(np.asarray(known[place], float)) for place in told]).T
    kernels = learned(features[told], scores)
    picked = picks(features, distribution, kernels, places, budget, rng)
    return picked, weights_of(features, distribution, kernels, picked)


def replayed(
    table: np.ndarray, distribution: np.ndarray, budgets: list[int], scores: np.ndarray, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """What would have been chosen for each of several budgets, had scores come in one after the other.

    Args:
        budgets: in rising order; kernels are learned anew whenever the points have become a half more.
        scores: (methods, points): only what is chosen is looked at.
    """
    features, places, found = positions(table), np.array([], int), []
    stops = sorted({*budgets, *(int(FEWEST * 1.5**k) for k in range(30) if FEWEST * 1.5**k < budgets[-1])})
    kernels = learned(features[places], scores[:, places])
    for stop in stops:
        places = picks(features, distribution, kernels, list(places), stop, rng)
        kernels = learned(features[places], scores[:, places])
        if stop in budgets:
            found.append((places, weights_of(features, distribution, kernels, places)))
    return found


def with_known(table: np.ndarray, beforehand: np.ndarray | None) -> np.ndarray:
    """Features with what else is known of all points before any is trained; a quantity that some lack is left out."""
    if beforehand is None:
        return table
    return np.column_stack([table, beforehand[:, np.isfinite(beforehand).all(0)]])


def positions(table: np.ndarray) -> np.ndarray:
    """Features by their place among the values that they have, from 0 to 1: lengths, masses, factors are alike then."""
    found = np.zeros(table.shape)
    for column, values in enumerate(table.T):
        distinct, place = np.unique(values, return_inverse=True)
        found[:, column] = place / max(len(distinct) - 1, 1)
    return found


def picks(
    features: np.ndarray,
    distribution: np.ndarray,
    kernels: Kernels,
    places: list[int],
    budget: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Places with further ones, each of which lowers the variance of the family's mean most, over all kernels."""
    chosen, own = list(places), kernels.own[:, None]
    variance = np.repeat(VAGUE + 1 + own, len(features), 1)
    shared = _times(features, kernels, distribution, features) + VAGUE + own * distribution
    factor = np.zeros((len(own), budget, len(features)))
    for step in range(budget):
        if step == len(chosen):
            gain = kernels.weights @ np.where(variance > 1e-9 * VAGUE, shared**2 / np.maximum(variance, 1e-300), 0.0)
            gain[chosen] = -1.0
            best = np.flatnonzero(gain >= gain.max() * (1 - 1e-9))
            chosen.append(int(rng.choice(best)))
        place = chosen[step]
        row = VAGUE + kernels.between(features[[place]], features)[:, 0]
        row[:, place] += kernels.own
        row -= np.matmul(factor[:, None, :step, place], factor[:, :step])[:, 0]
        row /= np.sqrt(np.maximum(variance[:, place], 1e-12))[:, None]
        factor[:, step] = row
        variance -= row**2
        shared -= row * (row @ distribution)[:, None]
    return np.array(chosen, int)


def weights_of(features: np.ndarray, distribution: np.ndarray, kernels: Kernels, places: np.ndarray) -> np.ndarray:
    """What the scores of these points weigh in the expectation of the family's mean; the weights sum to 1."""
    here, own = features[places], kernels.own[:, None]
    among = kernels.between(here, here) + (own[:, None] + 1e-10) * np.eye(len(places))
    target = _times(features, kernels, distribution, here) + own * distribution[places]
    plain, ones = np.moveaxis(np.linalg.solve(among, np.stack([target, np.ones_like(target)], axis=-1)), -1, 0)
    lacking = (1 - plain.sum(1)) / ones.sum(1)
    return kernels.weights @ (plain + ones * lacking[:, None])


def surprises(features: np.ndarray, kernels: Kernels) -> np.ndarray:
    """(points, points): times scores, how far each is from its expectation after all others (leave one out)."""
    count = len(features)
    among = kernels.between(features, features) + (kernels.own[:, None, None] + 1e-10) * np.eye(count)
    inverse = np.linalg.inv(among)
    sums = inverse.sum(2)
    contrasts = inverse - sums[:, :, None] * sums[:, None] / sums.sum(1)[:, None, None]
    alone = np.diagonal(contrasts, axis1=1, axis2=2)[:, :, None]
    return np.tensordot(kernels.weights, contrasts / np.maximum(alone, 1e-300), 1)


def _times(features: np.ndarray, kernels: Kernels, distribution: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Covariances (kernels, rows) with the family's mean, without mean and what is a point's own, block by block."""
    block = max(1, int(BLOCK // (len(features) * len(kernels.own))))
    parts = [kernels.between(rows[at : at + block], features) @ distribution for at in range(0, len(rows), block)]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(kernels.own), 0))


@cache
def believed(width: int) -> Kernels:
    """What is taken for possible before anything is measured: kernels that cover their distribution evenly."""
    normal = ndtri(qmc.Sobol(width + 2, seed=0).random(HYPOTHESES) * 0.999 + 0.0005)
    return Kernels(
        lengths=LENGTH * np.exp(LENGTH_SPREAD * normal[:, :width]),
        alike=expit(ALIKE + ALIKE_SPREAD * normal[:, width]),
        own=OWN * np.exp(OWN_SPREAD * normal[:, width + 1]),
        weights=np.full(HYPOTHESES, 1 / HYPOTHESES),
    )


def learned(features: np.ndarray, scores: np.ndarray) -> Kernels:
    """The kernels that hold after some scores, a few that stand for all; each method has its own mean and variance.

    What makes a point hard for one method mostly makes it hard for the others: all together they are evidence like
    the scores of one.

    Args:
        features: (points, features).
        scores: (methods, points).
    """
    kernels = believed(features.shape[1])
    varied = scores[scores.std(1) > 1e-9, :MOST] if scores.size else scores
    if len(features) >= FEWEST and len(varied):
        parts = [_evidence(features[:MOST], varied, part) for part in _in_blocks(kernels, len(features[:MOST]))]
        evidence = np.concatenate(parts) / len(varied)
        odds = np.exp(evidence - evidence.max())
        kernels = kernels._replace(weights=odds / odds.sum())
    quantiles = (np.arange(KEPT) + 0.5) / KEPT
    drawn = np.minimum(np.searchsorted(np.cumsum(kernels.weights), quantiles), HYPOTHESES - 1)
    which, count = np.unique(drawn, return_counts=True)
    return kernels.some(which)._replace(weights=count / KEPT)


def _in_blocks(kernels: Kernels, points: int) -> Iterator[Kernels]:
    """The kernels, some at a time."""
    size = max(1, int(BLOCK // max(points, 1) ** 2))
    for start in range(0, len(kernels.own), size):
        yield kernels.some(np.arange(start, min(start + size, len(kernels.own))))


def _evidence(features: np.ndarray, scores: np.ndarray, kernels: Kernels) -> np.ndarray:
    """(kernels,): the log-likelihoods of all methods' scores, with each one's mean and variance at their best."""
    count = len(features)
    among = kernels.between(features, features) + (kernels.own[:, None, None] + 1e-8) * np.eye(count)
    lower = np.linalg.cholesky(among)
    white = np.linalg.solve(lower, np.column_stack([np.ones(count), scores.T])[None])
    ones, others = white[..., :1], white[..., 1:]
    total = (ones**2).sum(1)
    residual = others - ones * ((ones * others).sum(1) / total)[:, None]
    variances = (residual**2).sum(1) / (count - 1)
    determinant = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(1) + np.log(total[:, 0])
    return -0.5 * (len(scores) * determinant + (count - 1) * np.log(np.maximum(variances, 1e-12)).sum(1))
