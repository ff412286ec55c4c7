"""Checks of a user's numbers that every environment's knobs share."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np

from lcd.envs.errors import InputError, nearest

MOST_STEPS = 1_000_000
"""Of an episode, and of whatever lasts for a part of one: tables are as long, and solving takes a pass over each."""
MOST_TABLE_BYTES = 2**29
"""Of a table that an environment builds."""


def is_number(value: Any) -> bool:
    """Is it a real number (and no truth value) that a float can hold?"""
    if isinstance(value, Integral) and abs(int(value)) > sys.float_info.max:
        return False
    return isinstance(value, Real) and not isinstance(value, bool)


def require_whole_number(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Refuse a value that is no whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} is {value!r}, but it must be a whole number of at least {least}.")
    if most is not None and int(value) > most:
        raise InputError(f"{name} is {value!r}, but it must be a whole number of at most {most}.")


def require_whole_knob(knobs: Any, name: str, least: int, most: int | None = None) -> None:
    """Refuse a knob that is no whole number from `least` to `most`."""
    require_whole_number(name, getattr(knobs, name), least, most)


def require_fitting_table(what: str, entries: int, bytes_each: int) -> None:
    """Refuse a table that would be too large, before it is built."""
    if entries * bytes_each > MOST_TABLE_BYTES:
        raise InputError(
            f"{what}, but that makes a table of {float(min(entries * bytes_each, 10**30)):.2g} bytes, and at most "
            f"{MOST_TABLE_BYTES:,} are built: give less."
        )


def require_share(knobs: Any, name: str) -> None:
    """Refuse a knob that is no number from 0 to 1."""
    value = getattr(knobs, name)
    if not is_number(value) or not 0 <= value <= 1:
        raise InputError(f"{name} is {value!r}, but it must be a number from 0 to 1.")


def floor_of_share(share_of: float, whole_of: int) -> int:
    """The floor of a share of a count, where 0.29 of 100 is 29 whatever the binary fraction says."""
    return math.floor(share_of * whole_of + 1e-9)


def require_finite_knob(knobs: Any, name: str) -> None:
    """Refuse a knob that is no finite number."""
    value = getattr(knobs, name)
    if not is_number(value) or not math.isfinite(value):
        raise InputError(f"{name} is {value!r}, but it must be a finite number.")


def refuse_unknown_knobs(given: Mapping[str, Any], names: Iterable[str]) -> None:
    """Refuse knobs that there are not."""
    names = list(names)
    for name in given:
        if name not in names:
            raise InputError(f"There is no knob '{name}' (given as {given[name]!r}); {nearest(name, names)}")


def require_one_of(key: str, value: Any, options: Sequence[str]) -> None:
    """Refuse a value that is none of the options."""
    if value not in options:
        raise InputError(f"{key} is {value!r}, which is none of its values; {nearest(value, options)}")


def seed_list(seed: Any) -> list[int]:
    """One seed or several, checked, as a list."""
    seeds = [seed] if isinstance(seed, Integral) else list(seed)
    if not seeds:
        raise InputError("seed is an empty sequence, but a population has at least one seed.")
    for number in seeds:
        require_whole_number("seed", number, 0)
    return [int(number) for number in seeds]


def number_table(name: str, given: Any, rows: int, columns: int) -> tuple[tuple[float, ...], ...]:
    """A user's table of numbers, or a function of row and column, as nested tuples."""
    if callable(given):
        return tuple(tuple(float(given(row, column)) for column in range(columns)) for row in range(rows))
    try:
        found = tuple(tuple(float(entry) for entry in row) for row in given)
    except (TypeError, ValueError):
        found = ()
    if len(found) != rows or any(len(row) != columns for row in found):
        raise InputError(
            f"{name} must be a function, or a table of {rows} rows (states) and {columns} columns (actions)."
        )
    return found


def checked_actions(actions: Any, copies: int, options: int) -> np.ndarray:
    """The actions of all copies as int64; refused unless there is one a copy, each from 0 to `options` - 1."""
    actions = np.asarray(actions)
    if actions.shape != (copies,) or actions.dtype.kind not in "iu":
        raise InputError(
            f"actions have the shape {actions.shape} and type {actions.dtype}, but {copies} copies need "
            f"({copies},) whole numbers."
        )
    actions = actions.astype(np.int64, copy=False)
    if actions.view(np.uint64).max() >= options:
        raise InputError(
            f"actions go from {actions.min()} to {actions.max()}, but they must be from 0 to {options - 1}."
        )
    return actions


def of_kind(key: str, value: Any, kind: Any) -> Any:
    """The value as a type hint has it; only an integer may stand for a fraction, and hints that are no types take all.

    Args:
        key: what the value is called, for an error's sentence.
        value: of a user.
        kind: the hint.
    """
    options = [get_origin(option) or option for option in (get_args(kind) if _is_union(kind) else (kind,))]
    if Any in options or not all(isinstance(option, type) for option in options):
        return value
    if float in options and isinstance(value, int) and not isinstance(value, bool) and int not in options:
        return float(value)
    if not isinstance(value, tuple(options)) or (isinstance(value, bool) and bool not in options):
        names = " or ".join("null" if option is NoneType else option.__name__ for option in options)
        raise InputError(f"{key}={value} should be of type {names}.")
    return value


def _is_union(kind: Any) -> bool:
    """Whether a type hint names alternatives."""
    return get_origin(kind) in (Union, UnionType)
