"""Which points of a family are trained where not all can be, and what the score of each then weighs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from lcd.envs.errors import InputError, nearest
from lcd.envs.families.family import Family
from lcd.families.quadrature import by_quadrature, with_known


@dataclass(frozen=True)
class Choice:
    """Some points of a family, which stand for all of it.

    Attributes:
        places: of the points in the family, in the order in which they were chosen; one may come twice.
        weights: of the score of each in the overall performance; they sum to 1.
    """

    places: np.ndarray
    weights: np.ndarray

    def overall(self, scores: np.ndarray) -> np.ndarray:
        """The overall performance that the chosen points tell.

        Args:
            scores: (…, points of the family); only those of the chosen points are read.
        """
        return (scores[..., self.places] * self.weights).sum(-1)


def with_replacement(table: np.ndarray, distribution: np.ndarray, budget: int, rng: np.random.Generator) -> Choice:
    """M1: points are drawn from the distribution one by one, some of them perhaps twice; their scores' plain mean."""
    places = rng.choice(len(distribution), size=budget, p=distribution)
    return Choice(places, np.full(budget, 1 / budget))


def without_replacement(table: np.ndarray, distribution: np.ndarray, budget: int, rng: np.random.Generator) -> Choice:
    """M2: points are drawn from the distribution, none twice, and weigh what they weigh in it, made to sum to 1."""
    number = min(budget, int(np.count_nonzero(distribution)))
    places = rng.choice(len(distribution), size=number, replace=False, p=distribution)
    return Choice(places, distribution[places] / distribution[places].sum())


def by_kmeans(table: np.ndarray, distribution: np.ndarray, budget: int, rng: np.random.Generator) -> Choice:
    """M3: of each cluster the member that is nearest to its centre, with the probability of the whole cluster."""
    places, clusters = clustered(table, budget, rng)
    return Choice(places, np.bincount(clusters, distribution))


def clustered(table: np.ndarray, budget: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The member nearest to the centre of each of so many clusters, and the cluster of each point.

    Features are standardised and all points count alike. The paper snaps a centre to the nearest point of the family,
    which two centres may share; the nearest of its own cluster is one that no other centre has. In a grid several are
    often as near, and chance takes one of them: always the first would be always the lower value of a feature. Where
    fewer points than clusters can be told apart there are only as many clusters.
    """
    scaled = standardised(table)
    budget = min(budget, len(np.unique(scaled, axis=0)))
    found = kmeans_or_refuse()(n_clusters=budget, n_init=1, random_state=int(rng.integers(2**31))).fit(scaled)
    kept, clusters = np.unique(found.labels_, return_inverse=True)
    distance = ((scaled - found.cluster_centers_[found.labels_]) ** 2).sum(1)
    order = np.lexsort((rng.random(len(distance)), np.round(distance, TIED), clusters))
    return order[np.searchsorted(clusters[order], np.arange(len(kept)))], clusters


TIED = 9
"""Squared distances of standardised features that differ by less than so many digits are the same."""
MOST_WIDE = 1e100
"""Features with values beyond are brought to a size whose squares are numbers before anything else."""


def standardised(table: np.ndarray) -> np.ndarray:
    """Features with mean 0 and standard deviation 1 over the points; one that never varies is 0."""
    most = np.abs(table).max(0)
    table = np.where(most > MOST_WIDE, table / np.where(most > 0, most, 1.0), table)
    spread = table.std(0)
    return (table - table.mean(0)) / np.where(spread > 0, spread, 1.0)


def kmeans_or_refuse() -> Callable:
    """scikit-learn's KMeans, or an `InputError` that says what to install."""
    try:
        from sklearn.cluster import KMeans
    except ImportError:
        raise InputError(
            "Choosing points by k-means needs scikit-learn, which is not installed: install the extra 'families'."
        ) from None
    return KMeans


KMEANS, QUADRATURE = "kmeans", "quadrature"
RANDOM = {"with_replacement": with_replacement, "without_replacement": without_replacement, KMEANS: by_kmeans}
"""The paper's M1, M2 and M3: they look at no score."""
WAYS = (*RANDOM, QUADRATURE)
"""How points may be chosen."""


def choose_points(
    family: Family,
    budget: int,
    how: str,
    scores_so_far: Mapping[int, np.ndarray] | None = None,
    *,
    beforehand: np.ndarray | None = None,
    seed: int = 0,
) -> Choice:
    """Choose the points of a family that are worth training.

    Args:
        family: all points, and how much each counts.
        budget: how many are chosen, those of `scores_so_far` among them.
        how: one of `WAYS`. `quadrature` alone learns from scores: its weights hold for what has been measured so far,
            so ask again, with the same budget, once all of them are.
        scores_so_far: place of a point that was trained → its score, or one a method; these points come first. One
            whose score is not known yet has NaN: nothing is learned of it.
        beforehand: (points, quantities): what else is known of each point before any is trained, such as a random
            agent's return. `quadrature` takes it for further features.
        seed: of what is left to chance; `quadrature` leaves ties to it.
    """
    if how not in WAYS:
        raise InputError(f"how={how} is no way to choose points: {nearest(str(how), WAYS)}")
    known = dict(scores_so_far or {})
    count = len(family.points)
    if not 1 <= budget <= count:
        raise InputError(f"budget={budget}: of a family of {count} points 1 to {count} can be chosen.")
    if known and how != QUADRATURE:
        raise InputError(f"how={how} looks at no scores: only '{QUADRATURE}' goes on from points that are trained.")
    if not all(0 <= place < count for place in known) or len(known) > budget:
        raise InputError(
            f"The scores so far are of the points {sorted(known)}, but the family has {count} and the budget is "
            f"{budget}: give scores of at most as many points of it."
        )
    rng = np.random.default_rng(seed)
    if how in RANDOM:
        return RANDOM[how](family.table, family.distribution, budget, rng)
    return Choice(*by_quadrature(with_known(family.table, beforehand), family.distribution, budget, known, rng))
