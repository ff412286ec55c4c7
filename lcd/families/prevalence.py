"""Distributions over the points of a family: random ones, and ones in which failures are rare or common."""

import numpy as np

from lcd.envs.errors import InputError, nearest

RARE, COMMON = 0.1, 10.0
"""What a point that fails weighs against one that does not (the paper does not say)."""
CASES = ("as it is", "failures rare", "failures common", "uniformly random", "discrete normal")
"""The paper's figures 20 to 22. Of the last one its caption says a discrete normal, its text uniformly random."""


def random_distributions(points: int, draws: int, rng: np.random.Generator, concentration: float = 1.0) -> np.ndarray:
    """Random distributions (draws, points).

    Args:
        concentration: of the Dirichlet distribution: at 1 all distributions are alike likely; towards 0 each draw is
            about few points alone.
    """
    return rng.dirichlet(np.full(points, concentration), size=draws)


def prevalence(case: str, distribution: np.ndarray, failed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A distribution over the same points, in which failures are as common as the case says.

    Args:
        case: one of `CASES`.
        distribution: the family's own.
        failed: whether each point fails.
        rng: for the random cases, which forget the family's own.
    """
    count = len(distribution)
    if case == "as it is":
        weights = distribution
    elif case in ("failures rare", "failures common"):
        weights = distribution * np.where(failed, RARE if case == "failures rare" else COMMON, 1.0)
    elif case == "uniformly random":
        weights = rng.uniform(size=count)
    elif case == "discrete normal":
        # The points in a random order, and a bell over their places.
        places = (rng.permutation(count) - (count - 1) / 2) / max(count / 6, 1)
        weights = np.exp(-(places**2) / 2)
    else:
        raise InputError(f"prevalence={case} is unknown: {nearest(case, CASES)}")
    return weights / weights.sum()
