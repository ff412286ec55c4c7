"""How far from the family's mean the points of a budget lead: bias and spread of each way to choose them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from lcd.families.choosing import QUADRATURE, RANDOM, WAYS, Choice
from lcd.families.quadrature import replayed, with_known

REPEATS = {"with_replacement": 200, "without_replacement": 200, "kmeans": 10, QUADRATURE: 1}
"""How often points are chosen anew: `quadrature` leaves next to nothing to chance."""


def choices(
    how: str,
    table: np.ndarray,
    distribution: np.ndarray,
    budgets: Sequence[int],
    scores: np.ndarray,
    repeats: int,
    seed: int,
    beforehand: np.ndarray | None = None,
) -> Iterator[tuple[int, Choice]]:
    """Every budget's choices, each `repeats` times.

    Args:
        how: one of `lcd.families.choosing.WAYS`.
        table: (points, features).
        distribution: the probability of each point.
        budgets: numbers of points, rising.
        scores: (methods, points): what `quadrature` is told of the points that it has chosen.
        repeats: how often.
        seed: of all of them.
        beforehand: what else is known of each point, as `lcd.families.choosing.choose_points` takes it.
    """
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        if how == QUADRATURE:
            known = with_known(table, beforehand)
            made = [Choice(*each) for each in replayed(known, distribution, list(budgets), scores, rng)]
        else:
            made = [RANDOM[how](table, distribution, budget, rng) for budget in budgets]
        yield from zip(budgets, made, strict=True)


def errors(
    table: np.ndarray,
    distribution: np.ndarray,
    scores: np.ndarray,
    budgets: Sequence[int],
    ways: Sequence[str] = WAYS,
    repeats: dict[str, int] | None = None,
    seed: int = 0,
    beforehand: np.ndarray | None = None,
) -> pd.DataFrame:
    """How wrong each way is under each budget.

    Args:
        table: (points, features).
        distribution: the probability of each point.
        scores: (methods, points), of which the family's mean is to be told.
        budgets: numbers of points.
        ways: which of `lcd.families.choosing.WAYS`.
        repeats: way → how often points are chosen anew; None: `REPEATS`.
        seed: of the choices.
        beforehand: what else is known of each point, as `lcd.families.choosing.choose_points` takes it.

    Returns:
        how, N, method (its place), and of the estimates less the family's mean: `bias` (their mean), `spread` (their
        standard deviation over repeats), `error` (the root of their mean square).
    """
    asked = sorted({int(budget) for budget in budgets if 1 <= budget <= len(distribution)})
    rows = []
    for how in ways:
        found: dict[int, list[Choice]] = {budget: [] for budget in asked}
        often = (repeats or REPEATS)[how]
        for budget, choice in choices(how, table, distribution, asked, scores, often, seed, beforehand):
            found[budget].append(choice)
        for budget, made in found.items():
            rows += [{"how": how, "N": budget} | row for row in errors_of(made, distribution, scores)]
    return pd.DataFrame(rows)


def errors_of(choices: Sequence[Choice], distribution: np.ndarray, scores: np.ndarray) -> list[dict[str, float]]:
    """How wrong some choices are on average: method (its place), `bias`, `spread` and `error`, as `errors` has them."""
    off = np.array([choice.overall(scores) for choice in choices]) - scores @ distribution
    return [
        {"method": method, "bias": mine.mean(), "spread": mine.std(), "error": np.sqrt((mine**2).mean())}
        for method, mine in enumerate(off.T)
    ]


def usual_budgets(points: int) -> list[int]:
    """Budgets from a handful of points to all of them, about a third more each time."""
    found = np.unique(np.round(np.geomspace(min(4, points), points, 12)).astype(int))
    return [int(budget) for budget in found]
