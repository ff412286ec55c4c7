"""Benchmarks: small objects that name tasks, make their environments and know their range of returns."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from lcd.envs import gym_names
from lcd.envs.errors import InputError, nearest
from lcd.envs.protocols import Benchmark, Bound, RangesByKnobs, missing, offers, views_of
from lcd.envs.registry import Registry

BENCHMARKS = Registry("benchmark", "lcd.benchmarks")
BENCHMARKS.add("toy", "lcd.envs.toy:TOY")
BENCHMARKS.add("calibration", "lcd.envs.calibration:CALIBRATION")
BENCHMARKS.add("calibration-heldout", "lcd.envs.calibration:HELD_OUT")
BENCHMARKS.add("calibration-drawn", "lcd.envs.drawn_tasks:DRAWN")
BENCHMARKS.add("calibration-ctgraph", "lcd.envs.ctgraph.known_graphs:KNOWN_GRAPHS")
BENCHMARKS.add("procgen", "lcd.envs.procgen.benchmark:PROCGEN")
BENCHMARKS.add("procgen-easy", "lcd.envs.procgen.benchmark:PROCGEN_EASY")
BENCHMARKS.add("ctgraph", "lcd.envs.ctgraph.benchmark:CTGRAPH")
BENCHMARKS.add("hardness", "lcd.envs.hardness.benchmark:HARDNESS")
BENCHMARKS.add("ehc", "lcd.envs.ehc.benchmark:EHC")
BENCHMARKS.add("families", "lcd.envs.families.benchmark:FAMILIES")
BENCHMARKS.add("traffic", "lcd.envs.traffic.benchmark:TRAFFIC")
BENCHMARKS.add("atari", "lcd.envs.atari.benchmark:ATARI")
BENCHMARKS.add("minigrid", "lcd.envs.minigrid.benchmark:MINIGRID")
BENCHMARKS.add("mujoco", "lcd.envs.bodies.benchmark:MUJOCO")
BENCHMARKS.add("bsuite", "lcd.envs.behaviour_suite:BSUITE")
BENCHMARKS.add("crafter", "lcd.envs.crafter.benchmark:CRAFTER")
BENCHMARKS.add("dm_control", "lcd.envs.bodies.benchmark:DM_CONTROL")
BENCHMARKS.add_made(gym_names.PREFIX, "lcd.envs.gym_ids:gymnasium_benchmark", gym_names.code_in)


def get_benchmark(name: str | Benchmark) -> Benchmark:
    """The benchmark called `name`: ours, an entry point's, or the object (or class) at `module:object`."""
    if not isinstance(name, str):
        return name
    found = BENCHMARKS.resolve(gym_names.canonical(name))
    if isinstance(found, type) and not issubclass(found, gymnasium.Env | VectorEnv):
        try:
            found = found()
        except TypeError as error:
            raise InputError(f"The benchmark '{name}' cannot be made without arguments ({error}): name one.") from error
    if isinstance(found, gymnasium.Env | VectorEnv | type):
        raise InputError(
            f"The benchmark '{name}' is an environment: register it with Gymnasium and give "
            "benchmark=gym:module:Id-v0, or put a benchmark around it, as 'lcd new benchmark' writes one."
        )
    if lacking := missing(found, Benchmark):
        raise InputError(f"The benchmark '{name}' has no {', '.join(lacking)}; a benchmark needs all of them.")
    return found


def registered_benchmark(name: str) -> Benchmark | None:
    """The benchmark that somebody's curves name, where it is registered here.

    A "module:object" in somebody's file would be imported, and reading curves must not run code.
    """
    if ":" in name:
        return None
    try:
        return get_benchmark(name)
    except (InputError, ImportError):
        return None


def check_task(benchmark: Benchmark, task: str) -> None:
    """Refuse a task that the benchmark does not have."""
    if task not in benchmark.tasks:
        raise InputError(f"The benchmark '{benchmark.name}' has no task '{task}'; {nearest(task, benchmark.tasks)}")


def check_view(benchmark: Benchmark, task: str, view: str) -> None:
    """Refuse a view that the task does not have: what it shows instead would be taken for it."""
    views = views_of(benchmark, task)
    if view not in views:
        raise InputError(f"view={view}: the task '{task}' has no such view; {nearest(view, views)}")


