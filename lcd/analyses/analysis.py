"""What every analysis gives: a table, what it says, and how it was made."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

ENDS = ("_low", "_high")


@dataclass(frozen=True)
class Analysis:
    """One analysis of a study.

    Attributes:
        key: names its table's files and its figure.
        title: what a reader calls it.
        table: one row an outcome; a column with `_low` and `_high` beside it has an interval.
        says: its outcome in sentences.
        note: how it was computed.
    """

    key: str
    title: str
    table: pd.DataFrame
    says: Sequence[str] = ()
    note: str = ""

    def columns(self) -> list[str]:
        """The columns of the table, without those that are another's bounds."""
        return shown_columns(self.table)


def shown_columns(table: pd.DataFrame) -> list[str]:
    """Columns that are not the bounds of another one."""
    bounds = {name + end for name in table.columns for end in ENDS}
    return [name for name in table.columns if name not in bounds]


def cell_text(row: pd.Series, name: str, digits: int = 2) -> str:
    """A cell as a reader reads it: a text, a number, or a number with its interval."""
    value = row[name]
    if isinstance(value, str) or value is None:
        return value or "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    number = _number(name, value, digits)
    low, high = (row.get(name + end) for end in ENDS)
    if low is None or not np.isfinite([low, high]).all():
        return number
    return f"{number} [{_number(name, low, digits)}, {_number(name, high, digits)}]"


def _number(name: str, value: float, digits: int) -> str:
    if not np.isfinite(value):
        return "–"
    if name.endswith("%"):
        return f"{value:.1f}".replace("-", "−")
    if name in ("n", "seeds", "tasks", "step"):
        return f"{value:.0f}"
    if name == "p" or name.startswith("p ("):
        return "< 0.001" if value < 0.001 else f"{value:.3f}"
    return f"{round(float(value), digits) + 0.0:.{digits}f}".replace("-", "−")


def joined_names(names: Sequence[str]) -> str:
    """Names as they are listed in a sentence."""
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "none"
