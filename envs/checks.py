"""Checks of a user's numbers that every environment's knobs share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from lcd.envs.errors import InputError, nearest


def is_number(value: Any) -> bool:
    """Is it a real number (and no truth value)?"""
    return isinstance(value, Real) and not isinstance(value, bool)


def whole_number(name: str, value: Any, least: int) -> None:
    """Refuse a value that is no whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} is {value!r}, but it must be a whole number of at least {least}.")


def whole(knobs: Any, name: str, least: int) -> None:
    """Refuse a knob that is no whole number of at least `least`."""
    whole_number(name, getattr(knobs, name), least)


def share(knobs: Any, name: str) -> None:
    """Refuse a knob that is no number from 0 to 1."""
    value = getattr(knobs, name)
    if not is_number(value) or not 0 <= value <= 1:
        raise InputError(f"{name} is {value!r}, but it must be a number from 0 to 1.")


def part(share_of: float, whole_of: int) -> int:
    """The floor of a share of a count, where 0.29 of 100 is 29 whatever the binary fraction says."""
    return math.floor(share_of * whole_of + 1e-9)


def one_of(key: str, value: Any, options: Sequence[str]) -> None:
    """Refuse a value that is none of its options."""
    if value not in options:
        raise InputError(f"{key} is {value!r}, which is none of its values; {nearest(value, options)}")


def seed_list(seed: int | Sequence[int]) -> list[int]:
    """The seeds of a population from one seed or several."""
    seeds = [seed] if isinstance(seed, Integral) else list(seed)
    if not seeds:
        raise InputError("seed is an empty sequence, but a population has at least one seed.")
    for number in seeds:
        whole_number("seed", number, 0)
    return [int(number) for number in seeds]


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
