"""What `lcd horizon ehc` found of the benchmark's MDPs, as it is shipped in `horizons.csv`."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

FILE = "horizons.csv"


@dataclass(frozen=True)
class HorizonRow:
    """One MDP.

    Attributes:
        random_return: the exact mean return of random actions.
        optimal_return: J*.
        h: the effective horizon; NaN where GORP did not succeed within the limit.
        low: it is at least this.
        high: and at most this; NaN where nothing is known.
        digest: of the tables (`lcd.envs.tabular.files.digest`).
    """

    random_return: float
    optimal_return: float
    h: float
    low: float
    high: float
    digest: str


@cache
def rows() -> Mapping[str, HorizonRow]:
    """Task to what was found of it."""
    text = resources.files(__package__).joinpath(FILE)
    if not text.is_file():
        return {}
    lines = text.read_text(encoding="utf-8").splitlines()
    return {row["task"]: _row(row) for row in csv.DictReader(lines)}


def _row(row: Mapping[str, str]) -> HorizonRow:
    keys = ("random_return", "optimal_return", "h", "h_low", "h_high")
    random, best, h, low, high = (float(row[key]) if row[key] else math.nan for key in keys)
    return HorizonRow(random, best, h, low, high, row["digest"])