def reward_range(
    benchmark: str | Benchmark, task: str, seed: int, knobs: Mapping[str, Any] | None = None
) -> tuple[float, float]:
    """R_min (a random agent's mean return) and R_max (the best there is) of a task for one seed; NaN where unknown.

    Args:
        benchmark: the benchmark or its name. If it has a method `reward_range(task, seed, **knobs)`, that is asked.
        task: one of its tasks.
        seed: the seed whose MDP is meant, where it matters.
        knobs: what the task is made with beyond its own knobs.
    """
    benchmark = get_benchmark(benchmark)
    check_task(benchmark, task)
    if offers(benchmark, RangesByKnobs):
        low, high = benchmark.reward_range(task, seed, **(knobs or {}))
        return _known(low), _known(high)
    return _bound(benchmark, "r_min", task, seed), _bound(benchmark, "r_max", task, seed)


def _known(bound: float | None) -> float:
    return math.nan if bound is None else float(bound)


def _bound(benchmark: Benchmark, which: str, task: str, seed: int) -> float:
    bounds = getattr(benchmark, which)
    if bounds is not None and not isinstance(bounds, Mapping):
        raise InputError(f"The benchmark '{benchmark.name}' has {which} = {bounds!r}: a mapping from tasks is needed.")
    bound = (bounds or {}).get(task)
    try:
        return _known(bound(seed) if callable(bound) else bound)
    except (TypeError, ValueError):
        raise InputError(
            f"The benchmark '{benchmark.name}' has {which}['{task}'] = {bound!r}: a number is needed, or a function "
            "from the seed to one."
        ) from None


def make_copies(benchmark: Benchmark, task: str, **how: Any) -> VectorEnv:
    """What `make_vec` of a benchmark makes, if it is something that LCD can step.

    Args:
        benchmark: whose copies they are.
        task: one of its tasks.
        how: `view`, `split`, `num_envs`, `seed` and knobs.
    """
    env = benchmark.make_vec(task, **how)
    if not isinstance(env, VectorEnv):
        raise InputError(
            f"make_vec of the benchmark '{benchmark.name}' gives a {type(env).__name__} for '{task}', not a "
            "gymnasium.vector.VectorEnv: gymnasium.make_vec, or gymnasium.vector.SyncVectorEnv, makes one."
        )
    if "autoreset_mode" not in env.metadata:
        raise InputError(
            f"'{task}' of the benchmark '{benchmark.name}' does not say how its copies begin anew: give its class "
            "metadata = {'autoreset_mode': gymnasium.vector.AutoresetMode.SAME_STEP}, or the mode that it has."
        )
    if env.single_observation_space.shape is None:
        kind = type(env.single_observation_space).__name__
        raise InputError(
            f"'{task}' of the benchmark '{benchmark.name}' shows a {kind}: an agent needs an array; "
            "gymnasium.wrappers.vector.FlattenObservation makes one."
        )
    return env


class NativeBenchmark(ABC):
    """The part of a benchmark that follows from its own `tasks`, `reward_range` and `make_population`."""

    tasks: Sequence[str]

    @property
    def r_min(self) -> Mapping[str, Bound]:
        """Task -> (seed -> exact mean return of a random agent)."""
        return {task: partial(self._bound, task, 0) for task in self.tasks}

    @property
    def r_max(self) -> Mapping[str, Bound]:
        """Task -> (seed -> exact mean return of an optimal agent)."""
        return {task: partial(self._bound, task, 1) for task in self.tasks}

    @abstractmethod
    def reward_range(self, task: str, seed: int, **knobs: Any) -> tuple[float, float]:
        """R_min and R_max of a task for a seed; NaN where unknown."""

    @abstractmethod
    def make_population(
        self, task: str, *, seeds: Sequence[int], copies: int, view: str, split: str, **knobs: Any
    ) -> VectorEnv:
        """Copies of a task for several seeds, in one environment."""

    def _bound(self, task: str, which: int, seed: int) -> float:
        return self.reward_range(task, seed)[which]

    def make_vec(self, task: str, *, view: str, split: str, num_envs: int, seed: int, **knobs: Any) -> VectorEnv:
        """Copies of a task for one seed; `knobs` override the task's own."""
        return self.make_population(task, seeds=[seed], copies=num_envs, view=view, split=split, **knobs)
