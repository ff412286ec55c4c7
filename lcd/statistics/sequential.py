"""Looking repeatedly at growing data without promising too much: alpha spending (Lan and DeMets 1983)."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.integrate import cumulative_trapezoid
from scipy.special import ndtr, ndtri

from lcd.statistics.confidence import ALPHA

GRID = 2001
TINY = 1e-300
REACH = 9.0
"""Standard errors on either side that the recursion follows; beyond lies less than 1e-18 of the probability."""


def pocock(share: float, alpha: float) -> float:
    """Error spent by a share of the data, about as much at every look: what stops early."""
    return alpha * math.log(1 + (math.e - 1) * min(share, 1.0))


def obrien_fleming(share: float, alpha: float) -> float:
    """Error spent by a share of the data, almost all of it at the end: what stops late, at hardly any price.

    Half of it on either side, each by the one-sided function.
    """
    if share <= 0:
        return 0.0
    return float(4 * ndtr(ndtri(alpha / 4) / math.sqrt(min(share, 1.0))))


SPENDING: dict[str, Callable[[float, float], float]] = {"pocock": pocock, "obrien_fleming": obrien_fleming}


def boundaries(shares: Sequence[float], alpha: float = ALPHA, spending: str = "pocock") -> np.ndarray:
    """Two-sided critical values of a standard normal statistic at successive looks.

    Args:
        shares: the share of all data that is in at each look, rising, at most 1.
        alpha: probability, over all looks together, of ever crossing under the null hypothesis.
        spending: a name in `SPENDING`.

    Note:
        The statistics' partial sums are a random walk whose increments have variance equal to the growth of the share.
        Its density among the paths that have not crossed yet is followed from look to look on a grid (Armitage,
        McPherson and Rowe 1969), and each boundary is put where the crossing probability is what may be spent.
    """
    spend = SPENDING[spending]
    spent, density, place, before = 0.0, None, None, 0.0
    found = []
    for share in shares:
        allowed = spend(share, alpha) - spent
        spent += allowed
        step = share - before
        edge = REACH * math.sqrt(share)
        grid = np.linspace(-edge, edge, GRID)
        if density is None or place is None:
            now = _normal(grid, step)
        else:
            now = (_normal(grid[:, None] - place[None, :], step) * density) @ _weights(place)
        upper = grid[GRID // 2 :]
        inwards = cumulative_trapezoid(now[GRID // 2 :][::-1], dx=upper[1] - upper[0], initial=0)
        # Between points the tail falls off like an exponential.
        crossing = float(np.interp(math.log(allowed), np.log(2 * inwards + TINY), upper[::-1]))
        found.append(crossing / math.sqrt(share))
        place = np.linspace(-crossing, crossing, GRID)
        density = np.interp(place, grid, now)
        before = share
    return np.array(found)


def nominal_levels(counts: Sequence[int], most: int, alpha: float = ALPHA, spending: str = "pocock") -> np.ndarray:
    """Confidence levels of the intervals at looks after `counts` of `most` seeds, which hold together at 1 - alpha.

    Each look's share of the error is that of a normal statistic; with so few seeds the level is then that of
    Student's t (the significance-level approach of Jennison and Turnbull 2000, section 4.4).
    """
    critical = boundaries([count / most for count in counts], alpha, spending)
    return 2 * ndtr(critical) - 1


def looks(first: int, every: int, most: int) -> list[int]:
    """The numbers of seeds after which one looks: from `first` in rounds of `every` to `most`."""
    return [*range(min(first, most), most, every), most]


def _normal(values: np.ndarray, variance: float) -> np.ndarray:
    return np.exp(-(values**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def _weights(grid: np.ndarray) -> np.ndarray:
    """Of the trapezoidal rule."""
    weights = np.full(len(grid), grid[1] - grid[0])
    weights[[0, -1]] /= 2
    return weights
