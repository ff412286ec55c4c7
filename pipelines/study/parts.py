"""The parts of a study: each a cross of tasks, agents, front-ends and shapings with views and reward probabilities."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, cast

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lcd.config.compose import compose
from lcd.config.keys import show
from lcd.config.nested import with_changes
from lcd.config.schemas import DiagnoseConfig, StudyConfig
from lcd.config.values import check_knob, check_probabilities
from lcd.envs.benchmarks import Benchmark, check_view
from lcd.envs.errors import InputError, nearest
from lcd.envs.protocols import has_shaping, shapings_of
from lcd.pipelines.study.configs import AgentEntry, FrontendEntry
from lcd.pipelines.study.family_written import named_by, task_of_family
from lcd.pipelines.study.grid import Point, by_task, check_points, named_knobs, points_of, with_settings
from lcd.scores.asked_contrasts import parse_contrasts
from lcd.scores.contrasts import (
    CONTEXT,
    HEADLINE,
    KNOB,
    PERCEPTION,
    REWARD,
    STAGE,
    TRAINED_ON,
    USUAL,
    Condition,
    Contrast,
    condition,
    most_solved,
    solved_view,
)

NONE = "none"
VARIED = re.compile(r"(?P<name>[^\[\]]+)\[(?P<settings>[^\[\]]+)\]")
"""An agent's name with settings of its own."""


@dataclass(frozen=True)
class Part:
    """One cross of conditions; every name in it is one that the benchmark has.

    Attributes:
        agents, frontends: their configs.
        conditions: what else differs: the view, reward p, knobs of the task.
        points: where in the grid its tasks are trained.
        knobs: those of its tasks that are the same everywhere.
        seeds, steps, seeds_per_run: as a study says them.
    """

    tasks: list[str]
    agents: list[AgentEntry]
    frontends: list[FrontendEntry]
    shapings: list[str]
    conditions: list[Condition]
    points: list[Point]
    knobs: Mapping[str, Any]
    seeds: Any
    steps: Any
    seeds_per_run: int | None

    def crossed(self) -> Iterator[dict[str, Any]]:
        """What tells its runs apart, one mapping a run; their knobs are those beside the point."""
        axes = product(self.agents, self.frontends, self.shapings, self.tasks, self.points, self.conditions)
        for agent, frontend, shaping, task, point, each in axes:
            found = {"agent": agent, "frontend": frontend, "shaping": shaping, "task": task, "point": point}
            yield found | {"knobs": with_changes(self.knobs, each.knobs), "view": each.view, "reward_p": each.reward_p}


@dataclass(frozen=True)
class _PartRequest:
    """A part as it is written; what it leaves out is the study's own."""

    tasks: list[str]
    agents: list[str]
    frontends: list[str]
    shapings: list[str]
    views: list[str]
    reward_p: list[float]
    optional: bool = False


KEYS = tuple(entry.name for entry in fields(_PartRequest))


def parts_of(cfg: DiagnoseConfig, benchmark: Benchmark) -> list[Part]:
    """The parts of the study that a config asks for, validated; those that are optional and impossible are left out."""
    study = cfg.study
    own = _PartRequest(
        tasks=_tasks_asked(study, benchmark),
        agents=[str(cfg.agent["name"])] if study.agents is None else study.agents,
        frontends=[str(cfg.frontend["name"])] if study.frontends is None else study.frontends,
        shapings=[study.shaping] if study.shapings is None else study.shapings,
        views=_usual_views(benchmark) if study.views is None else study.views,
        reward_p=[*REWARD.values] if study.reward_p is None else study.reward_p,
    )
    check_names("study.tasks", own.tasks, benchmark.tasks, benchmark.name)
    made = []
    for place, given in enumerate([{}] if study.parts is None else study.parts):
        where = "study." if study.parts is None else f"study.parts[{place}]."
        asked = _read_part(own, given, where)
        for tasks, changes in by_task(study, asked.tasks):
            own_settings = changes.get("agents", {})
            there = replace(
                asked,
                tasks=tasks,
                views=changes.get("views", asked.views),
                agents=[own_settings.get(name, name) for name in asked.agents],
            )
            alone = {key: value for key, value in changes.items() if key not in ("views", "agents")}
            part = _part(replace(cfg, study=replace(study, **alone)), benchmark, there, where)
            if part is not None:
                made.append(part)
    for contrast in parse_contrasts(study.contrasts)[len(HEADLINE) :] if made else ():
        made += _parts_of(contrast, made[0], cfg, benchmark)
    if not any(next(part.crossed(), None) for part in made):
        raise InputError(f"study={study.name} has no runs on the benchmark '{benchmark.name}': none of its parts fits.")
    return made


