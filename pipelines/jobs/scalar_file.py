"""A run's `train.csv`: what its updates told, a row a seed, up to where its checkpoint stands.

Rows are written just before the checkpoint that relies on them, so that a start finds all up to its step, and drops
what a killed one wrote beyond it: the same rows come again. Nothing is computed from this file.
"""

from __future__ import annotations

import csv
import io
import math
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lcd.agents.scalars import by_member, machine
from lcd.files.atomic import write_atomic
from lcd.files.reading import Unreadable, read_bytes
from lcd.pipelines.kinds.kind import MACHINE, NAMED, TRAIN_FILE
from lcd.pipelines.study.configs import RunConfig, task_name
from lcd.pipelines.study.hands import require
from lcd.pipelines.study.members import members_of, points_of, trained_by

LEADING = (*NAMED, *MACHINE, "episodes", "return_mean", "length_mean")
Row = Mapping[str, Any]


class ScalarFile:
    """The file: rows are appended, and a column is added where a row has one that is new.

    Args:
        path: where it is; made with its first rows.
    """

    def __init__(self, path: Path):
        self.path = path
        self.columns: list[str] = list(LEADING)

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows and see them onto the disk."""
        if not rows:
            return
        require(self.path.parent)
        new = list(dict.fromkeys(name for row in rows for name in row if name not in self.columns))
        if new or not self.path.exists():
            earlier = self._read() if self.path.exists() else []
            self.columns += new
            write_atomic(self.path, self._text([*earlier, *rows], header=True))
            return
        with self.path.open("a", newline="") as file:
            file.write(self._text(rows))
            file.flush()
            os.fsync(file.fileno())

    def keep(self, wanted: Callable[[Mapping[str, str]], bool]) -> list[dict[str, str]]:
        """Drop rows that are not wanted, and a half-written last line; returns those that stay."""
        if not os.path.lexists(self.path):
            return []
        try:
            rows = [row for row in self._read() if wanted(row)]
        except (Unreadable, csv.Error, KeyError, TypeError, ValueError):
            warnings.warn(f"{self.path.name} of run {self.path.parent.name} is unreadable: begun anew.", stacklevel=2)
            rows, self.columns = [], list(LEADING)
        if rows:
            write_atomic(self.path, self._text(rows, header=True))
        else:
            self.path.unlink(missing_ok=True)
            self.columns = list(LEADING)
        return rows

    def _read(self) -> list[dict[str, str]]:
        text = read_bytes(self.path).decode()
        reader = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))
        rows = list(reader)
        found = list(reader.fieldnames or LEADING)
        if found[: len(LEADING)] != list(LEADING) or any(None in row or None in row.values() for row in rows):
            raise ValueError(f"{TRAIN_FILE} has other columns")
        self.columns = found
        return rows

    def _text(self, rows: Sequence[Row], header: bool = False) -> str:
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, restval="", lineterminator="\n")
        if header:
            writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()


class ScalarLog:
    """Makes rows of what the members of a run tell: one a seed, the mean over its points where it has several.

    Args:
        run_config: the run's, or of a member that is trained alone that one's.
        file: where they are kept.
    """

    def __init__(self, run_config: RunConfig, file: ScalarFile):
        self.file, self.seeds = file, list(run_config["seeds"])
        self.members = members_of(run_config)
        alone = len(points_of(run_config)) == 1
        self.trained_on = trained_by(run_config, self.members[0]) if alone else task_name(run_config)
        self.pending: list[dict[str, Any]] = []
        self._last: tuple[float, int] | None = None

    def begin(self, step: int) -> None:
        """Start the clock of what a start of the run trains."""
        self._last = time.perf_counter(), step

    def add(
        self,
        scalars: Mapping[str, Any],
        episodes: np.ndarray,
        step: int,
        wall_s: float,
        stage: str = "",
        device: torch.device | None = None,
    ) -> None:
        """Make the rows of one step.

        Args:
            scalars: what the agent tells, each of all members or one number.
            episodes: owner (a member's number), return and length of those that ended since the last row.
            step: environment steps of a seed.
            wall_s: seconds that the run has taken.
            stage: of a curriculum.
            device: where the networks are.
        """
        now = time.perf_counter()
        shared: dict[str, Any] = {"trained_on": self.trained_on, "stage": stage, "step": step}
        shared |= {"wall_s": round(wall_s, 3)} | {name: _short(value) for name, value in machine(device).items()}
        if self._last is not None and now > self._last[0]:
            rate = (step - self._last[1]) * len(self.members) / (now - self._last[0])
            shared["steps_per_s"] = _short(rate)
        self._last = now, step
        of_seed = {name: self._by_seed(value) for name, value in by_member(scalars, len(self.members)).items()}
        owner = episodes[:, 0].astype(int) % len(self.seeds)
        for number, seed in enumerate(self.seeds):
            own = episodes[owner == number]
            told: dict[str, Any] = {"episodes": len(own)}
            if len(own):
                told |= {"return_mean": _short(own[:, 1].mean()), "length_mean": _short(own[:, 2].mean())}
            told |= {name: _short(values[number]) for name, values in of_seed.items()}
            self.pending.append({**shared, "seed": seed, **told})

    def _by_seed(self, values: np.ndarray) -> np.ndarray:
        """The mean over points, whose members come point by point, each with all seeds."""
        return values.reshape(-1, len(self.seeds)).mean(0)

    def write(self) -> list[dict[str, Any]]:
        """Append what has come since the last time; returns it."""
        rows, self.pending = self.pending, []
        self.file.append(rows)
        return rows


def _short(value: float) -> str:
    """A number as a file holds it: nine digits tell single-precision numbers apart; what is no number is empty."""
    return format(value, ".9g") if math.isfinite(value) else ""
