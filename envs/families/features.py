"""Features of a context: numbers that make of a task one of its point MDPs, each with the values that it may have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lcd.envs.checks import is_number, refuse_unknown_knobs
from lcd.envs.errors import InputError


@dataclass(frozen=True)
class Feature:
    """A number of a task's physics.

    Attributes:
        name: what knobs and contexts call it.
        default: its value when nobody says anything.
        low: the least value that physics, or the simulation of it, allows.
        high: the greatest one.
    """

    name: str
    default: float
    low: float
    high: float

    def checked(self, value: Any) -> float:
        """A value of this feature; refused where it is none."""
        if not is_number(value) or not math.isfinite(value) or not self.low <= value <= self.high:
            raise InputError(f"{self.name} is {value!r}, but it must be a number from {self.low:g} to {self.high:g}.")
        return float(value)


def defaults(features: Sequence[Feature]) -> dict[str, float]:
    """The point that nobody has changed."""
    return {feature.name: feature.default for feature in features}


def checked_point(features: Sequence[Feature], given: Mapping[str, Any]) -> dict[str, float]:
    """The whole point of which some features are given; wrong ones are refused."""
    refuse_unknown_knobs(given, [feature.name for feature in features])
    return {feature.name: feature.checked(given.get(feature.name, feature.default)) for feature in features}


def checked_columns(features: Sequence[Feature], given: Mapping[str, Any], groups: int) -> dict[str, np.ndarray]:
    """Each feature's value in every group of copies; given is one number for all groups, or one for each."""
    refuse_unknown_knobs(given, [feature.name for feature in features])
    columns = {}
    for feature in features:
        value = given.get(feature.name, feature.default)
        values = [value] * groups if is_number(value) or not isinstance(value, Sequence | np.ndarray) else list(value)
        if len(values) != groups or isinstance(value, str):
            raise InputError(
                f"{feature.name} is {value!r}, but it must be a number, or one for each of the {groups} seeds."
            )
        columns[feature.name] = np.array([feature.checked(one) for one in values])
    return columns
