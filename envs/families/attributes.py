"""Anybody's environment as a point of a family: features of its context are attributes of the environment object."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from lcd.envs.checks import is_number
from lcd.envs.engines import SeededCopies, seeds_of_copies
from lcd.envs.errors import InputError, nearest
from lcd.envs.families import cartpole, mountain_car, pendulum
from lcd.envs.families.features import Feature

PREFIX = "families/gym:"

DERIVED: dict[str, dict[str, Callable[[Any], float]]] = {
    "CartPoleEnv": {
        "total_mass": lambda env: env.masspole + env.masscart,
        "polemass_length": lambda env: env.masspole * env.length,
    },
}
"""Class of an environment → attributes that its constructor computes of others, and that are to follow those."""

PHYSICS: dict[str, dict[str, Feature]] = {
    "CartPoleEnv": {feature.name: feature for feature in cartpole.FEATURES},
    "PendulumEnv": dict(zip(("m", "l", "g"), pendulum.FEATURES, strict=True)),  # mass, length, gravity
    "Continuous_MountainCarEnv": {feature.name: feature for feature in mountain_car.FEATURES},
}
"""Class of an environment → attributes whose physics our own simulation of it knows: what values they may have."""

NOT_PHYSICS = (gymnasium.Space, EnvSpec)
"""Objects of an environment whose numbers only say what it is like: another value changes nothing that it does."""


def environment_of(task: str) -> str | None:
    """The id of the environment that a task is made of; None where it is one of ours."""
    return task.removeprefix(PREFIX) if task.startswith(PREFIX) else None


def is_well_formed(task: str) -> bool:
    """Does a task name an environment, and no module to import it from?"""
    name = environment_of(task)
    return bool(name) and ":" not in str(name)


def check(task: str, values: Mapping[str, Any]) -> None:
    """Refuse an environment that there is not, attributes that it does not have, and values that are no numbers."""
    numbers, physics = _numbers_of(_known(task)), PHYSICS.get(_class_of(_known(task)), {})
    for name, value in values.items():
        if name not in numbers:
            raise InputError(f"{environment_of(task)} has no number called '{name}'; {nearest(name, numbers)}")
        if not is_number(value) or not math.isfinite(value):
            raise InputError(f"{name} is {value!r}, but it must be a finite number.")
        if name in physics:
            replace(physics[name], name=name).checked(value)


def _known(task: str) -> str:
    name = environment_of(task)
    if name is None or ":" in name:
        raise InputError(f"task={task} must name an environment that is registered, without a module to import.")
    if name not in gymnasium.registry:
        raise InputError(f"Gymnasium has no environment '{name}'; {nearest(name, gymnasium.registry)}")
    return name


def numbers_of(task: str) -> Mapping[str, float]:
    """What a task's environment has where nobody says anything: attribute → number."""
    return _numbers_of(_known(task))


def _class_of(name: str) -> str:
    """What the class of an environment is called, as Gymnasium's registry says it."""
    return str(gymnasium.spec(name).entry_point).rpartition(":")[2]


@lru_cache(maxsize=64)
def _numbers_of(name: str) -> Mapping[str, float]:
    """The attributes of an environment that are numbers; those of its public objects are called `object.attribute`."""
    try:
        env = gymnasium.make(name, disable_env_checker=True)
    except Exception as why:  # Gymnasium registers environments of packages that need not be there.
        told = str(why).split("\n")[0].rstrip(".")
        raise InputError(f"The environment '{name}' cannot be made here ({type(why).__name__}: {told}).") from why
    try:
        inside = env.unwrapped
        own = {key: float(value) for key, value in _public(inside) if is_number(value)}
        nested = {
            f"{key}.{inner}": float(number)
            for key, value in _public(inside)
            if not isinstance(value, (type, *NOT_PHYSICS)) and not callable(value)
            for inner, number in _fields(value).items()
            if not inner.startswith("_") and is_number(number)
        }
        return own | nested
    finally:
        env.close()


def _fields(thing: Any) -> dict[str, Any]:
    """What an object holds by name; nothing where it is a plain value."""
    try:
        return vars(thing)
    except TypeError:
        return {}


def _public(thing: Any) -> Iterator[tuple[str, Any]]:
    """An object's own attributes, and its classes' plain ones; no property is asked, for that runs code."""
    seen = {**{k: v for kind in reversed(type(thing).__mro__) for k, v in vars(kind).items()}, **vars(thing)}
    return ((key, value) for key, value in seen.items() if not key.startswith("_"))


def _changed(name: str, values: Mapping[str, float]) -> gymnasium.Env:
    env = gymnasium.make(name, disable_env_checker=True)
    inside: Any = env.unwrapped
    for key, value in values.items():
        holder, _, attribute = key.rpartition(".")
        setattr(getattr(inside, holder) if holder else inside, attribute, value)
    for key, compute in DERIVED.get(type(inside).__name__, {}).items():
        if key not in values:
            setattr(inside, key, compute(inside))
    return env


def make(task: str, points: Sequence[Mapping[str, float]], seeds: Sequence[int], copies: int, split: str) -> Any:
    """Copies of each seed of each point, stepped one after the other: points first, then seeds, then copies."""
    for point in points:
        check(task, point)
    name = _known(task)
    of_seeds = seeds_of_copies(seeds, copies, split)
    makers = [partial(_changed, name, dict(point)) for point in points for _ in of_seeds]
    env = SeededCopies(makers, of_seeds * len(points))
    env.num_seeds = len(points) * len(seeds)
    return env
