"""The benchmark `bsuite`: tasks of DeepMind's Behaviour Suite, each of which asks one thing of an agent.

They observe short vectors, so that there is nothing to see and no φ: `state` is their only view. Most returns of a
random agent and of the best one follow from the rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

import gymnasium

from lcd.envs.benchmarks import check_task
from lcd.envs.dm_environments import DmEnvironment
from lcd.envs.errors import InputError, nearest
from lcd.envs.viewed_benchmark import SingleBenchmark

UNKNOWN = math.nan


@dataclass(frozen=True)
class Task:
    """A task of the suite.

    Attributes:
        made_by: what makes it, in the package.
        asks: what of an agent.
        settings: what it is made with unless knobs say otherwise.
        returns: from all settings to the mean return of a random agent, and of the best one.
    """

    made_by: str
    asks: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    returns: Callable[[Mapping[str, Any]], tuple[float, float]] = lambda settings: (UNKNOWN, UNKNOWN)


def _catch(settings: Mapping[str, Any]) -> tuple[float, float]:
    """Wherever the paddle is, the ball is there in one of so many columns."""
    columns, rows = settings.get("columns", 5), settings.get("rows", 10)
    farthest = max(columns // 2, columns - 1 - columns // 2)
    return 2 / columns - 1, 1.0 if rows - 1 >= farthest else UNKNOWN


def _deep_sea(settings: Mapping[str, Any]) -> tuple[float, float]:
    """Of its moves to the right each costs, and only going right all the way is paid."""
    size, cost = settings["size"], settings.get("unscaled_move_cost", 0.01)
    if settings.get("deterministic", True):
        return 2.0**-size - cost / 2, 1 - cost
    # A move to the right fails once in `size` times; who has failed saves the cost of going on.
    goes = 1 - 1 / size
    tries = sum(goes**step for step in range(size))
    return (goes / 2) ** (size - 1) / 2 - cost / 2, goes ** (size - 1) - cost * tries / size


SUITE: Mapping[str, Task] = {
    "bsuite/bandit": Task(
        "bandit:SimpleBandit", "finding the best of eleven arms", {"mapping_seed": 0}, lambda settings: (0.5, 1.0)
    ),
    "bsuite/catch": Task("catch:Catch", "credit over ten steps: a ball falls, a paddle catches", {}, _catch),
    "bsuite/deep_sea": Task(
        "deep_sea:DeepSea", "exploration that does not give up", {"size": 10, "mapping_seed": 42}, _deep_sea
    ),
    "bsuite/deep_sea_stochastic": Task(
        "deep_sea:DeepSea",
        "exploration that does not give up, under chance",
        {"size": 10, "mapping_seed": 42, "deterministic": False},
        _deep_sea,
    ),
    # Four ways are paid 1, the fifth 1.1; the first step chooses.
    "bsuite/discounting_chain": Task(
        "discounting_chain:DiscountingChain", "patience", {"mapping_seed": 4}, lambda settings: (5.1 / 5, 1.1)
    ),
    "bsuite/memory_len": Task(
        "memory_chain:MemoryChain", "remembering for long", {"memory_length": 10}, lambda settings: (0.0, 1.0)
    ),
    "bsuite/memory_size": Task(
        "memory_chain:MemoryChain", "remembering much", {"memory_length": 2, "num_bits": 5}, lambda settings: (0.0, 1.0)
    ),
    # All that is paid on the way is chance.
    "bsuite/umbrella_length": Task(
        "umbrella_chain:UmbrellaChain",
        "credit for the first step, over chance",
        {"chain_length": 20, "n_distractor": 20},
        lambda settings: (0.0, 1.0),
    ),
    "bsuite/umbrella_distract": Task(
        "umbrella_chain:UmbrellaChain",
        "credit for the first step, among things that do not matter",
        {"chain_length": 20, "n_distractor": 100},
        lambda settings: (0.0, 1.0),
    ),
    "bsuite/cartpole": Task("cartpole:Cartpole", "balance"),
    "bsuite/cartpole_swingup": Task("cartpole_swingup:CartpoleSwingup", "swinging up although moving costs"),
    "bsuite/mountain_car": Task("mountain_car:MountainCar", "gathering momentum"),
}


class BehaviourSuite(SingleBenchmark):
    """Tasks of the Behaviour Suite, one setting of each; its other settings are knobs."""

    name = "bsuite"
    tasks: Sequence[str] = tuple(SUITE)
    needs = (("bsuite", "dm_env"), "bsuite")
    of_engine = True
    about: Mapping[str, str] = {name: f"asks for {task.asks}" for name, task in SUITE.items()}

    @property
    def r_min(self) -> Mapping[str, float]:
        """A random agent's mean return, where the rules tell it."""
        return {task: self.reward_range(task, 0)[0] for task in self.tasks}

    @property
    def r_max(self) -> Mapping[str, float]:
        """The best mean return, where the rules tell it."""
        return {task: self.reward_range(task, 0)[1] for task in self.tasks}

    def reward_range(self, task: str, seed: int, **knobs: Any) -> tuple[float, float]:
        """R_min and R_max of a task under some knobs, NaN where nobody knows them."""
        check_task(self, task)
        return SUITE[task].returns({**SUITE[task].settings, **knobs})

    def single(self, task: str, knobs: Mapping[str, Any]) -> gymnasium.Env:
        """One copy; what its chance is made of is its seed's."""
        return DmEnvironment(partial(_made, task, dict(knobs)))


def _made(task: str, knobs: Mapping[str, Any], seed: int) -> Any:
    where, _, kind = SUITE[task].made_by.partition(":")
    # One task has its class beside its settings.
    package = "bsuite.experiments.cartpole_swingup" if where == "cartpole_swingup" else "bsuite.environments"
    make = getattr(import_module(f"{package}.{where}"), kind)
    takes = [name for name in signature(make).parameters if name != "seed"]
    for knob in knobs:
        if knob not in takes:
            raise InputError(f"{task} has no knob '{knob}'; {nearest(knob, takes)}")
    seeded = {"seed": seed} if "seed" in signature(make).parameters else {}
    return make(**{**SUITE[task].settings, **knobs, **seeded})


BSUITE = BehaviourSuite()
"""The Behaviour Suite: small tasks that each ask one thing, as states (the extra `bsuite`)."""
