"""Which of a study's runs a command is about: those that meet all of its conditions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rich.console import Console

from lcd.config.keys import show
from lcd.config.steering_schemas import STATES, ChosenRunsConfig
from lcd.envs.errors import InputError, nearest
from lcd.pipelines.steering.glance import Seen
from lcd.pipelines.study import store
from lcd.pipelines.study.hands import LEASE_VARIABLE, lease_seconds

NAMED = ("task", "view", "agent", "frontend", "shaping", "benchmark")
"""Conditions whose values are names, in which signs like * may stand for others."""
CONDITIONS = (*NAMED, "run", "state", "reward_p", "kind", "seed")


def study_of(cfg: ChosenRunsConfig) -> store.Study:
    """The study that a command names; where it names the folder of a run of it, that run is what it is about."""
    if cfg.path is None:
        raise InputError("path is missing: give a study's folder.")
    path = Path(cfg.path).expanduser()
    if path.resolve().parent.name == "runs" and (path.resolve().parents[1] / "study.yaml").is_file():
        if cfg.run is not None:
            raise InputError(f"path={path} is a run's folder, and run={show(cfg.run)} is given, too: give its study.")
        cfg.run = path.resolve().name
        path = path.resolve().parents[1]
    return store.Study(path)


def tell_of_waiting(console: Console) -> None:
    """Say why nothing happens: a hand of another machine may have a run, or be dead."""
    told = (
        f"Waiting for up to {lease_seconds():g} s ({LEASE_VARIABLE}) to see whether hands on other machines are there."
    )
    console.print(told, highlight=False, soft_wrap=True)


def counted(number: int, study: Path) -> str:
    """So many runs of a study, and the verb that goes with them."""
    return f"{number} run{'s' * (number > 1)} of {study} {'are' if number > 1 else 'is'}"


def asked(cfg: ChosenRunsConfig) -> dict[str, list[Any]]:
    """The conditions that are given, each as a list of values."""
    given = {key: getattr(cfg, key) for key in CONDITIONS if getattr(cfg, key) is not None}
    found = {key: value if isinstance(value, list) else [value] for key, value in given.items()}
    for key, values in found.items():
        if not values or not all(isinstance(value, str | int | float) for value in values):
            raise InputError(f"{key}={show(given[key])} must be a value or a list of values.")
    for state in found.get("state", ()):
        if state not in STATES:
            raise InputError(f"state={show(state)} is unknown: {nearest(str(state), STATES)}")
    return found


def chosen(seen: Sequence[Seen], cfg: ChosenRunsConfig) -> list[Seen]:
    """Those of a study's runs that meet all conditions of a command.

    Raises:
        InputError: where none meets one of them, whatever the others say.
    """
    conditions = asked(cfg)
    for key, values in conditions.items():
        for value in values if key != "state" else ():
            if not any(_meets(each, key, value) for each in seen):
                there = sorted({told for each in seen for told in _told(each, key)})
                raise InputError(f"{key}={show(value)}: no run of {cfg.path} is of it; {nearest(str(value), there)}")
    return [each for each in seen if _meets_all(each, conditions)]


def _meets_all(seen: Seen, conditions: dict[str, list[Any]]) -> bool:
    return all(any(_meets(seen, key, value) for value in values) for key, values in conditions.items())


def _meets(seen: Seen, key: str, value: Any) -> bool:
    if key == "reward_p":
        own = seen.named.get(key)
        return isinstance(own, int | float) and not isinstance(own, bool) and math.isclose(own, value)
    text = show(value)
    if key == "run":
        return bool(text) and seen.name.startswith(text)
    # A name may hold brackets itself.
    return any(told == text or (key in NAMED and fnmatchcase(told, text)) for told in _told(seen, key))


def _told(seen: Seen, key: str) -> Iterable[str]:
    """What a run is, of a condition's key."""
    if key == "run":
        return [seen.name]
    if key == "state":
        return [seen.state]
    if seen.config is None:
        return []
    if key == "kind":
        return [seen.config["kind"]]
    if key == "seed":
        return map(str, seen.config["seeds"])
    return [str(seen.named[key])] if key in seen.named else []
