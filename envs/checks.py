"""Checks of a user's numbers that every environment's knobs share."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from lcd.envs.errors import InputError


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
