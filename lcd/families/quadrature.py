"""Bayesian quadrature: a Gaussian process over a family's features says which point tells most about its mean.

Scores are taken for a draw of a Gaussian process with an unknown mean, a Matérn kernel (ν = 5/2) with a length of each
feature, and a part of each point's own. Given the scores of some points, the family's mean Σ p_i s_i then has an
expectation, which weighs these scores, and a variance, which does not depend on scores that are still to come: the
next point is the one that lowers it most. Lengths are learned from what has been measured so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

VAGUE = 100.0
"""Variance of the process' mean, in those of its deviations: next to nothing is known of it."""
LENGTH, LENGTH_SPREAD = 1.0, 1.0
"""What is believed of a length before anything is measured (features go from 0 to 1): its median, sd of its log."""
OWN, OWN_SPREAD = 0.3, 1.0
"""Likewise of the share of a point's own."""
FEWEST = 6
"""Points from which lengths are first learned."""


class Kernel(NamedTuple):
    """How scores of two points go together.

    Attributes:
        lengths: of each feature, where it goes from 0 to 1.
        own: the variance that a point shares with no other one, however near.
    """

    lengths: np.ndarray
    own: float

    def between(self, some: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Covariances (some, others) without what is a point's own."""
        gaps = ((some[:, None] - others[None]) / self.lengths) ** 2
        distance = np.sqrt(5 * gaps.sum(-1))
        return (1 + distance + distance**2 / 3) * np.exp(-distance)


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
    kernel = learned(features[told], scores)
    picked = picks(features, distribution, kernel, places, budget, rng)
    return picked, weights_of(features, distribution, kernel, picked)


def replayed(
    table: np.ndarray, distribution: np.ndarray, budgets: list[int], scores: np.ndarray, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """What would have been chosen for each of several budgets, had scores come in one after the other.

    Args:
        budgets: in rising order; lengths are learned anew whenever the points have become a half more.
        scores: (methods, points): only what is chosen is looked at.
    """
    features, places, found = positions(table), np.array([], int), []
    stops = sorted({*budgets, *(int(FEWEST * 1.5**k) for k in range(30) if FEWEST * 1.5**k < budgets[-1])})
    for stop in stops:
        kernel = learned(features[places], scores[:, places])
        places = picks(features, distribution, kernel, list(places), stop, rng)
        if stop in budgets:
            kernel = learned(features[places], scores[:, places])
            found.append((places, weights_of(features, distribution, kernel, places)))
    return found


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
    kernel: Kernel,
    places: list[int],
    budget: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Places with further ones, each of which lowers the variance of the family's mean most."""
    chosen = list(places)
    count = len(features)
    variance = np.full(count, VAGUE + 1 + kernel.own)
    shared = _times(features, kernel, distribution)
    factor = np.zeros((budget, count))
    for step in range(budget):
        if step == len(chosen):
            gain = np.where(variance > 1e-9 * VAGUE, shared**2 / np.maximum(variance, 1e-300), -1.0)
            gain[chosen] = -1.0
            best = np.flatnonzero(gain >= gain.max() * (1 - 1e-9))
            chosen.append(int(rng.choice(best)))
        place = chosen[step]
        row = VAGUE + kernel.between(features[[place]], features)[0]
        row[place] += kernel.own
        row = (row - factor[:step, place] @ factor[:step]) / np.sqrt(max(variance[place], 1e-12))
        factor[step] = row
        variance = variance - row**2
        shared = shared - row * (row @ distribution)
    return np.array(chosen, int)


def weights_of(features: np.ndarray, distribution: np.ndarray, kernel: Kernel, places: np.ndarray) -> np.ndarray:
    """What the scores of these points weigh in the expectation of the family's mean; the weights sum to 1."""
    here = features[places]
    among = kernel.between(here, here) + kernel.own * np.eye(len(places))
    target = _times(features, kernel, distribution, here)
    target += kernel.own * distribution[places]
    solve = cho_factor(among + 1e-10 * np.eye(len(places)))
    plain, ones = cho_solve(solve, np.stack([target, np.ones(len(places))], axis=1)).T
    return plain + ones * (1 - plain.sum()) / ones.sum()


def _times(
    features: np.ndarray, kernel: Kernel, distribution: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """Covariance of every point (or of `rows`) with the family's mean, block by block."""
    own = rows is None
    rows = features if rows is None else rows
    block = max(1, int(2e6 // features.size))
    parts = [
        kernel.between(rows[start : start + block], features) @ distribution for start in range(0, len(rows), block)
    ]
    found = np.concatenate(parts)
    return found + VAGUE + kernel.own * distribution if own else found


def learned(features: np.ndarray, scores: np.ndarray) -> Kernel:
    """The most probable kernel after some scores; each method has a mean and a variance of its own.

    Args:
        features: (points, features).
        scores: (methods, points).
    """
    width = features.shape[1]
    start = np.log([*[LENGTH] * width, OWN])
    varied = scores[scores.std(1) > 1e-9] if scores.size else scores
    if len(features) < FEWEST or not len(varied):
        return Kernel(np.exp(start[:-1]), float(np.exp(start[-1])))
    believed = np.array([*[LENGTH_SPREAD] * width, OWN_SPREAD])

    def surprise(logs: np.ndarray) -> float:
        return _surprise(features, varied, Kernel(np.exp(logs[:-1]), float(np.exp(logs[-1])))) + 0.5 * float(
            (((logs - start) / believed) ** 2).sum()
        )

    bounds = [(start[0] - 3, start[0] + 3)] * width + [(np.log(1e-3), np.log(10.0))]
    found = minimize(surprise, start, method="L-BFGS-B", bounds=bounds, options={"maxiter": 25})
    return Kernel(np.exp(found.x[:-1]), float(np.exp(found.x[-1])))


def _surprise(features: np.ndarray, scores: np.ndarray, kernel: Kernel) -> float:
    """Minus the log-likelihood of the scores, with each method's mean and variance at their best."""
    count = len(features)
    among = kernel.between(features, features) + (kernel.own + 1e-8) * np.eye(count)
    try:
        solve = cho_factor(among, lower=True)
    except LinAlgError:
        return 1e10
    ones = cho_solve(solve, np.ones(count))
    centred = scores - (scores @ ones / ones.sum())[:, None]
    variances = (centred * cho_solve(solve, centred.T).T).sum(1) / max(count - 1, 1)
    determinant = 2 * np.log(np.diag(solve[0])).sum() + np.log(ones.sum())
    return 0.5 * float((determinant + (count - 1) * np.log(np.maximum(variances, 1e-12))).sum())
