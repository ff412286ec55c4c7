"""A diagnosis' parts as plain data that strict JSON can hold, and back."""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from lcd.scores.contrasts import FORMULAS, Contrast


def described(contrast: Contrast) -> dict[str, Any]:
    """A contrast as plain data: its formulas are named."""
    entries = {entry.name: getattr(contrast, entry.name) for entry in fields(contrast)}
    return entries | {"formulas": {name: formula.words for name, formula in contrast.formulas.items()}}


def undescribed(entries: Mapping[str, Any]) -> Contrast:
    """The contrast that `described` described, for showing what was asked: its formulas are words alone."""
    formulas = {
        name: replace(FORMULAS.get(name, FORMULAS["gain"]), words=words) for name, words in entries["formulas"].items()
    }
    return Contrast(**{**entries, "variants": tuple(entries["variants"]), "formulas": formulas})


def strict(value: Any) -> Any:
    """Nested content that strict JSON can hold."""
    if isinstance(value, Mapping):
        return {key: strict(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [strict(each) for each in value]
    return value if isinstance(value, bool | None) else plain(value)


def plain(value: Any) -> str | float | None:
    """A value that strict JSON can hold."""
    if isinstance(value, str):
        return value
    value = float(value)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
