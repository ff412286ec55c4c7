"""CARL's environments as points of a family, where CARL is installed: features of a context are CARL's own."""

from __future__ import annotations

import contextlib
import importlib
import io
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import gymnasium

from lcd.envs.checks import is_number
from lcd.envs.engines import SeededCopies, seeds_of_copies
from lcd.envs.errors import InputError, nearest

PREFIX = "families/carl:"
INSTALL = "pip install configspace pygame && pip install --no-deps carl-bench"


def is_well_formed(task: str) -> bool:
    """Does a task name one of CARL's environments, and no module to import it from?"""
    return task.startswith(PREFIX) and task.removeprefix(PREFIX).isidentifier()


def check(task: str, values: Mapping[str, Any]) -> None:
    """Refuse an environment that there is not, and features or values that CARL does not have."""
    usual, bounds = numbers_of(task), _context(task)[1]
    for name, value in values.items():
        if name not in usual:
            raise InputError(f"{task.removeprefix(PREFIX)} has no number called '{name}'; {nearest(name, usual)}")
        low, high = bounds[name]
        if not is_number(value) or not math.isfinite(value) or not low <= value <= high:
            raise InputError(f"{name} is {value!r}, but CARL has it from {low:g} to {high:g}, and finite.")


def numbers_of(task: str) -> Mapping[str, float]:
    """The features of CARL's context that are numbers, each with CARL's default."""
    return {name: float(value) for name, value in _context(task)[0].items() if is_number(value)}


def make(task: str, points: Sequence[Mapping[str, float]], seeds: Sequence[int], copies: int, split: str) -> Any:
    """Copies of each seed of each point, stepped one after the other: points first, then seeds, then copies."""
    for point in points:
        check(task, point)
    of_seeds = seeds_of_copies(seeds, copies, split)
    env = SeededCopies(
        [partial(_alone, task, dict(point)) for point in points for _ in of_seeds], of_seeds * len(points)
    )
    env.num_seeds = len(points) * len(seeds)
    return env


class _WithoutContext(gymnasium.ObservationWrapper):
    """What the agent sees of an environment whose observations tell the context, too: the observation alone."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space = env.base_observation_space

    def observation(self, observation: Any) -> Any:
        return observation["obs"]


def _alone(task: str, point: Mapping[str, float]) -> gymnasium.Env:
    """An environment with one context, the point; what the point does not say is CARL's default."""
    with _quietly():
        return _WithoutContext(_kind(task)(contexts={0: {**_context(task)[0], **point}}))


@lru_cache(maxsize=64)
def _context(task: str) -> tuple[dict[str, Any], dict[str, tuple[float, float]]]:
    """An environment's default context, and the least and greatest value of each feature."""
    with _quietly():
        kind = _kind(task)
        bounds = {name: _bounds(feature) for name, feature in kind.get_context_features().items()}
        return dict(kind.get_default_context()), bounds


def _bounds(feature: Any) -> tuple[float, float]:
    try:
        return float(feature.lower), float(feature.upper)
    except AttributeError:  # a choice, say
        return -math.inf, math.inf


def _kind(task: str) -> Any:
    name, found = task.removeprefix(PREFIX), _environments()
    if name not in found:
        raise InputError(f"CARL has no environment '{name}' here; {nearest(name, found)}")
    return found[name]


@lru_cache(maxsize=1)
def _environments() -> Mapping[str, Any]:
    """Name → class of CARL's environments whose engines are installed."""
    with _quietly():
        try:
            carl = importlib.import_module("carl.envs")
        except ImportError as why:
            raise InputError(f"CARL's environments cannot be made here ({why}): {INSTALL}.") from None
    return {name: getattr(carl, name) for name in carl.__all__}


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without what CARL tells of each engine that is not there, and its library of unbounded features."""
    with warnings.catch_warnings(record=True), contextlib.redirect_stdout(io.StringIO()):
        yield
