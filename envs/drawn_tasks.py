"""The benchmark `calibration-drawn`: tasks that `lcd.envs.drawn` drew at random, with the hardness that it measured."""

from __future__ import annotations

import csv
import json
from importlib import resources

from lcd.envs.calibration import CalibrationBenchmark, Truth, Turned
from lcd.envs.drawn import TABLE, benchmark_of


def kept_rows() -> list[dict[str, str]]:
    """The rows of `drawn.csv`."""
    lines = resources.files(__package__).joinpath(TABLE).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(lines))


def _turned(row: dict[str, str]) -> Turned:
    truth = Truth(float(row["to_see"]), float(row["to_learn"]))
    return Turned(json.loads(row["sight"]), json.loads(row["reward"]), truth)


DRAWN: CalibrationBenchmark = benchmark_of({row["task"]: _turned(row) for row in kept_rows()})
"""Sights and rewards drawn at random, apart from each other, by a seed; how hard they are was measured."""
