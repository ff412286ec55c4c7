"""The effective horizons of tasks: from a file that `lcd horizon` wrote, or what their benchmark knows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from lcd.envs.errors import InputError
from lcd.envs.protocols import KnownHorizons, offers
from lcd.files.reading import read_table

Span = tuple[float, float, float]
"""H, and between what it lies; NaN where nothing is known."""
LONG = 8.0
"""H from which on the Effective Horizon Challenge (2025) calls an effective horizon long."""
COLUMNS = ("H", "H_low", "H_high")
NEEDED = ("task", "h", "h_low", "h_high")


def effective_horizon(benchmark: str, task: str, given: Mapping[str, Span]) -> dict[str, float]:
    """A task's H and its bounds, NaN where nobody says."""
    found = given.get(task) or _known(benchmark, task)
    return dict(zip(COLUMNS, found, strict=True))


def _known(benchmark: str, task: str) -> Span:
    from lcd.envs.benchmarks import registered_benchmark

    found = registered_benchmark(benchmark)
    if not offers(found, KnownHorizons) or task not in found.horizons:
        return math.nan, math.nan, math.nan
    row = found.horizons[task]
    return float(row.h), float(row.low), float(row.high)


def read_horizons(path: str | Path) -> dict[str, Span]:
    """Task to H and its bounds, from a table that `lcd horizon BENCHMARK out=…` wrote, or one with its columns."""
    table = read_table(path, "horizons", NEEDED, f"a CSV file of {', '.join(NEEDED)}")
    if table["task"].duplicated().any():
        twice = table["task"][table["task"].duplicated()].iloc[0]
        raise InputError(f"horizons={path} has the task '{twice}' twice: give it once.")
    values = table[list(NEEDED[1:])].apply(pd.to_numeric, errors="coerce").to_numpy(float)
    return {
        str(task): (float(h), float(low), float(high))
        for task, (h, low, high) in zip(table["task"], values, strict=True)
    }
