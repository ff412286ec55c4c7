"""Helpers for state that is one flat dictionary of arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lcd.envs.protocols import KeepsState, offers

State = dict[str, np.ndarray]


def nest(name: str, state: State) -> State:
    """The state of a part, under the part's name."""
    return {f"{name}/{key}": value for key, value in state.items()}


def unnest(name: str, state: State) -> State:
    """The state of the part called `name`."""
    prefix = f"{name}/"
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}


def keeps_state(envs: Iterable[Any]) -> bool:
    """Can all of these environments say where they are, which third parties' need not?"""
    return all(offers(env, KeepsState) for env in envs)
