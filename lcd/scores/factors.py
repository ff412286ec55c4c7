"""Scores in steps as a reader meets them: log₂ in tables, factors in words."""

import math
from collections.abc import Mapping
from typing import Any

BOUNDS = {"at_least": "at least ", "at_most": "at most "}


def factor_text(row: Mapping[str, Any], column: str) -> str:
    """As "×3.1 [2.2, 4.4]", "at least ×12", or a dash; an end that nothing bounds is "…".

    Args:
        row: Of a diagnosis' table.
        column: One of `lcd.scores.scoring.step_columns`.
    """
    factor, *ends = factor_and_ends(row, column)
    return f"{factor} [{ends[0]}, {ends[1]}]" if ends else factor


def factor_and_ends(row: Mapping[str, Any], column: str) -> tuple[str, ...]:
    """The same in parts: the factor, and the two ends where it has both."""
    value, low, high = (float(row[column + end]) for end in ("", "_low", "_high"))
    if math.isnan(value):
        return ("–",)
    bound = BOUNDS.get(row[f"{column}_status"])
    if bound or math.isnan(low):
        return (f"{bound or ''}×{times(value)}",)
    return f"×{times(value)}", times(low), times(high)


def times(exponent: float) -> str:
    """Two to that power with two digits, or "…" where it has no bound."""
    if not math.isfinite(exponent):
        return "…"
    factor = 2.0**exponent
    return f"{factor:,.0f}" if factor >= 10 else f"{factor:.1f}" if factor >= 1 else f"{factor:.2g}"
