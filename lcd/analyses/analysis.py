"""What an analysis is made from, and what every one gives: a table, what it says, its figures, how it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lcd.curves.reading import kept
from lcd.scores.hard import HardFrom

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lcd.analyses.grids import Grid
    from lcd.scores.diagnosis import Diagnosis

ENDS = ("_low", "_high")


@dataclass(frozen=True)
class Evidence:
    """What an analysis may look at.

    Attributes:
        diagnosis: of the study, with its curves where they are known.
        threshold: from where on a scaled score counts as hard.
        chosen: task to agent and front-end that an earlier diagnosis recommends; see `lcd.analyses.adaptive`.
        shared_seeds: whether that diagnosis was made from the same seeds.
        grid: what the study asked of its grid, where it has one.
        read: all curves as they were read, for what needs no ranges.
        made: the analyses that come before this one.
    """

    diagnosis: Diagnosis
    threshold: HardFrom = field(default_factory=HardFrom)
    chosen: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    shared_seeds: bool = False
    grid: Grid | None = None
    read: pd.DataFrame = field(default_factory=pd.DataFrame)
    made: Sequence[Analysis] = ()

    @property
    def curves(self) -> pd.DataFrame:
        """The curves of tasks whose range is known, with the column `normalised`; empty where only scores are known."""
        curves = self.diagnosis.curves
        return kept(curves, curves["normalised"].notna()) if len(curves) else curves


@dataclass(frozen=True)
class Drawing:
    """A figure of an analysis, drawn only where a page is written.

    Attributes:
        name: names its files.
        caption: what it shows, for a reader who cannot see it.
        draw: makes the figure; it gets whether the page is narrow, as on a telephone.
    """

    name: str
    caption: str
    draw: Callable[[bool], Figure]


@dataclass(frozen=True)
class Analysis:
    """One analysis of a study.

    Attributes:
        key: names its table's files.
        title: what a reader calls it.
        table: one row an outcome; a column with `_low` and `_high` beside it has an interval.
        says: its outcome in sentences.
        note: how it was computed.
        figures: what draws it.
        files: further tables that are only kept as files, by name.
        made_by: the name under which it was asked for (`lcd list analyses`); `analyse` sets it.
    """

    key: str
    title: str
    table: pd.DataFrame
    says: Sequence[str] = ()
    note: str = ""
    figures: Sequence[Drawing] = ()
    files: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    made_by: str = ""

    def columns(self) -> list[str]:
        """The columns of the table, without those that are another's bounds, and a task that the title names."""
        tasks = set(self.table["task"]) if "task" in self.table else set()
        named = len(tasks) == 1 and str(*tasks) in self.title
        return [name for name in shown_columns(self.table) if not (named and name == "task")]


def shown_columns(table: pd.DataFrame) -> list[str]:
    """Columns that are not the bounds of another one."""
    bounds = {name + end for name in table.columns for end in ENDS}
    return [name for name in table.columns if name not in bounds]


def cell_text(row: pd.Series, name: str, digits: int = 2, bounds: bool = True) -> str:
    """A cell as a reader reads it: a text, a number, or a number with its interval."""
    value = row[name]
    if isinstance(value, str) or value is None:
        return value or "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    number = _number(name, value, digits)
    low, high = (row.get(name + end) for end in ENDS)
    if not bounds or low is None or not np.isfinite([low, high]).all():
        return number
    return f"{number} [{_number(name, low, digits)}, {_number(name, high, digits)}]"


def ends_text(row: pd.Series, name: str, digits: int = 2) -> str:
    """A cell's interval, which `cell_text` may leave out; empty where it has none."""
    low, high = (row.get(name + end) for end in ENDS)
    if low is None or not np.isfinite([low, high]).all():
        return ""
    return f"{_number(name, low, digits)} to {_number(name, high, digits)}"


def _number(name: str, value: float, digits: int) -> str:
    if not np.isfinite(value):
        return "–"
    if name.endswith("%"):
        return f"{value:.1f}".replace("-", "−")
    if name in ("n", "N", "seeds", "settings", "tasks", "step"):
        return f"{value:,.0f}"
    if name == "p" or name.startswith("p ("):
        return "< 0.001" if value < 0.001 else f"{value:.3f}"
    return f"{round(float(value), digits) + 0.0:.{digits}f}".replace("-", "−")


def joined_names(names: Sequence[str]) -> str:
    """Names as they are listed in a sentence."""
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "none"
