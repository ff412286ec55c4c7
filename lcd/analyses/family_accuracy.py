"""How well fewer points would have told a family's overall performance, and whether that depends on failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Drawing
from lcd.envs.errors import InputError
from lcd.families.accuracy import choices, errors, errors_of, usual_budgets
from lcd.families.choosing import KMEANS, QUADRATURE, WAYS, Choice, clustered, kmeans_or_refuse
from lcd.families.measured import Measured
from lcd.families.prevalence import CASES, prevalence
from lcd.report import family_figures as figures

REPEATS = {"with_replacement": 200, "without_replacement": 200, KMEANS: 3, QUADRATURE: 1}
"""How often points are chosen anew here: a report takes seconds."""
MOST_POINTS = 150
"""Larger budgets are not looked at: learning lengths from more points takes longer than a report may."""


def accuracy_of(found: Measured, stem: str, what: str) -> Iterator[Analysis]:
    """The error of each way to choose points, over budgets (figures 7 and 16 to 19); few points have none."""
    ways, lacking = _ways()
    count = len(found.distribution)
    budgets = [budget for budget in usual_budgets(count) if budget <= max(count // 2, 3)][-9:]
    budgets = [budget for budget in budgets if budget <= MOST_POINTS]
    if not budgets:
        return
    by_method = _errors(found, budgets, ways)
    table = _averaged(by_method)
    named = by_method.assign(method=[found.methods[place] for place in by_method["method"]])
    note = (
        "What N points would have told of the overall performance, from the scores measured here, less what all points "
        "tell: the mean and standard deviation over repeated choices and the root of the mean square, averaged over "
        f"methods. Repeats: {', '.join(f'{how} {REPEATS[how]}' for how in ways)}. "
        "with_replacement is the paper's M1 (the mean: the paper leaves out 1/N), without_replacement its M2, kmeans "
        "its M3 (features standardised); quadrature picks by a Gaussian process of the features and, where it is "
        "known, of what a random agent returns at each point."
    )
    caption = f"Error of the overall performance over the number of points, {what}"
    error = Drawing(f"{stem}-accuracy", caption, partial(figures.accuracy, table))
    caption = f"What fewer points tell less what all tell: the mean over choices, and its standard deviation, {what}"
    bias = Drawing(f"{stem}-accuracy-by-method", caption, partial(figures.accuracy_by_method, named))
    title = f"Fewer points for the family of {what}"
    kept = {f"{stem}-accuracy-by-method": named}
    yield Analysis(f"{stem}-accuracy", title, table, lacking, note, [error, bias], kept)


def mean_errors(found: Measured, budgets: Sequence[int], ways: Sequence[str]) -> pd.DataFrame:
    """how, N, and bias, spread and error averaged over methods."""
    return _averaged(_errors(found, budgets, ways))


def _errors(found: Measured, budgets: Sequence[int], ways: Sequence[str]) -> pd.DataFrame:
    known = found.beforehand
    return errors(found.table, found.distribution, found.means, budgets, ways, REPEATS, beforehand=known)


def _averaged(by_method: pd.DataFrame) -> pd.DataFrame:
    """Bias and spread as means over methods, errors as the root of the mean of their squares."""
    squared = by_method.assign(error=by_method["error"] ** 2)
    found = squared.groupby(["how", "N"], sort=False)[["bias", "spread", "error"]].mean().reset_index()
    return found.assign(error=np.sqrt(found["error"]))


@dataclass(frozen=True)
class Failing:
    """Points that fail.

    Attributes:
        points: (points,) whether each does.
        why: the words before "; rare: …" that say what failing is.
    """

    points: np.ndarray
    why: str


def prevalence_of(found: Measured, failing: Failing, stem: str, what: str) -> Analysis:
    """The same errors where failures are rare, common or random, and at half of the points (figures 20 to 22)."""
    ways = [how for how in _ways()[0] if how != QUADRATURE]
    half = max(len(found.distribution) // 2, 1)
    budgets = sorted({half, *(budget for budget in usual_budgets(len(found.distribution)) if budget <= MOST_POINTS)})
    budgets = sorted({half, *budgets[:: max(1, len(budgets) // 4)]})
    cuts = _cuts(found.table, budgets) if KMEANS in ways else {}
    rows = []
    for case in CASES:
        p = prevalence(case, found.distribution, failing.points, np.random.default_rng(0))
        overall = dict(zip(found.methods, found.means @ p, strict=True))
        shared = {"failures": case, "failing %": float(100 * p @ failing.points), **overall}
        for how in ways:
            for budget, made in _chosen(how, found, p, budgets, cuts).items():
                wrong = pd.DataFrame(errors_of(made, p, found.means))
                rows.append(
                    {**shared, "how": how, "N": budget, "bias": wrong["bias"].mean(), "spread": wrong["spread"].mean(),
                     "error": float(np.sqrt((wrong["error"] ** 2).mean()))}
                )  # fmt: skip
    whole = pd.DataFrame(rows)
    table = whole[whole["N"] == half].reset_index(drop=True)
    says = [] if failing.points.any() else ["No point fails here: rare and common failures change nothing."]
    note = (
        f"Overall performances under other distributions, and how wrong half of the points are there. {failing.why}; "
        "rare: it weighs a tenth of what it did, common: ten times. Of its figure 22 the "
        "paper's text says uniformly random, its caption a discrete normal: both are here, from one draw each."
    )
    caption = f"Error over the number of points if failures were rare or common in {what}"
    drawing = Drawing(f"{stem}-prevalence", caption, partial(figures.accuracy_by_case, whole))
    title = f"If failures were rare or common in {what}"
    return Analysis(f"{stem}-prevalence", title, table, says, note, [drawing], {f"{stem}-prevalence-by-budget": whole})


Cuts = dict[int, list[tuple[np.ndarray, np.ndarray]]]
"""Budget → repeated clusterings: the points that stand for clusters, and each point's cluster."""


def _cuts(table: np.ndarray, budgets: Sequence[int]) -> Cuts:
    """Clusters of points, which know of no distribution: one clustering serves all of them."""
    rng = np.random.default_rng(0)
    return {budget: [clustered(table, budget, rng) for _ in range(REPEATS[KMEANS])] for budget in budgets}


def _chosen(how: str, found: Measured, p: np.ndarray, budgets: Sequence[int], cuts: Cuts) -> dict[int, list[Choice]]:
    """Budget → repeated choices of points under a distribution."""
    if how == KMEANS:
        return {
            budget: [Choice(places, np.bincount(clusters, p)) for places, clusters in cut]
            for budget, cut in cuts.items()
        }
    made: dict[int, list[Choice]] = {budget: [] for budget in budgets}
    for budget, choice in choices(how, found.table, p, budgets, found.means, REPEATS[how], seed=0):
        made[budget].append(choice)
    return made


def _ways() -> tuple[list[str], list[str]]:
    """The ways that can be gone here, and a sentence where one cannot."""
    try:
        kmeans_or_refuse()
    except InputError as lacking:
        return [how for how in WAYS if how != KMEANS], [str(lacking)]
    return list(WAYS), []
