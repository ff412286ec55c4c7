"""How well fewer points would have told a family's overall performance, and whether that depends on failures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    by_method = errors(found.table, found.distribution, found.means, budgets, ways, REPEATS)
    table = _averaged(by_method)
    named = by_method.assign(method=[found.methods[place] for place in by_method["method"]])
    note = (
        "What N points would have told of the overall performance, from the scores measured here, less what all points "
        "tell: the mean and standard deviation over repeated choices and the root of the mean square, averaged over "
        f"methods. Repeats: {', '.join(f'{how} {REPEATS[how]}' for how in ways)}. "
        "with_replacement is the paper's M1 (the mean: the paper leaves out 1/N), without_replacement its M2, kmeans "
        "its M3 (features standardised); quadrature picks by a Gaussian process."
    )
    caption = f"Error of the overall performance over the number of points, {what}"
    figure = Drawing(f"{stem}-accuracy", caption, partial(figures.accuracy, table))
    title = f"Fewer points for the family of {what}"
    yield Analysis(f"{stem}-accuracy", title, table, lacking, note, [figure], {f"{stem}-accuracy-by-method": named})


def mean_errors(found: Measured, budgets: Sequence[int], ways: Sequence[str]) -> pd.DataFrame:
    """how, N, and bias, spread and error averaged over methods."""
    return _averaged(errors(found.table, found.distribution, found.means, budgets, ways, REPEATS))


def _averaged(by_method: pd.DataFrame) -> pd.DataFrame:
    """Bias and spread as means over methods, errors as the root of the mean of their squares."""
    squared = by_method.assign(error=by_method["error"] ** 2)
    found = squared.groupby(["how", "N"], sort=False)[["bias", "spread", "error"]].mean().reset_index()
    return found.assign(error=np.sqrt(found["error"]))


def prevalence_of(found: Measured, solved: np.ndarray, stem: str, what: str) -> Analysis:
    """The same errors at half of the points where failures are rare, common or random (figures 20 to 22)."""
    ways = [how for how in _ways()[0] if how != QUADRATURE]
    failed, budget = np.asarray(~solved.any(0)), max(len(found.distribution) // 2, 1)
    # Clusters know of no distribution.
    rng = np.random.default_rng(0)
    cut = [clustered(found.table, budget, rng) for _ in range(REPEATS[KMEANS])] if KMEANS in ways else []
    rows = []
    for case in CASES:
        p = prevalence(case, found.distribution, failed, np.random.default_rng(0))
        overall = dict(zip(found.methods, found.means @ p, strict=True))
        for how in ways:
            if how == KMEANS:
                made = [Choice(places, np.bincount(clusters, p, minlength=budget)) for places, clusters in cut]
            else:
                drawn = choices(how, found.table, p, [budget], found.means, REPEATS[how], seed=0)
                made = [choice for _, choice in drawn]
            wrong = pd.DataFrame(errors_of(made, p, found.means))
            rows.append(
                {"failures": case, "failing %": float(100 * p @ failed), **overall, "how": how, "N": budget,
                 "bias": wrong["bias"].mean(), "spread": wrong["spread"].mean(),
                 "error": float(np.sqrt((wrong["error"] ** 2).mean()))}
            )  # fmt: skip
    note = (
        "Overall performances under other distributions, and how wrong half of the points are there. A point fails "
        "that no method solves; rare: it weighs a tenth of what it did, common: ten times. Of its figure 22 the "
        "paper's text says uniformly random, its caption a discrete normal: both are here, from one draw each."
    )
    return Analysis(f"{stem}-prevalence", f"If failures were rare or common in {what}", pd.DataFrame(rows), (), note)


def _ways() -> tuple[list[str], list[str]]:
    """The ways that can be gone here, and a sentence where one cannot."""
    try:
        kmeans_or_refuse()
    except InputError as lacking:
        return [how for how in WAYS if how != KMEANS], [str(lacking)]
    return list(WAYS), []
