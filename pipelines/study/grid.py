"""Grids: every combination of the values of some knobs, or of agents' settings, as an axis of a study."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

from lcd.config.keys import show
from lcd.config.nested import with_changes
from lcd.config.schemas import StudyConfig
from lcd.config.values import check_knob, seed_list
from lcd.envs.benchmarks import Benchmark, reward_range
from lcd.envs.errors import InputError
from lcd.envs.protocols import ChecksKnobs, NamesKnobs, offers
from lcd.scores.contrasts import KNOB, SETTING

Point = dict[str, Any]
"""Knob → value: one place of a grid."""
OF_TASKS = ("grid", "knobs", "seeds", "steps", "views", "agents", "agent_params", "seeds_per_run")
"""What a study may say of some of its tasks alone."""
MOST_AXES = 2
"""Figures have no place for more."""


def axes_of(grid: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Knob → its values, of a grid that is written as {knobs.delay: […]} or as {knobs: {delay: […]}}.

    An agents' setting is called `agent.<setting>` here, too.
    """
    axes: dict[str, list[Any]] = {}
    for key, value in grid.items():
        if f"{key}." in (KNOB, SETTING) and isinstance(value, Mapping):
            inside = {f"{key}.{name}": values for name, values in value.items()}
        elif key.startswith((KNOB, SETTING)):
            inside = {key: value}
        else:
            raise InputError(
                f"study.grid.{key} is neither a knob nor an agents' setting: give {KNOB}<knob> or {SETTING}<setting>; "
                "views, reward_p, … have their own keys."
            )
        for name, values in inside.items():
            if not isinstance(values, list) or not values:
                raise InputError(f"study.grid.{name}={show(values)} must be a list of values.")
            if name.startswith(SETTING):
                for each in values:
                    _setting_text(name, each)
            else:
                check_knob(f"study.grid.{name}", name.removeprefix(KNOB))
            axes[name.removeprefix(KNOB)] = values
    if len(axes) > MOST_AXES:
        raise InputError(f"study.grid varies {len(axes)} knobs and settings: give one or two.")
    return axes


def points_of(grid: Mapping[str, Any]) -> list[Point]:
    """Every combination of the knobs' values; of no grid the one place where nothing is varied."""
    axes = {name: values for name, values in axes_of(grid).items() if not name.startswith(SETTING)}
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def with_settings(grid: Mapping[str, Any], agents: Iterable[str]) -> list[str]:
    """The agents' names with every combination of the settings that the grid varies: `dqn[width=8]`."""
    axes = {name.removeprefix(SETTING): values for name, values in axes_of(grid).items() if name.startswith(SETTING)}
    if not axes:
        return list(agents)
    combinations = [
        ",".join(f"{name}={_setting_text(name, value)}" for name, value in zip(axes, values, strict=True))
        for values in product(*axes.values())
    ]
    return [
        f"{name[:-1]},{each}]" if name.endswith("]") else f"{name}[{each}]" for name in agents for each in combinations
    ]


def without_settings(grid: Mapping[str, Any], label: str) -> tuple[str, Point]:
    """What an agent is called without the settings that the grid varies, and their values as its name tells them."""
    varied = [name.removeprefix(SETTING) for name in axes_of(grid) if name.startswith(SETTING)]
    name, _, inside = label.removesuffix("]").partition("[")
    told = dict(each.split("=", 1) for each in inside.split(",") if each)
    point = {f"{SETTING}{key}": told.pop(key) for key in varied if key in told}
    rest = ",".join(f"{key}={value}" for key, value in told.items())
    return f"{name}[{rest}]" if rest else name, point


def _setting_text(name: str, value: Any) -> str:
    """The value of an agent's setting as the agent's name tells it."""
    text = json.dumps(value) if value is None or isinstance(value, bool) else str(value)
    if not isinstance(value, str | int | float | None) or not text or set(text) & set("[],="):
        raise InputError(
            f"study.grid.{name} has {show(value)}, but values of a setting are numbers, words, true, false and null."
        )
    return text


def placed(benchmark: Benchmark, task: str, point: Mapping[str, Any], knobs: Mapping[str, Any]) -> tuple[str, Point]:
    """A task at a point of the grid: its name, and the knobs that it is made with.

    A benchmark whose tasks' names hold knobs says so by `with_knobs(task, knobs)`.
    """
    if not offers(benchmark, NamesKnobs):
        return task, with_changes(knobs, point)
    benchmark.with_knobs(task, knobs)
    return benchmark.with_knobs(task, point), dict(knobs)


