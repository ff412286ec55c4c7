"""The benchmark `traffic`: signalised intersections as a family of MDPs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from gymnasium.vector import VectorEnv

from lcd.envs.benchmarks import NativeBenchmark
from lcd.envs.checks import refuse_unknown_knobs
from lcd.envs.errors import InputError
from lcd.envs.families.family import Family, Point
from lcd.envs.families.features import checked_point
from lcd.envs.traffic.intersections import FEATURES, family
from lcd.envs.traffic.network import MISSING
from lcd.envs.traffic.reference import fixed_time_delay, prepare
from lcd.envs.traffic.signal_vector import HORIZON, VIEWS, IntersectionVectorEnv, checked_horizon
from lcd.envs.traffic.simulation import FAILURE

NAME = "traffic"
TASK = f"{NAME}/intersections"
TRIAL = 600
"""Seconds of an episode that tell how long others take."""
SHOWN = ("horizon",)
"""Knobs that are no features of an intersection."""


class TrafficBenchmark(NativeBenchmark):
    """Signalised intersections: one by default, and the family of all that table 4's distribution gives."""

    name = NAME
    tasks: Sequence[str] = (TASK,)
    views: Sequence[str] = VIEWS
    about: Mapping[str, str] = {TASK: "switch a junction's signals so that vehicles wait little; a family of 250"}
    failure = ("waiting", FAILURE)

    def family(self, task: str) -> Family:
        """The intersections of the seed that ships, each weighted by how often it was drawn."""
        return family()

    def check_installed(self, task: str) -> None:
        """Refuse to simulate without SUMO, and what makes its networks."""
        if find_spec("libsumo") is None or find_spec("sumo") is None:
            raise InputError(MISSING)

    def check_knobs(self, task: str, knobs: Mapping[str, Any]) -> None:
        """Refuse what is no feature of an intersection, or cannot be simulated."""
        _point(knobs)
        checked_horizon(knobs.get("horizon", HORIZON))

    def short_episodes(self, task: str, knobs: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
        """The knobs with episodes of ten minutes at most, and how many times as long those asked for are."""
        horizon = knobs.get("horizon", HORIZON)
        short = min(horizon, TRIAL)
        return {**knobs, "horizon": short}, horizon / short

    def reward_range(self, task: str, seed: int, **knobs: Any) -> tuple[float, float]:
        """Minus the mean delay under the untuned fixed-time controller, and no delay; NaN where SUMO is not installed.

        A return that is normalised by them is therefore 1 minus the normalised delay of the paper.
        """
        self.check_knobs(task, knobs)
        if find_spec("libsumo") is None:
            return math.nan, math.nan
        delay = fixed_time_delay(_point(knobs), knobs.get("horizon", HORIZON))
        return (-delay, 0.0) if delay > 0 else (math.nan, math.nan)

    def make_population(
        self, task: str, *, seeds: Sequence[int], copies: int, view: str, split: str, **knobs: Any
    ) -> VectorEnv:
        """Copies of one intersection for several seeds, in one simulation."""
        return self.make_points(task, points=[{}], seeds=seeds, copies=copies, view=view, split=split, **knobs)

    def make_points(
        self,
        task: str,
        *,
        points: Sequence[Point],
        seeds: Sequence[int],
        copies: int,
        view: str,
        split: str,
        **knobs: Any,
    ) -> VectorEnv:
        """Copies of each seed of each intersection, in one simulation."""
        self.check_installed(task)
        wholes = [_point({**knobs, **point}) for point in points]
        columns: dict[str, Any] = {name: [point[name] for point in wholes for _ in seeds] for name in wholes[0]}
        every_seed = [seed for _ in wholes for seed in seeds]
        horizon = checked_horizon(knobs.get("horizon", HORIZON))
        if len(wholes) > 1:
            prepare(wholes, horizon)
        how: dict[str, Any] = {"view": view, "split": split, "seed": every_seed, "horizon": horizon}
        return IntersectionVectorEnv(len(every_seed) * copies, **how, **columns)


def _point(knobs: Mapping[str, Any]) -> dict[str, float]:
    """The whole intersection of which some features are among the knobs."""
    refuse_unknown_knobs(knobs, (*(feature.name for feature in FEATURES), *SHOWN))
    return checked_point(FEATURES, {name: value for name, value in knobs.items() if name not in SHOWN})


TRAFFIC = TrafficBenchmark()
"""Traffic signals: one signalised intersection, and a family of those of a city (the extra `traffic`)."""
