"""A study's runs at one glance: what each is, without reading its curve.

Of ten thousand runs two small files each are read, several at the same time: on a file system of a cluster every look
at a file waits for another machine. Whether the curves are what the runs left, `lcd verify` tells.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lcd.envs.errors import InputError
from lcd.files.reading import Unreadable, read_yaml
from lcd.pipelines.kinds.kind import CURVE_FILE, Job, is_job_config, kind_of
from lcd.pipelines.study import store
from lcd.pipelines.study.cancelling import is_cancelled
from lcd.pipelines.study.configs import JobConfig, Status, condition, is_training, population
from lcd.pipelines.study.hands import is_at_work

DONE, RUNNING, WAITING, FAILED, DIVERGED, CANCELLED, DAMAGED = (
    *(store.DONE, store.RUNNING, "waiting", store.FAILED, store.DIVERGED),
    *("cancelled", "damaged"),
)
LEFT_TO_DO = (RUNNING, WAITING)
READERS = 16
"""Threads that read."""
NUMBERS = ("step", "steps", "steps_per_s", "wall_s", "threads", "updated")
LARGEST_NUMBER = 10**15
"""A stranger's status may hold any number; nobody has more steps or seconds."""


@dataclass(frozen=True)
class Seen:
    """What a folder among a study's runs looks like.

    Attributes:
        folder: its place.
        config: what the run was asked for; None where that cannot be read.
        status: what it says of itself; of a stranger's numbers those that can be meant.
        state: what a reader is told that it is, one of `lcd.config.steering_schemas.STATES`.
        why: the reason, where it failed, diverged, was cancelled or is damaged.
    """

    folder: Path
    config: JobConfig | None
    status: Status
    state: str
    why: str = ""

    @property
    def name(self) -> str:
        """Its run id."""
        return self.folder.name

    @property
    def label(self) -> str:
        """What a reader calls it."""
        try:
            return Job(self.config).label if self.config is not None else self.name
        except (TypeError, ValueError, KeyError, AttributeError, InputError):  # a stranger's config may hold anything
            return self.name

    @property
    def named(self) -> dict[str, Any]:
        """What tells it from other runs, by the keys of conditions; a run that trains nothing has fewer."""
        if self.config is None:
            return {}
        try:
            return {**condition(self.config)} if is_training(self.config) else {"benchmark": self.config["benchmark"]}
        except (TypeError, ValueError, KeyError, AttributeError):
            return {}

    @property
    def work(self) -> float:
        """Steps of all its agents together."""
        return float(self.status["steps"]) * (population(self.config) if self.config is not None else 0)

    @property
    def share(self) -> float:
        """How much of it is done, 0 to 1."""
        if self.state == DONE:
            return 1.0
        return min(1.0, self.status["step"] / self.status["steps"]) if self.status["steps"] else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Until it is done at its present rate; None where it has none."""
        rate = self.status["steps_per_s"]
        return self.work * (1 - self.share) / rate if rate > 0 and self.state == RUNNING else None


class Glance:
    """Looks at a study, again and again: what is done is not read a second time."""

    def __init__(self, study: store.Study) -> None:
        self.study = study
        self._last: dict[str, Seen] = {}

    def look(self) -> list[Seen]:
        """Every folder among the study's runs, in the order of their names."""
        folder = self.study.path / "runs"
        names = sorted(os.listdir(folder)) if folder.is_dir() else []
        left = [name for name in names if name not in self._last or self._last[name].state != DONE]
        found = {name: seen for name, seen in self._last.items() if seen.state == DONE}
        parts = [left[start::READERS] for start in range(min(READERS, len(left)))]
        with ThreadPoolExecutor(READERS) as pool:
            for seen in pool.map(self._see, parts):
                found |= seen
        self._last = {name: found[name] for name in names}
        return list(self._last.values())

    def _see(self, names: Sequence[str]) -> dict[str, Seen]:
        return {name: _see(self.study.path / "runs" / name, self._last.get(name)) for name in names}


def _see(folder: Path, before: Seen | None) -> Seen:
    config = before.config if before is not None else None
    try:
        # A run's config stays what it is: the folder is named after it.
        config = config or read_yaml(folder / "config.yaml")
        if not is_job_config(config):
            return Seen(
                folder, None, store.read_status(folder), DAMAGED, "its config.yaml is none of an installed kind"
            )
    except Unreadable as why:
        return Seen(folder, None, store.STATUS, DAMAGED, f"its config.yaml cannot be read ({why})")
    status = _believable(store.read_status(folder))
    return Seen(folder, config, status, *_state(folder, config, status))


def _believable(status: Status) -> Status:
    """A status with the numbers that can be meant."""
    return cast(Status, {**status, **{key: min(max(cast(Any, status)[key], 0), LARGEST_NUMBER) for key in NUMBERS}})


def _state(folder: Path, config: JobConfig, status: Status) -> tuple[str, str]:
    """What a run is, and why."""
    state, error = status["state"], status["error"] or "its status does not say why"
    if not status["updated"]:
        return DAMAGED, "its status.json is missing, cut off or no status: the same command trains it anew"
    if state == DONE:
        if kind_of(config).promise is None or os.path.lexists(folder / CURVE_FILE):
            return DONE, ""
        return DAMAGED, f"its {CURVE_FILE} is missing: the same command trains it anew"
    if state == RUNNING and is_at_work(folder) is not False:
        return RUNNING, ""
    if is_cancelled(folder):
        return CANCELLED, "it was cancelled"
    return (state, error) if state in (FAILED, DIVERGED) else (WAITING, "")