def check_points(benchmark: Benchmark, tasks: Iterable[str], points: list[Point], knobs: Mapping[str, Any]) -> None:
    """Refuse knobs that tasks do not have, where the benchmark tells."""
    if points == [{}] and not knobs and not offers(benchmark, NamesKnobs):
        return
    for task in tasks:
        for point in points:
            name, others = placed(benchmark, task, point, knobs)
            if offers(benchmark, ChecksKnobs):
                benchmark.check_knobs(name, others)
            elif name == task:
                reward_range(benchmark, name, 0, others)


@contextmanager
def named_knobs(benchmark: Benchmark, tasks: Iterable[str], knobs: Mapping[str, Any], key: str) -> Iterator[None]:
    """Where what is refused is one of some knobs, say by which key of the config it was given.

    Args:
        benchmark: the tasks'.
        tasks: all of which have the knobs.
        knobs: the knobs.
        key: what the config calls them: `study.knobs`.
    """
    try:
        yield
    except InputError as why:
        for name, value in knobs.items():
            try:
                check_points(benchmark, tasks, [{}], {name: value})
            except InputError:
                raise InputError(f"{key}.{name}={show(value)}: {why}") from None
        raise


def by_task(study: StudyConfig, tasks: list[str]) -> list[tuple[list[str], dict[str, Any]]]:
    """Tasks that the study says the same of, and what it says of them alone."""
    for name, changes in study.of.items():
        if not isinstance(changes, Mapping) or not set(changes) <= {*OF_TASKS}:
            raise InputError(f"study.of.{name}={show(changes)} must be a set of keys: {', '.join(OF_TASKS)}.")
        agents, most = changes.get("agents", {}), changes.get("seeds_per_run", 1)
        if not isinstance(agents, Mapping) or not all(isinstance(own, str) for own in agents.values()):
            raise InputError(
                f"study.of.{name}.agents={show(agents)} must say which settings agents have there: {{dqn: dqn_points}}."
            )
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise InputError(
                f"study.of.{name}.seeds_per_run={show(most)} must be null, or a whole number of at least 1."
            )
    if not study.of:
        return [(tasks, {})]
    found = []
    for task in tasks:
        # What is said of a task comes after what is said of its kind.
        mine = sorted((name for name in study.of if f"{task}/".startswith(f"{name}/")), key=len)
        found.append(([task], {key: value for name in mine for key, value in study.of[name].items()}))
    return found


def check_tests(tests: Iterable[Any]) -> None:
    """Refuse claims that lack what a test compares; see `lcd.analyses.grids.run_tests`."""
    for place, test in enumerate(tests):
        kinds = {"claim": str, "agent": str, "greater": Mapping, "less": Mapping}
        for key, kind in kinds.items():
            if not isinstance(test, Mapping) or not isinstance(test.get(key), kind):
                raise InputError(
                    f"study.tests[{place}].{key} is missing, or no {'text' if kind is str else 'set of keys'}: a test "
                    f"has {', '.join(kinds)}."
                )


def seeds_of_runs(seeds: Any, most: int | None) -> list[list[int]]:
    """A study's seeds by run: all in one, or at most so many in each.

    Args:
        seeds: As the study says them.
        most: Seeds of a run; None is all.
    """
    every = seed_list("study.seeds", seeds)
    most = most or len(every)
    return [every[first : first + most] for first in range(0, len(every), most)]


def by_turns(
    rounds: Sequence[Mapping[str, Any] | None], own_seeds: Mapping[str, int], seeds: Any
) -> Iterator[tuple[Mapping[str, Any] | None, Any]]:
    """The points of each round with the seeds that they are trained with.

    Args:
        rounds: Points by their names; None where the task alone is trained.
        own_seeds: The one seed of each point that takes turns; all others have all seeds.
        seeds: As the study says them.
    """
    for points in rounds:
        if points is None or not own_seeds:
            yield points, seeds
            continue
        for seed in (None, *dict.fromkeys(own_seeds.values())):
            if mine := {name: point for name, point in points.items() if own_seeds.get(name) == seed}:
                yield mine, seeds if seed is None else [seed]


def points_of_runs(points: Mapping[str, Any] | None, agent: str, most: int | None) -> list[dict[str, Any] | None]:
    """The points of a task's family by run: all in one, of an agent that trains one by one each in its own.

    Args:
        points: All that are trained, by their names; None where the task alone is.
        agent: The agent's name.
        most: Points of a run; None is as many as suit the agent.
    """
    if points is None:
        return [None]
    most = most or (1 if trains_one_by_one(agent) else len(points))
    names = list(points)
    return [{name: points[name] for name in names[first : first + most]} for first in range(0, len(names), most)]


def trains_one_by_one(agent: str) -> bool:
    """Whether an agent of that name trains one seed of a run after the other."""
    from lcd.agents import agents
    from lcd.agents.learner import Learner

    kind = agents.resolve(agent)
    return isinstance(kind, type) and issubclass(kind, Learner) and kind.one_by_one
