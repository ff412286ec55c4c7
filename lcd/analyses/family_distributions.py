"""Overall performances under other distributions over a family's points: five with a name, of many (figure 23)."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Drawing, joined_names
from lcd.analyses.areas import with_interval
from lcd.analyses.family_settings import FamilySettings, ranks_of, signed
from lcd.families.measured import Measured
from lcd.families.prevalence import random_distributions
from lcd.report import family_figures as figures
from lcd.statistics.intervals import BOOTSTRAP_SEED

NAMED = 5
"""How many of the random distributions are told one by one, as the paper's D1 to D5."""
OWN = "family"


def drawn_distributions(found: Measured, settings: FamilySettings) -> np.ndarray:
    """(draws, points): random distributions, always the same ones."""
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    return random_distributions(len(found.distribution), settings.draws, rng, settings.concentration)


def under_distributions(found: Measured, drawn: np.ndarray, settings: FamilySettings, stem: str, what: str) -> Analysis:
    """What methods reach under the family's own distribution and the first of the random ones, and who is ahead there.

    Args:
        found: the family.
        drawn: random distributions over its points.
        settings: which scores are good, and how the distributions were drawn.
        stem: how the names of files begin.
        what: what a reader calls the family.
    """
    named = {OWN: found.distribution} | {f"D{place + 1}": p for place, p in enumerate(drawn[:NAMED])}
    rows = []
    overall = {name: found.overall_under(p) for name, p in named.items()}
    for method in found.methods:
        row: dict[str, object] = {"agent": method}
        for name, of_methods in overall.items():
            row |= with_interval((name,), {"": pd.Series(of_methods[method])}, lambda means: means)
        rows.append(row)
    table = pd.DataFrame(rows)
    sign = -1 if settings.higher_is_better else 1
    table = table.iloc[np.argsort(sign * table[OWN].to_numpy(), kind="stable")].reset_index(drop=True)
    note = (
        f"Σ s_i p_i with the family's own p and with random ones, the first of the {settings.draws:,} that the rank "
        f"columns count (Dirichlet, concentration {settings.concentration:g}, seed {BOOTSTRAP_SEED}). The paper does "
        "not say how its D1 to D5 were drawn; a concentration below 1 makes them more uneven."
    )
    caption = f"Overall performance under the family's own distribution and random ones, {what}"
    drawing = Drawing(f"{stem}-distributions", caption, partial(figures.distributions, table, list(named)))
    title = f"Other distributions over the family of {what}"
    return Analysis(f"{stem}-distributions", title, table, _orders(table, found, drawn, settings), note, [drawing])


def _orders(table: pd.DataFrame, found: Measured, drawn: np.ndarray, settings: FamilySettings) -> list[str]:
    """Under which of the named distributions, and how many of all, methods are in another order than the family's."""
    if len(table) < 2:
        return []
    own = ranks_of(table[OWN], settings.higher_is_better)
    names = [name for name in table if str(name).startswith("D") and not str(name).endswith(("_low", "_high"))]
    others = [name for name in names if (ranks_of(table[name], settings.higher_is_better) != own).any()]
    means = signed(found, settings)
    order = np.argsort(-(means @ found.distribution), kind="stable")
    share = float(100 * (np.diff((drawn @ means.T)[:, order], axis=1) > 0).any(1).mean())
    told = (
        f"Under {joined_names(others)} methods are in another order" if others else "Under none of them another order"
    )
    return [f"{told} than the family's {joined_names(list(table['agent']))}; of all drawn, under {share:.1f} %."]
