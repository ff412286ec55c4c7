"""The figures of a family's section."""

from __future__ import annotations

from functools import partial

import pandas as pd

from lcd.analyses.analysis import Drawing
from lcd.families.measured import Measured
from lcd.families.over_points import point_curves
from lcd.report import family_figures as figures
from lcd.scores.diagnosis import Diagnosis

MOST_ONE_BY_ONE = 6
"""Points that figures have place for one by one."""


def drawings(
    found: Measured, table: pd.DataFrame, stem: str, what: str, higher_is_better: bool, diagnosis: Diagnosis
) -> list[Drawing]:
    """The figures of one family.

    Args:
        found: the family.
        table: of its analysis, a row a method.
        stem: how the figures' names begin.
        what: what a caption calls the family.
        higher_is_better: whether a high score is good.
        diagnosis: with the curves that the scores are from.
    """
    drawn = [
        Drawing(f"{stem}-bars", f"Reported and overall performance, {what}", partial(figures.bars, table)),
        Drawing(
            f"{stem}-profile",
            "Share of the family on which methods reach a performance (the worst fortieth of all scores lies beyond "
            f"the edge), {what}",
            partial(figures.profiles, found, higher_is_better),
        ),
        Drawing(
            f"{stem}-histogram",
            f"How much of the family has which performance, {what}",
            partial(figures.histograms, found),
        ),
    ]
    if len(found.contexts) <= MOST_ONE_BY_ONE:
        told = point_curves(found, diagnosis.points, diagnosis.curves)
        drawn.append(Drawing(f"{stem}-points", f"Performance on each point, {what}", partial(figures.points, found)))
        drawn.append(Drawing(f"{stem}-training", f"Held-out curves by point, {what}", partial(figures.training, told)))
    if len(found.features) > 1:
        caption = (
            f"Performance over two features of the context, the mean over the others (white: not measured), {what}"
        )
        drawn.append(Drawing(f"{stem}-map", caption, partial(figures.maps, found, higher_is_better)))
    return drawn
