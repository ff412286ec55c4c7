"""What a command names: tabular MDPs in a file, made by somebody's code, or of a benchmark's task; or a simulator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gymnasium.vector import VectorEnv

from lcd.config.own_code import OWN_CODE
from lcd.envs.benchmarks import BENCHMARKS, check_task, get_benchmark
from lcd.envs.errors import InputError, NoTables
from lcd.envs.population import make_population
from lcd.envs.protocols import Benchmark, Simulates, Tabular, offers, views_of
from lcd.envs.registry import Registry
from lcd.envs.tabular.files import load
from lcd.envs.tabular.mdp import TabularMDP

MDPS = Registry("tabular MDP", "lcd.mdps")
"""Others' MDPs: a `TabularMDP`, several in a list, or a function without arguments that makes one or the other."""
SUFFIX = ".npz"


def find(
    name: str,
    knobs: Mapping[str, Any],
    seed: int,
    horizon: int | None = None,
    sticky: float | None = None,
    copies: int = 64,
) -> list[TabularMDP] | VectorEnv:
    """The MDPs that a name stands for, or, of a task that cannot be tabulated, its environment.

    Args:
        name: the path of an `.npz` file, a registered name or module:object, or a task of a benchmark.
        knobs: of a task alone.
        seed: of a task's tables.
        horizon: another horizon; needed where a file does not say.
        sticky: another probability of repeating an action.
        copies: of the environment of a task that cannot be tabulated.

    Raises:
        InputError: where there is no such MDP, in one sentence.
    """
    if name.endswith(SUFFIX):
        _refuse_knobs(name, knobs)
        return [load(name, horizon, sticky)]
    if name in MDPS.names() or OWN_CODE.fullmatch(name):
        _refuse_knobs(name, knobs)
        made = _made(name)
        if isinstance(made, VectorEnv):
            return made
        found = made
    else:
        benchmark = _benchmark(name)
        try:
            if not offers(benchmark, Tabular):
                return _simulator(benchmark, name, knobs, seed, copies)
            found = [benchmark.tabular(name, seed, **knobs)]
        except NoTables:
            return _simulator(benchmark, name, knobs, seed, copies)
        if horizon is not None and horizon > found[0].horizon:
            raise InputError(
                f"horizon is {horizon}, but the tables of {name} are for {found[0].horizon} steps: give at most that, "
                "or the knob of that name where the task has one."
            )
    changes = {key: value for key, value in (("horizon", horizon), ("sticky", sticky)) if value is not None}
    return [mdp.changed(**changes) for mdp in found] if changes else found


def _simulator(benchmark: Benchmark, name: str, knobs: Mapping[str, Any], seed: int, copies: int) -> VectorEnv:
    """Copies of a task without tables."""
    own = benchmark.simulator(name, seed=seed, copies=copies, **knobs) if offers(benchmark, Simulates) else None
    if own is not None:
        return own
    # What a task shows does not matter here.
    view = views_of(benchmark, name)[0]
    return make_population(benchmark, name, seeds=[seed], copies=copies, view=view, split="train", **knobs)


def _refuse_knobs(name: str, knobs: Mapping[str, Any]) -> None:
    if knobs:
        raise InputError(f"knobs has '{next(iter(knobs))}', but {name} is no task of a benchmark: leave knobs out.")


def _made(name: str) -> list[TabularMDP] | VectorEnv:
    found = MDPS.resolve(name)
    if callable(found):
        _refuse_arguments(name, found)
        found = found()
    if isinstance(found, VectorEnv):
        return found
    several = list(found) if isinstance(found, list | tuple) else [found]
    if not several:
        raise InputError(f"mdp={name} gives no MDP at all: give at least one TabularMDP.")
    for each in several:
        if not isinstance(each, TabularMDP):
            raise InputError(
                f"mdp={name} gives a {type(each).__name__}, but must give a TabularMDP, or a list of them."
            )
    return several


def _refuse_arguments(name: str, made: Callable[..., Any]) -> None:
    try:
        inspect.signature(made).bind()
    except TypeError as error:
        raise InputError(f"mdp={name} cannot be called without arguments ({error}): give one that can.") from None
    except ValueError:
        # It does not say what it takes.
        return


def _benchmark(name: str) -> Benchmark:
    """The benchmark of a task."""
    head = name.partition("/")[0]
    if "/" not in name or head not in BENCHMARKS.names():
        what = "a file that does not end in .npz" if Path(name).expanduser().exists() else "nothing that is known"
        raise InputError(
            f"mdp={name} is {what}: give an .npz file, module:object, or a task such as ctgraph/ct-fo-b1 "
            "('lcd list tasks')."
        )
    benchmark = get_benchmark(head)
    check_task(benchmark, name)
    return benchmark
