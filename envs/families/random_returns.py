"""Random agents' returns at each point: measured by `python -m lcd.envs.families.random_returns`, and shipped."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from lcd.envs.families.family import Point, parse_point, point_name
from lcd.envs.families.family_tasks import TASKS, Task
from lcd.envs.families.features import checked_point
from lcd.envs.streams import Streams, seed_sequence

FILE = "ranges.csv"
COLUMNS = ("task", "point", "r_min", "standard_error", "episodes")
SEED = 0
EPISODES, SIMULATED_EPISODES = 1000, 20
"""A point's: of what is quick, and of MuJoCo's robots."""
POINTS_AT_ONCE = 24


def random_return(task: str, point: Point) -> float:
    """The mean return of random actions at a point; NaN where that is not known and would take long to measure."""
    known = _shipped().get((task, point_name(point)))
    if known is not None:
        return known
    return _measured_once(task, point_name(point)) if TASKS[task].quick else math.nan


@cache
def _shipped() -> Mapping[tuple[str, str], float]:
    lines = resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8").splitlines()
    return {(row["task"], row["point"]): float(row["r_min"]) for row in csv.DictReader(lines)}


@lru_cache(maxsize=4096)
def _measured_once(task: str, point: str) -> float:
    return float(returns(TASKS[task], [parse_point(point) or {}]).mean())


def returns(task: Task, points: Sequence[Point]) -> np.ndarray:
    """(points, episodes): returns of random actions; those of a point do not depend on which others are measured."""
    copies = EPISODES if task.quick else SIMULATED_EPISODES
    columns: dict[str, Any] = {name: np.array([point[name] for point in points]) for name in points[0]}
    env = task.environment(len(points) * copies, split="eval", seed=[SEED] * len(points), **columns)
    chance = Streams.spawn([seed_sequence(SEED, "exploration", copy) for copy in range(copies)], 1)[0]
    env.reset()
    earned, over = np.zeros(env.num_envs), np.zeros(env.num_envs, dtype=bool)
    while not over.all():
        _, rewards, terminations, truncations, _ = env.step(_actions(env.single_action_space, chance, len(points)))
        earned += np.where(over, 0.0, rewards)
        over |= terminations | truncations
    env.close()
    return earned.reshape(len(points), copies)


def _actions(space: spaces.Space, chance: Streams, points: int) -> np.ndarray:
    """Uniform actions of a point's copies, the same for each point."""
    if isinstance(space, spaces.Discrete):
        return np.tile(chance.integers(int(space.n)), points)
    assert isinstance(space, spaces.Box)
    drawn = space.low + (space.high - space.low) * chance.uniform(count=space.shape[0])
    return np.tile(drawn.astype(np.float32), (points, 1))


def names(task: str) -> list[str]:
    """The names of a task's default and of all points of its family, each once."""
    features, family = TASKS[task].environment.features, TASKS[task].family
    return list(dict.fromkeys(point_name(checked_point(features, point)) for point in (family.default, *family.points)))


def rows(task: str) -> Iterator[tuple[str, str, float, float, int]]:
    """The lines of a task: its default and all points of its family."""
    every = names(task)
    for first in range(0, len(every), POINTS_AT_ONCE):
        part = every[first : first + POINTS_AT_ONCE]
        for name, found in zip(part, returns(TASKS[task], [parse_point(name) or {} for name in part]), strict=True):
            error = found.std(ddof=1) / math.sqrt(len(found))
            yield task, name, float(found.mean()), float(error), len(found)


def main() -> None:
    """Measure all, and write the table beside this module, or to the path that is given."""
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name(FILE)
    with place.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for task in TASKS:
            table.writerows(rows(task))
            file.flush()


if __name__ == "__main__":
    main()
