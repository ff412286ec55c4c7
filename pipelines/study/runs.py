"""From configs to jobs: which ones a study needs, and what each is asked for."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast

from lcd.config import budgets
from lcd.config.keys import show
from lcd.config.nested import flatten
from lcd.config.schemas import DiagnoseConfig, TrainConfig
from lcd.config.values import check_knob, seed_list
from lcd.curves.names import varied_task
from lcd.envs.benchmarks import Benchmark
from lcd.envs.errors import InputError, nearest
from lcd.envs.families.family import Family, Point, point_name
from lcd.envs.protocols import NamesKnobs, known_of_points, offers
from lcd.files.reading import Unreadable, read_yaml
from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.study import adaptive, needs, sources
from lcd.pipelines.study.configs import (
    TRAIN,
    AgentEntry,
    EvaluationEntry,
    FrontendEntry,
    RunConfig,
    StageEntry,
    agent_name,
    canonical,
    run_id,
)
from lcd.pipelines.study.encoders import entry_after, pretraining_for
from lcd.pipelines.study.evaluation import by_time_unit, evaluation_entry
from lcd.pipelines.study.family_points import (
    ALL,
    POINTS,
    Points,
    check_tasks,
    how_asked,
    points_asked,
)
from lcd.pipelines.study.family_written import check_written, family_of
from lcd.pipelines.study.grid import (
    axes_of,
    by_turns,
    check_points,
    check_tests,
    named_knobs,
    placed,
    points_of_runs,
    seeds_of_runs,
    without_settings,
)
from lcd.pipelines.study.parts import check_names, parts_of
from lcd.pipelines.study.point_choices import Chosen, choice_asked, choose

CURRICULUM = "curriculum"


def expand(
    cfg: DiagnoseConfig, chosen: adaptive.Recommended | None = None, points: Mapping[str, Chosen] | None = None
) -> list[Job]:
    """The jobs of a study: the trainings of all its parts, each once, after the pretrainings that they wait for.

    A part has each view at p = 1, and the solved view at each smaller p, for every task.

    Args:
        cfg: what is asked for.
        chosen: what an earlier study's diagnosis recommends; None: it is asked.
        points: the choices of points (`choices_of`); None: they are made, as for a new study.
    """
    from lcd.envs.benchmarks import get_benchmark

    study = cfg.study
    chosen = adaptive.recommend(cfg) if chosen is None else chosen
    points = choices_of(cfg, chosen) if points is None else points
    check_tests(study.tests)
    benchmark = get_benchmark(cfg.benchmark.name)
    parts = parts_of(cfg, benchmark) if chosen is None else adaptive.parts_of(cfg, chosen)
    evaluation = evaluation_entry(study.evaluation, benchmark, "study.evaluation")
    if study.noise_free:
        evaluation["noise_free"] = True
    check_tasks(study.points, {task for part in parts for task in part.tasks})
    found: dict[str, Job] = {}
    for part in parts:
        agents = [_agent(given) for given in part.agents]
        frontends = []
        for given in part.frontends:
            pretraining = pretraining_for(cfg, given)
            frontends.append(_frontend(given) if pretraining is None else entry_after(pretraining, given))
            found |= {} if pretraining is None else {run_id(pretraining): Job(pretraining)}
        for condition in replace(part, agents=agents, frontends=frontends).crossed():
            name = condition["agent"]["name"]
            steps = budgets.steps_of(_steps_asked(part.steps, condition["agent"]), name, cfg.budget, benchmark.name)
            own = evaluation
            if study.steps_by_time_unit:
                steps, own = by_time_unit(steps, evaluation, {**condition["knobs"], **condition["point"]})
            task, knobs = placed(benchmark, condition["task"], condition.pop("point"), condition["knobs"])
            condition |= {"task": task, "knobs": knobs, "steps": steps, "evaluation": own}
            wanted = ALL if study.points is None and study.family is not None else study.points
            picked = points.get(varied_task(task, knobs))
            family = family_of(benchmark, task, study.family)
            asked = _points(benchmark, task, knobs, wanted, family, picked, written=study.family)
            rounds: Sequence[Points | None] = asked or [None]
            for each, every in by_turns(rounds, {} if picked is None else picked.own_seeds, part.seeds):
                by_run = points_of_runs(each, name, study.points_per_run)
                for some, seeds in product(by_run, seeds_of_runs(every, part.seeds_per_run)):
                    made = _run_config(cfg.benchmark.name, seeds=seeds, points=some, **condition)
                    found.setdefault(run_id(made), Job(made))
    return list(found.values())


def choices_of(
    cfg: DiagnoseConfig, chosen: adaptive.Recommended | None = None, folder: Path | None = None
) -> dict[str, Chosen]:
    """The points that a study chooses under a budget, by what curves call their tasks.

    Args:
        cfg: what is asked for.
        chosen: what an earlier study's diagnosis recommends.
        folder: the study's, which may remember what was chosen before; None: nobody does.
    """
    study = cfg.study
    if study.points is None or study.points == ALL:
        return {}
    from lcd.envs.benchmarks import get_benchmark

    benchmark = get_benchmark(cfg.benchmark.name)
    found: dict[str, Chosen] = {}
    for part in parts_of(cfg, benchmark) if chosen is None else adaptive.parts_of(cfg, chosen):
        for each in part.crossed():
            task, knobs = placed(benchmark, each["task"], each["point"], each["knobs"])
            name = varied_task(task, knobs)
            seeds = seed_list("study.seeds", part.seeds)
            asked = None if name in found else choice_asked(*how_asked(study.points, task), seeds)
            family = None if asked is None else family_of(benchmark, task, study.family)
            if asked is not None and family is not None:
                where = how_asked(study.points, task)[1]
                known = partial(known_of_points, benchmark, task, family.points)
                found[name] = choose(family, asked, where, folder, name, known)
    return found


def choices_of_run(cfg: TrainConfig) -> dict[str, Chosen]:
    """The points that `lcd train` chooses under a budget, as `choices_of` has a study's."""
    from lcd.envs.benchmarks import get_benchmark

    asked, task = choice_asked(cfg.points, POINTS), cfg.task
    family = None if asked is None else family_of(get_benchmark(cfg.benchmark.name), task.name)
    if asked is None or family is None:
        return {}
    known = partial(known_of_points, get_benchmark(cfg.benchmark.name), task.name, family.points)
    return {varied_task(task.name, task.knobs): choose(family, asked, POINTS, beforehand=known)}