def _tasks_asked(study: StudyConfig, benchmark: Benchmark) -> list[str]:
    """The tasks that a study names, or that of the family that it writes; else the benchmark's."""
    if study.family is None:
        return list(benchmark.tasks) if study.tasks is None else study.tasks
    task = task_of_family(study.family)
    check_names(f"study.family.{named_by(study.family)[0]}", [task], benchmark.tasks, benchmark.name)
    if study.tasks not in (None, [task]):
        raise InputError(
            f"study.tasks={show(study.tasks)} and study.family, which is of {task}: leave one of them out."
        )
    return [task]


def _usual_views(benchmark: Benchmark) -> list[str]:
    """The views of φ that the benchmark has; where it has none, the view in which perception is out of the way."""
    return [view for view in PERCEPTION.values if view in benchmark.views] or [solved_view(benchmark)]


def _read_part(own: _PartRequest, given: Any, where: str) -> _PartRequest:
    if not isinstance(given, Mapping):
        raise InputError(f"{where[:-1]}={show(given)} must be a set of keys: {', '.join(KEYS)}.")
    for key, value in given.items():
        if key not in KEYS:
            raise InputError(f"{where}{key} is no key of a part: {nearest(str(key), KEYS)}")
        kinds = {"optional": bool, "reward_p": list}
        names = key not in kinds and not (isinstance(value, list) and all(isinstance(name, str) for name in value))
        if names or not isinstance(value, kinds.get(key, list)):
            kind = "true or false" if key == "optional" else "a list of names ([a,b])"
            raise InputError(f"{where}{key}={show(value)} must be {'a list ([1,0.5])' if key == 'reward_p' else kind}.")
    if "reward_p" in given:
        check_probabilities(f"{where}reward_p", given["reward_p"])
    return replace(own, **given)


def _part(cfg: DiagnoseConfig, benchmark: Benchmark, asked: _PartRequest, where: str) -> Part | None:
    """The part, or None where it is optional and the benchmark has no such shaping or view."""
    offered = shapings_of(benchmark)
    if asked.optional and not ({*asked.shapings} <= {*offered} and {*asked.views} <= {*benchmark.views}):
        return None
    check_names(f"{where}tasks", asked.tasks, benchmark.tasks, benchmark.name)
    check_names(f"{where}views", asked.views, benchmark.views, benchmark.name)
    for task in asked.tasks:
        for view in asked.views:
            check_view(benchmark, task, view)
    check_names(f"{where}shapings" if where != "study." else "study.shaping", asked.shapings, offered, benchmark.name)
    _refuse_twice(f"{where}agents", asked.agents)
    _refuse_twice(f"{where}frontends", asked.frontends)
    tasks, points = _tasks_shaped(benchmark, asked, where), points_of(cfg.study.grid)
    with named_knobs(benchmark, tasks, cfg.study.knobs, "study.knobs"):
        check_points(benchmark, tasks, points, cfg.study.knobs)
    return Part(
        tasks=tasks,
        agents=[_agent(cfg, name) for name in with_settings(cfg.study.grid, asked.agents)],
        frontends=[_frontend(cfg, name) for name in asked.frontends],
        shapings=list(asked.shapings),
        conditions=_conditions(benchmark, asked, where),
        points=points,
        knobs=cfg.study.knobs,
        seeds=cfg.study.seeds,
        steps=cfg.study.steps,
        seeds_per_run=cfg.study.seeds_per_run,
    )


def _conditions(benchmark: Benchmark, asked: _PartRequest, where: str) -> list[Condition]:
    """Those of φ and ψ: each view at p = 1, and the most solved of them at each smaller p."""
    thinned = sorted((p for p in asked.reward_p if p < 1), reverse=True)
    if 1 not in asked.reward_p:
        raise InputError(f"{where}reward_p={show(asked.reward_p)} must contain 1: every score compares with it.")
    solved, own = _solved(benchmark, asked.views), solved_view(benchmark)
    if thinned and own != solved and {own, *asked.views} <= {*PERCEPTION.values}:
        raise InputError(
            f"{where}reward_p={show(asked.reward_p)} needs the {own} view, so that perception is out of the way: add "
            f"{own} to {where}views, or give {where}reward_p=[1]."
        )
    every = [{"view": view, "reward_p": 1.0} for view in asked.views] + [{**USUAL, "reward_p": p} for p in thinned]
    return [condition(values, solved) for values in every]


def _solved(benchmark: Benchmark, views: Sequence[str]) -> str:
    """The view, of those that are trained, in which perception is out of the way."""
    own = solved_view(benchmark)
    return own if own in views else most_solved(views)


