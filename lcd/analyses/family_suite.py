"""Ranks over every choice of one point of each of several tasks, beside the paper's where it has them (table 6)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lcd.analyses.analysis import Analysis, joined_names
from lcd.analyses.family_settings import KEY, FamilySettings, ranks_of, signed
from lcd.families.measured import Measured
from lcd.families.standings import rank_shares_of_choices

PAPER = {
    "ppo": (18.75, 29.54, 27.74, 23.97),
    "trpo": (26.23, 24.99, 30.45, 18.33),
    "sac": (42.56, 29.09, 18.50, 9.85),
    "td3": (12.46, 16.38, 23.31, 47.85),
}
"""Jayawardana et al. (2022), table 6: how often (%) each method has ranks 1 to 4 on pendulum, half-cheetah and mountain
car."""
PAPER_REPORTED = ("sac", "trpo", "ppo", "td3")
"""Their order there by the default points."""
PAPER_TASKS = {
    "pendulum": r"(?<!inverted)(?<!inverted_)(?<!double)(?<!double_)pendulum(?!_five)",
    "half-cheetah": r"half_?cheetah",
    "mountain-car": r"mountain_?car",
}
"""Task of the suite → what it is called somewhere in its name, capitals and hyphens aside."""


def ranks_over_tasks(found: Sequence[Measured], settings: FamilySettings) -> Iterator[Analysis]:
    """Ranks over every choice of one point of each task, of families with the same methods and setting."""
    alike: dict[tuple, list[Measured]] = {}
    for each in found:
        alike.setdefault((frozenset(plain_methods(each)), *each.setting.values()), []).append(each)
    groups = [group for group in alike.values() if len(group) > 1 and len(group[0].methods) > 1]
    for place, group in enumerate(groups):
        table = suite_table(group, settings)
        said = []
        if is_papers([each.task for each in group], list(table["agent"])):
            table = _beside_paper(table)
            said = [f"The paper reports {joined_names(PAPER_REPORTED)} in this order by the default points."]
        count = int(np.prod([len(each.distribution) for each in group]))
        yield Analysis(
            f"{KEY}-suite" if place == 0 else f"{KEY}-suite-{place}",
            f"One point of each of {joined_names([each.task for each in group])}",
            table,
            said,
            f"How often each method has each rank by its mean score, over all {count:,} choices of one point of each "
            "task; exact. Who ties shares ranks evenly. Reported: by the default points." + _scaled(group),
        )


def suite_table(group: Sequence[Measured], settings: FamilySettings) -> pd.DataFrame:
    """A row a method: how often (%) it has each rank over all choices, and its rank by the default points.

    Args:
        group: families of the same methods, but for their settings.
        settings: which scores are good.
    """
    methods = sorted(plain_methods(group[0]))
    scores = [_on_one_scale(each, settings, methods) for each in group]
    shares = 100 * rank_shares_of_choices([points for points, _ in scores])
    rows: list[dict[str, Any]] = [
        {"agent": method} | {f"rank {rank + 1} %": share for rank, share in enumerate(mine)}
        for method, mine in zip(methods, shares, strict=True)
    ]
    table = pd.DataFrame(rows)
    reported = ranks_of(np.sum([default for _, default in scores], axis=0))
    table["reported rank"] = [f"{rank:.0f}" if np.isfinite(rank) else "" for rank in reported]
    return table


def _on_one_scale(found: Measured, settings: FamilySettings, methods: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the points (methods, points) and of the default point (methods,), the higher the better.

    Returns whose range nobody knows would count by their size, so they go from 0 to 1 over what was found.
    """
    names = plain_methods(found)
    order = [list(found.methods).index(names[method]) for method in methods]
    points = signed(found, settings)[order]
    sign = 1.0 if settings.higher_is_better else -1.0
    default = np.array([sign * np.mean(found.reported.get(names[method], [np.nan])) for method in methods])
    if found.scale == "normalised":
        return points, default
    low, width = points.min(), np.ptp(points) or 1.0
    return (points - low) / width, (default - low) / width


def _scaled(group: Sequence[Measured]) -> str:
    """Which tasks' returns were put on a scale of their own, as a sentence."""
    tasks = [each.task for each in group if each.scale != "normalised"]
    if not tasks:
        return ""
    return (
        f" Nobody knows the range of {joined_names(tasks)}: 0 is the least mean return found on its points, 1 the most."
    )


def plain_methods(found: Measured) -> dict[str, str]:
    """What methods are called without their settings → their names; with them where two would be the same."""
    plain = {method.partition("[")[0]: method for method in found.methods}
    return plain if len(plain) == len(found.methods) else {method: method for method in found.methods}


def is_papers(tasks: Sequence[str], methods: Sequence[str]) -> bool:
    """Whether these are the paper's suite and its methods."""
    named = {method.rpartition("/")[2] for method in methods}
    found = [[key for key, name in PAPER_TASKS.items() if re.search(name, plain_name(task))] for task in tasks]
    return named == set(PAPER) and sorted(found) == sorted([key] for key in PAPER_TASKS)


def _beside_paper(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the paper's shares after each of ours."""
    papers = np.array([PAPER[str(method).rpartition("/")[2]] for method in table["agent"]])
    columns: dict[str, Any] = {"agent": table["agent"]}
    for rank in range(len(PAPER)):
        columns[f"rank {rank + 1} %"] = table[f"rank {rank + 1} %"]
        columns[f"paper's rank {rank + 1} %"] = papers[:, rank]
    return pd.DataFrame({**columns, "reported rank": table["reported rank"]})


def plain_name(name: str) -> str:
    """A name in small letters without hyphens."""
    return name.lower().replace("-", "_")