def grid_of(cfg: DiagnoseConfig, run_configs: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What a study remembers of its grid, as `lcd.analyses.grids.Grid.from_plain` reads it; None where it has none."""
    if not cfg.study.grid:
        return None
    from lcd.envs.benchmarks import get_benchmark

    benchmark = get_benchmark(cfg.benchmark.name)
    tasks = {}
    for part in parts_of(cfg, benchmark):
        for each in part.crossed():
            task, knobs = placed(benchmark, each["task"], each["point"], each["knobs"])
            tasks[varied_task(task, knobs)] = {"base": each["task"], "point": each["point"]}
    agents = list(dict.fromkeys(agent_name(config["agent"]) for config in run_configs))
    plain = {label: without_settings(cfg.study.grid, label) for label in agents}
    return {
        "dimensions": list(axes_of(cfg.study.grid)),
        "tasks": tasks,
        "agents": agents,
        "settings": {label: {"agent": name, "point": point} for label, (name, point) in plain.items() if point},
        **{key: getattr(cfg.study, key) for key in ("name", "knobs", "normalise", "tests")},
    }


def run_config_from(cfg: TrainConfig) -> RunConfig:
    """The run config of `lcd train`."""
    from lcd.envs.benchmarks import check_view, get_benchmark, reward_range
    from lcd.envs.protocols import shapings_of

    benchmark = get_benchmark(cfg.benchmark.name)
    check_names("view", [cfg.view], benchmark.views, cfg.benchmark.name)
    check_names("shaping", [cfg.shaping], shapings_of(benchmark), cfg.benchmark.name)
    seeds = seed_list("seeds", cfg.seeds)
    if cfg.points is not None and cfg.curriculum is not None:
        raise InputError(f"points={show(cfg.points)} and a curriculum cannot both be trained: leave one of them out.")
    curriculum, stages = (None, None) if cfg.curriculum is None else curriculum_from(cfg.curriculum, benchmark)
    if stages is None:
        check_names("task", [cfg.task.name], benchmark.tasks, cfg.benchmark.name)
    elif cfg.task.name != CURRICULUM:
        raise InputError(f"task={cfg.task.name} and a curriculum cannot both be trained: leave one of them out.")
    # A wrong view or knob is told here, where nothing has been written yet.
    trained = [(stage["task"], stage["knobs"]) for stage in stages or ()] or [(cfg.task.name, cfg.task.knobs)]
    for task, knobs in trained:
        check_view(benchmark, task, cfg.view)
        with named_knobs(benchmark, [task], knobs, f"{CURRICULUM}: knobs" if stages else "task.knobs"):
            reward_range(benchmark, task, seeds[0], knobs)
    check_tasks(cfg.points, [cfg.task.name], "points")
    family = None if cfg.points is None else family_of(benchmark, cfg.task.name)
    points = None if stages else _points(benchmark, cfg.task.name, cfg.task.knobs, cfg.points, family, where="points")
    run_config = _run_config(
        cfg.benchmark.name,
        agent=_agent(cfg.agent),
        frontend=_frontend(cfg.frontend),
        task=curriculum or cfg.task.name,
        knobs=cfg.task.knobs,
        view=cfg.view,
        reward_p=cfg.reward_p,
        shaping=cfg.shaping,
        seeds=seeds,
        steps=cfg.steps if stages is None else sum(stage["steps"] for stage in stages),
        evaluation=evaluation_entry(cfg.evaluation, benchmark, "evaluation"),
        points=None if points is None else points[0],
    )
    return run_config if stages is None else {**run_config, "curriculum": stages}


def curriculum_from(given: Any, benchmark: Benchmark) -> tuple[str, list[StageEntry]]:
    """A curriculum's name, and its stages: `name`, `task`, `knobs` and `steps` of each.

    Without a name of the user's it gets one from what it holds, so that two curricula are never taken for one.

    Args:
        given: the stages, or a mapping of `name` and `stages`; or the path of a YAML or JSON file with one of these.
    """
    if isinstance(given, str):
        given = _stages_in(Path(given).expanduser())
    if not isinstance(given, Mapping):
        stages = stages_from(given, benchmark)
        return f"{CURRICULUM}-{hashlib.sha256(canonical(stages).encode()).hexdigest()[:8]}", stages
    for key in given:
        if key not in ("name", "stages"):
            raise InputError(f"curriculum: '{key}' is no part of a curriculum: {nearest(str(key), ('name', 'stages'))}")
    name = given.get("name")
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or name in benchmark.tasks:
        raise InputError(f"curriculum: name={show(name)} must be a name that no task of the benchmark has.")
    return name, stages_from(given.get("stages"), benchmark)


def stages_from(curriculum: Any, benchmark: Benchmark) -> list[StageEntry]:
    """The stages of a curriculum: `name`, `task`, `knobs` and `steps` of each.

    Args:
        curriculum: each stage as [task, steps] or as a mapping of task and steps, with knobs and a name if they are
            needed.
    """
    if isinstance(curriculum, str) or not isinstance(curriculum, Sequence):
        raise InputError(f"curriculum={show(curriculum)} must be a list of stages, or a file that holds one.")
    stages = [_stage(given, benchmark) for given in curriculum]
    if len(stages) < 2:
        raise InputError(f"curriculum={show(list(curriculum))} must have at least two stages: [[task,steps],…].")
    for stage in stages:
        for other in stages:
            if stage["name"] == other["name"] and (stage["task"], stage["knobs"]) != (other["task"], other["knobs"]):
                raise InputError(
                    f"curriculum: two different tasks are called '{stage['name']}': give each its own name."
                )
    return stages


def _stages_in(file: Path) -> Any:
    try:
        return read_yaml(file)
    except Unreadable as why:
        raise InputError(f"curriculum={file} cannot be read ({why}): give a YAML or JSON file of stages.") from None


def _stage(given: Any, benchmark: Benchmark) -> StageEntry:
    keys = ("name", "task", "knobs", "steps")
    found = given
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2:
        found = {"task": given[0], "steps": given[1]}
    if not isinstance(found, Mapping) or not {"task", "steps"} <= found.keys():
        raise InputError(f"curriculum: {show(given)} is no stage: give [task,steps] or {{task:…,steps:…,knobs:{{…}}}}.")
    for key in found:
        if key not in keys:
            raise InputError(f"curriculum: '{key}' is no part of a stage: {nearest(str(key), keys)}")
    steps, knobs = found["steps"], found.get("knobs") or {}
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
        raise InputError(f"curriculum: steps={show(steps)} must be a whole number of at least 1.")
    if not isinstance(knobs, Mapping):
        raise InputError(f"curriculum: knobs={show(knobs)} must be a set of keys.")
    for knob in knobs:
        check_knob(f"curriculum: knobs.{knob}", str(knob))
    task = str(found["task"])
    if task not in benchmark.tasks:
        options = nearest(task, benchmark.tasks)
        raise InputError(f"curriculum: '{task}' is not in the benchmark '{benchmark.name}': {options}")
    name = str(found.get("name") or varied_task(task, dict(knobs)))
    if name in benchmark.tasks and (name != task or knobs):
        raise InputError(f"curriculum: '{name}' is a task of its own: give the stage of {task} another name.")
    return {"name": name, "task": task, "knobs": dict(knobs), "steps": steps}


def _agent(given: Mapping[str, Any]) -> AgentEntry:
    """An agent's whole config, validated by the agent."""
    from lcd import agents

    params = dict(given)
    name, label = str(params.pop("name")), params.pop("label", None)
    labelled = {} if label is None else {"label": str(label)}
    config = agents.validate(name, params)
    # Defaults are written down too: a run must not become another one when a default changes.
    settings = asdict(config)
    for later in (each for each in fields(config) if each.metadata.get("later")):
        if settings[later.name] == later.default:
            del settings[later.name]
    return cast("AgentEntry", {"name": name} | settings | labelled)


def _steps_asked(steps: Any, agent: AgentEntry) -> Any:
    """What a study says of an agent's steps: of its label, else of its name."""
    return steps[agent["label"]] if isinstance(steps, Mapping) and agent.get("label") in steps else steps


def _frontend(given: Mapping[str, Any]) -> FrontendEntry:
    """What a run writes down of its front-end, validated by making it."""
    from lcd.frontends.entry import entry_of

    knobs = dict(given)
    return entry_of(str(knobs.pop("name")), **knobs)


def _points(
    benchmark: Benchmark,
    task: str,
    knobs: Mapping[str, Any],
    points: Any,
    family: Family | None,
    picked: Chosen | None = None,
    where: str = POINTS,
    written: Mapping[str, Any] | None = None,
) -> list[Points] | None:
    """The points that are trained of a task, by round, checked to be ones that can be made."""
    rounds = points_asked(points, task, family, picked, where)
    if rounds is None or family is None:
        return rounds
    every = [{**features} for some in rounds for features in some.values()]
    if both := sorted({*family.features} & {*flatten(knobs)}):
        key = "study.knobs" if where == POINTS else "task.knobs"
        raise InputError(f"{key}.{both[0]} is a feature of {task}'s points, which set it: leave it out.")
    if written is not None:
        check_written(written, family, partial(_check_point, benchmark, task, knobs))
    for features in every:
        try:
            _check_point(benchmark, task, knobs, features)
        except InputError as why:
            raise InputError(
                f"{how_asked(points, task, where)[1]}: the point '{point_name(features)}': {why}"
            ) from None
    return rounds


def _check_point(benchmark: Benchmark, task: str, knobs: Mapping[str, Any], features: Point) -> None:
    """Refuse a point that cannot be made."""
    # Elsewhere a feature may be an attribute of an object (`object.attribute`): its name is no path into the knobs.
    varied, fixed = (dict(features), {}) if offers(benchmark, NamesKnobs) else ({}, features)
    check_points(benchmark, [task], [varied], {**knobs, **fixed})


def _run_config(benchmark: str, evaluation: EvaluationEntry, points: Points | None, **fields: Any) -> RunConfig:
    made: RunConfig = {
        "kind": TRAIN,
        "benchmark": benchmark,
        "task": fields["task"],
        "knobs": dict(fields["knobs"]),
        "view": fields["view"],
        "frontend": fields["frontend"],
        "reward_p": float(fields["reward_p"]),
        "shaping": fields["shaping"],
        "agent": fields["agent"],
        "seeds": list(fields["seeds"]),
        "steps": fields["steps"],
        "evaluation": evaluation,
    }
    # What is not asked for is not written down, so that runs without it stay what they are.
    if points is not None:
        made["points"] = points
    needs.check_run(made)
    return sources.with_source(made)
