"""Whether learning to see and to act together is more than the sum of both (figure 5)."""

from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, Drawing, Evidence, joined_names
from lcd.analyses.areas import cut_sentence, seed_areas, tasks_of, with_interval
from lcd.curves.reading import kept
from lcd.scores.contrasts import PERCEPTION

BASE_AGENT = "ppo"
NAMES = ("baseline", "both", "sum of parts", "synergy")


def synergies(evidence: Evidence) -> Analysis | None:
    """Is learning to see and to act together more than the sum of both?"""
    return None if evidence.curves.empty else synergy(evidence.curves)


def synergy(curves: pd.DataFrame) -> Analysis | None:
    """Both improvements at once against the sum of one at a time, in AUC over the baseline, by task.

    The baseline is the simpler agent on pixels; the improvements are the better agent, and the last of φ's views.

    Args:
        curves: curves with the column `normalised`, of front-end identity and no shaping where they have others, too.

    Returns:
        None with one agent alone.
    """
    plain = kept(curves, (curves["frontend"] == "identity") & (curves["shaping"] == "none"))
    rows, measured = [], []
    for base, better in _pairs(sorted(plain["agent"].unique())):
        for (benchmark, task), mine in tasks_of(plain):
            areas = seed_areas(
                mine,
                {
                    f"{agent} {view}": {"agent": agent, "view": view, "reward_p": 1.0}
                    for agent in (base, better)
                    for view in (PERCEPTION.baseline, PERCEPTION.variants[-1])
                },
            )
            if areas is not None:
                measured.append(areas)
                named = {"benchmark": benchmark, "task": task, "agents": f"{base}, {better}"}
                rows.append(named | with_interval(NAMES, areas, differentials))
    if not rows:
        return None
    table = pd.DataFrame(rows)
    table["helps"] = np.where(table["synergy"] > 0, "more than the sum", "no more than the sum")
    table["sure"] = np.where((table["synergy_low"] > 0) | (table["synergy_high"] < 0), "yes", "no")
    says = []
    for agents, rows_of in table.groupby("agents"):
        more = rows_of.loc[rows_of["synergy"] > 0, "task"]
        says.append(
            f"{agents}: learning to see and to act together is more than the sum of its parts on {len(more)} of "
            f"{len(rows_of)} tasks ({joined_names(more.tolist())}); "
            f"{(rows_of['sure'] == 'yes').sum()} of the outcomes are sure."
        )
    seen, solved = PERCEPTION.baseline, PERCEPTION.variants[-1]
    note = (
        f"Baseline: AUC of the simpler agent on {seen}. both = AUC(better agent, {solved}) − baseline; sum of parts = "
        f"[AUC(better agent, {seen}) − baseline] + [AUC(simpler agent, {solved}) − baseline]; synergy = both − sum."
        + cut_sentence(measured)
    )
    title = "Learning to see and to act: together, or one at a time?"
    return Analysis("synergy", title, table, says, note, [Drawing("synergy", title, partial(_draw, table))])


def _draw(table: pd.DataFrame, narrow: bool) -> Any:
    from lcd.report.analysis_figures import outcomes

    return outcomes(table, ("sum of parts", "both"), None, "AUC over the baseline", narrow)


def differentials(averages: np.ndarray) -> np.ndarray:
    """Mean AUCs (simpler agent seen, solved; better agent seen, solved) to `NAMES`."""
    base, seeing, acting, together = (averages[..., place] for place in range(4))
    both, parts = together - base, (acting - base) + (seeing - base)
    return np.stack([base, both, parts, both - parts], axis=-1)


def _pairs(agents: list[str]) -> list[tuple[str, str]]:
    if BASE_AGENT in agents:
        return [(BASE_AGENT, other) for other in agents if other != BASE_AGENT]
    return [pair for pair in permutations(agents, 2) if pair[0] < pair[1]]