def _parts_of(contrast: Contrast, base: Part, cfg: DiagnoseConfig, benchmark: Benchmark) -> Iterator[Part]:
    """A part for each value of a further contrast; what it leaves open is as in the study's first part."""
    solved = _solved(benchmark, list(dict.fromkeys(each.view for each in base.conditions)))
    for each in contrast.conditions(solved):
        check_names("study.contrasts: view", [each.view], benchmark.views, benchmark.name)
        for task in base.tasks:
            check_view(benchmark, task, each.view)
        for knob in each.knobs:
            check_knob(f"study.contrasts: {KNOB}{knob}", knob)
        if each.knobs:
            check_points(benchmark, base.tasks, [{}], with_changes(base.knobs, each.knobs))
        _check_evaluated(contrast, each, cfg)
        where = dict(each.where)
        agents = [_agent(cfg, where["agent"])] if "agent" in where else base.agents[:1]
        frontends = [_frontend(cfg, where["frontend"])] if "frontend" in where else base.frontends[:1]
        shapings = [where["shaping"]] if "shaping" in where else base.shapings[:1]
        check_names("study.contrasts: shaping", shapings, shapings_of(benchmark), benchmark.name)
        yield replace(base, conditions=[each], agents=agents, frontends=frontends, shapings=shapings)


def _check_evaluated(contrast: Contrast, each: Condition, cfg: DiagnoseConfig) -> None:
    """Refuse what the study's runs are not evaluated under; a context trains nothing of its own."""
    where = dict(each.where)
    for key in (STAGE, TRAINED_ON):
        if key in where:
            raise InputError(
                f"study.contrasts: {contrast.name} compares by {key}={where[key]}, but a study trains each task by "
                "itself: train curricula with 'lcd train', and give the contrast to diagnose_curves."
            )
    contexts = cfg.study.evaluation.contexts
    if CONTEXT in where and where[CONTEXT] not in contexts:
        raise InputError(
            f"study.contrasts: {contrast.name} asks for the context '{where[CONTEXT]}', which "
            f"study.evaluation.contexts does not have: {nearest(where[CONTEXT], contexts) if contexts else 'add it.'}"
        )


def _tasks_shaped(benchmark: Benchmark, asked: _PartRequest, where: str) -> list[str]:
    """The tasks that have all of the part's shapings, where the benchmark says which do."""
    tasks = [task for task in asked.tasks if all(has_shaping(benchmark, task, name) for name in asked.shapings)]
    if not tasks and not asked.optional:
        options = [
            task for task in benchmark.tasks if all(has_shaping(benchmark, task, name) for name in asked.shapings)
        ]
        raise InputError(
            f"{where}shapings={show(asked.shapings)}: none of the study's tasks has it; {nearest('', options)}"
        )
    return tasks


def _agent(cfg: DiagnoseConfig, name: str) -> AgentEntry:
    """The config of an agent: by its name, or with settings that the name tells, `ppo[rollout=128,gamma=0.9]`."""
    varied = VARIED.fullmatch(name)
    if varied is None:
        return cast("AgentEntry", _named(cfg, "agent", name))
    settings = [setting.strip() for setting in varied["settings"].split(",")]
    told = f"study.agents: '{name}' must be an agent's name with its settings: {varied['name']}[key=value,…]."
    if any("=" not in setting or setting.partition("=")[0].strip() in ("", "name", "label") for setting in settings):
        raise InputError(told)
    try:
        merged = OmegaConf.merge(_named(cfg, "agent", varied["name"]), OmegaConf.from_dotlist(settings))
    except (OmegaConfBaseException, yaml.YAMLError, ValueError) as error:
        raise InputError(told) from error
    plain = cast("dict[str, Any]", OmegaConf.to_container(merged))
    return cast("AgentEntry", {**plain, **_changed(cfg, "agent", name), "label": name})


def _frontend(cfg: DiagnoseConfig, name: str) -> FrontendEntry:
    return cast("FrontendEntry", _named(cfg, "frontend", name))


def _named(cfg: DiagnoseConfig, group: str, name: str) -> dict[str, Any]:
    """The config of an agent or front-end by name: the study's own if it is called so, else its defaults."""
    own = getattr(cfg, group)
    if name in (str(own["name"]), "own"):
        found = own
    else:
        setting = [f"benchmark={cfg.benchmark.name}", f"budget={cfg.budget}"]
        found = getattr(compose("diagnose", [*setting, f"{group}={name}"]), group)
    return {**found, **_changed(cfg, group, name)}


def _changed(cfg: DiagnoseConfig, group: str, name: str) -> Mapping[str, Any]:
    """The settings of an agent or front-end that the study changes."""
    changed = getattr(cfg.study, f"{group}_params").get(name, {})
    if not isinstance(changed, Mapping):
        raise InputError(f"study.{group}_params.{name}={show(changed)} must be a set of keys.")
    return changed


def _refuse_twice(key: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{key}={show(names)} names '{name}' twice: give each once.")


def check_names(key: str, names: Iterable[str], options: Collection[str], benchmark: str) -> None:
    """Refuse names that a benchmark does not have, and names given twice.

    Args:
        key: the config key, for the error's sentence.
    """
    names = list(names)
    if not names:
        raise InputError(f"{key}=[] is empty: {nearest('', options)}")
    for name in names:
        if name not in options:
            raise InputError(f"{key}: '{name}' is not in the benchmark '{benchmark}': {nearest(name, options)}")
    _refuse_twice(key, names)
