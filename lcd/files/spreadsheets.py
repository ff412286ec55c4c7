"""Tables as CSV that a spreadsheet may open: a name cannot become a formula."""

import contextlib

import pandas as pd

FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""What a spreadsheet takes for the beginning of a formula, in either width."""
HARMLESS = "'"
"""What a spreadsheet takes for the beginning of a text."""


def csv_text(table: pd.DataFrame) -> str:
    """A table as CSV, where texts and column names that begin like a formula begin with an apostrophe."""
    safe = table.rename(columns=_safe)
    for place, kind in enumerate(table.dtypes):
        if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind)):
            safe.isetitem(place, table.iloc[:, place].map(_safe))
    return safe.to_csv(index=False, lineterminator="\n")


def _safe(cell: object) -> object:
    if not isinstance(cell, str) or not cell.lstrip().startswith(FORMULA):
        return cell
    with contextlib.suppress(ValueError):
        float(cell)
        return cell
    return HARMLESS + cell
