"""What is asked of evaluation besides the trained tasks: refused here where a run could not be evaluated so."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from lcd.config.keys import show
from lcd.config.schema_parts import EvaluationConfig
from lcd.config.values import check_knob
from lcd.curves.names import evaluated_name
from lcd.envs.benchmarks import Benchmark, check_view, get_benchmark
from lcd.envs.checks import is_number
from lcd.envs.errors import InputError, nearest
from lcd.envs.population import make_population
from lcd.pipelines.study.configs import EvaluationEntry, RunConfig, canonical
from lcd.pipelines.study.evaluated import Evaluated, evaluated_by

CONTEXT_NAME = re.compile(r"[\w.-]+")


def evaluation_entry(given: EvaluationConfig, benchmark: Benchmark, where: str) -> EvaluationEntry:
    """What a run's config says of its evaluation, refused where it names what there is not.

    Args:
        given: The evaluation that is asked for.
        benchmark: The run's.
        where: The config key, for an error's sentence.
    """
    entry: EvaluationEntry = {"every": given.every, "copies": given.copies, "episodes": given.episodes}
    # What is not asked for is not written down, so that runs without it stay what they are.
    if given.greedy:
        entry["greedy"] = True
    if given.tasks:
        entry["tasks"] = list(given.tasks)
        for task in given.tasks:
            if task not in benchmark.tasks:
                options = nearest(task, benchmark.tasks)
                raise InputError(f"{where}.tasks: '{task}' is not in the benchmark '{benchmark.name}': {options}")
            if given.tasks.count(task) > 1:
                raise InputError(f"{where}.tasks={show(given.tasks)} names '{task}' twice: give each once.")
    if given.contexts:
        entry["contexts"] = {name: _knobs(name, knobs, where) for name, knobs in given.contexts.items()}
    return entry


def by_time_unit(steps: int, entry: EvaluationEntry, knobs: Mapping[str, Any]) -> tuple[int, EvaluationEntry]:
    """Steps, and an evaluation, of as many seconds of the task as without the knob `time_unit`, rounded down."""
    unit = knobs.get("time_unit", 1)
    if not is_number(unit) or not 0 < unit < math.inf:
        return steps, entry  # the benchmark has refused it, or will
    scaled = dict(entry, every=max(1, int(entry["every"] / unit)))
    return max(1, int(steps / unit)), cast(EvaluationEntry, scaled)


def _knobs(name: Any, knobs: Any, where: str) -> dict[str, Any]:
    """The knobs of a context."""
    if not isinstance(name, str) or not CONTEXT_NAME.fullmatch(name):
        raise InputError(f"{where}.contexts: '{name}' is no name of a context: give letters, digits, '_', '-' and '.'.")
    if not isinstance(knobs, Mapping) or not knobs:
        raise InputError(f"{where}.contexts.{name}={show(knobs)} must be a set of the task's knobs ({{delay: 4}}).")
    for knob in knobs:
        check_knob(f"{where}.contexts.{name}.{knob}", str(knob))
    return dict(knobs)


def check_spaces(run_configs: Iterable[RunConfig]) -> None:
    """Refuse to evaluate on what shows or takes something else than the trained task; it is made to be looked at."""
    known: dict[str, tuple[Any, Any]] = {}
    for run_config in run_configs:
        evaluated = evaluated_by(run_config)
        others = [each for each in evaluated if not each.trained]
        if not others:
            continue
        own = _spaces(run_config, evaluated[0], known)
        for each in others:
            if _spaces(run_config, each, known) != own:
                raise InputError(
                    f"evaluation: {evaluated_name(each.task, each.context)} has other spaces than "
                    f"{evaluated[0].task} (view {run_config['view']}): give tasks and contexts whose observations and "
                    "actions are the same."
                )


def _spaces(run_config: RunConfig, evaluated: Evaluated, known: dict[str, tuple[Any, Any]]) -> tuple[Any, Any]:
    """The observations and actions of one copy."""
    benchmark, view, seed = run_config["benchmark"], run_config["view"], run_config["seeds"][0]
    name = canonical([benchmark, view, evaluated.made, dict(evaluated.knobs)])
    if name not in known:
        what = evaluated_name(evaluated.task, evaluated.context)
        found = get_benchmark(benchmark)
        check_view(found, evaluated.made, view)
        try:
            env = make_population(
                found, evaluated.made, seeds=[seed], copies=1, view=view, split="eval", **evaluated.knobs
            )
        except TypeError as error:
            raise InputError(f"evaluation: {what} cannot be made ({error}): give knobs that the task has.") from None
        except InputError as error:
            raise InputError(f"evaluation: {what} cannot be made: {error}") from None
        known[name] = env.single_observation_space, env.single_action_space
        env.close()
    return known[name]
