"""From configs to runs: which runs a study needs, and what happens around the training of one."""

import contextlib
import hashlib
import os
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from lcd.config.compose import check_knob, seed_list, show
from lcd.config.schemas import DiagnoseConfig, TrainConfig
from lcd.curves.names import varied_task
from lcd.envs.benchmarks import Benchmark
from lcd.envs.errors import Diverged, InputError, nearest
from lcd.files.atomic import disk_full_error, remove_unfinished, write_atomic
from lcd.files.reading import Unreadable, read_yaml
from lcd.pipelines.study import adaptive, needs, sources, store
from lcd.pipelines.study.configs import (
    AgentEntry,
    Device,
    EvaluationEntry,
    FrontendEntry,
    RunConfig,
    StageEntry,
    TrackerEntry,
    canonical,
    run_id,
)
from lcd.pipelines.study.evaluation import evaluation_entry
from lcd.pipelines.study.parts import check_names, parts_of, steps_for
from lcd.process.signals import Stopped

CURRICULUM = "curriculum"
ERROR_FILE = "error.txt"


def expand(cfg: DiagnoseConfig) -> list[RunConfig]:
    """The run configs of a study: those of all its parts, each once.

    A part has each view at p = 1, and the semantic view at each smaller p, for every task.
    """
    from lcd.envs.benchmarks import get_benchmark

    study, chosen = cfg.study, adaptive.recommend(cfg)
    benchmark = get_benchmark(cfg.benchmark.name)
    parts = parts_of(cfg, benchmark) if chosen is None else adaptive.parts_of(cfg, chosen)
    shared = {
        "seeds": seed_list("study.seeds", study.seeds),
        "evaluation": evaluation_entry(study.evaluation, benchmark, "study.evaluation"),
    }
    found: dict[str, RunConfig] = {}
    for part in parts:
        agents = [_agent(given) for given in part.agents]
        frontends = [_frontend(given) for given in part.frontends]
        for condition in replace(part, agents=agents, frontends=frontends).crossed():
            steps = steps_for(cfg, condition["agent"]["name"])
            made = _run_config(cfg.benchmark.name, steps=steps, **condition, **shared)
            found.setdefault(run_id(made), made)
    return list(found.values())


def run_config_from(cfg: TrainConfig) -> RunConfig:
    """The run config of `lcd train`."""
    from lcd.envs.benchmarks import check_view, get_benchmark, reward_range
    from lcd.envs.protocols import shapings_of

    benchmark = get_benchmark(cfg.benchmark.name)
    check_names("view", [cfg.view], benchmark.views, cfg.benchmark.name)
    check_names("shaping", [cfg.shaping], shapings_of(benchmark), cfg.benchmark.name)
    seeds = seed_list("seeds", cfg.seeds)
    curriculum, stages = (None, None) if cfg.curriculum is None else curriculum_from(cfg.curriculum, benchmark)
    if stages is None:
        check_names("task", [cfg.task.name], benchmark.tasks, cfg.benchmark.name)
    elif cfg.task.name != CURRICULUM:
        raise InputError(f"task={cfg.task.name} and a curriculum cannot both be trained: leave one of them out.")
    # A wrong view or knob is told here, where nothing has been written yet.
    for stage in stages or [{"task": cfg.task.name, "knobs": cfg.task.knobs}]:
        check_view(benchmark, stage["task"], cfg.view)
        reward_range(benchmark, stage["task"], seeds[0], stage["knobs"])
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
    name = str(params.pop("name"))
    # Defaults are written down too: a run must not become another one when a default changes.
    return {"name": name} | asdict(agents.validate(name, params))


def _frontend(given: Mapping[str, Any]) -> FrontendEntry:
    """What a run writes down of its front-end, validated by making it."""
    from lcd.frontends.entry import entry_of

    knobs = dict(given)
    return entry_of(str(knobs.pop("name")), **knobs)


def _run_config(benchmark: str, evaluation: EvaluationEntry, **fields: Any) -> RunConfig:
    made: RunConfig = {
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
    needs.check_run(made)
    return sources.with_source(made)


def check_share(name: str, params: Mapping[str, Any], device: Device) -> None:
    """Refuse what several processes cannot train together, each with its share of the agent's copies.

    Args:
        name, params: the agent and its hyper-parameters.
        device: says how many processes.
    """
    from lcd import agents
    from lcd.agents.protocols import TrainedByRanks
    from lcd.envs.protocols import offers

    world = device.processes
    if world == 1:
        return
    how = f"devices={device.devices}" + (f" num_nodes={device.num_nodes}" if device.num_nodes > 1 else "")
    if not offers(agents.agents.resolve(name), TrainedByRanks):
        raise InputError(f"{how}: agent={name} cannot be trained by several processes: give devices=1.")
    if device.accelerator == "mps":
        raise InputError(f"{how}: device=mps is a single one: give devices=1, or device=cpu.")
    copies = agents.validate(name, params).copies
    if copies % world:
        raise InputError(
            f"agent.copies={copies} must be divisible by the {world} processes of {how}, among which they are shared."
        )
    try:
        agents.validate(name, {**params, "copies": copies // world})
    except InputError as error:
        raise InputError(f"{how} gives each process {copies // world} of agent.copies={copies}: {error}") from None


def check_device(device: Device) -> None:
    """Refuse a device that this machine does not have, and more GPUs than it has.

    Several processes on a CPU are fine.
    """
    import torch

    name, many = device.accelerator, device.devices
    has = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    there = [kind for kind, present in has.items() if present] + ["cpu"]
    if not has.get(name, True):
        raise InputError(
            f"device={name}, but torch finds no such device on this machine (it has: {', '.join(there)}): "
            "give device=auto, or one that is there."
        )
    if name in ("auto", "cuda") and has["cuda"] and many > torch.cuda.device_count():
        raise InputError(
            f"devices={many}, but this machine has {torch.cuda.device_count()} GPUs: give as many, or device=cpu."
        )


def resolve(target: str) -> Any:
    """The object at `module:object`."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def train_under_lock(train: str, run_config: RunConfig, run_dir: str, tracker: TrackerEntry, device: Device) -> None:
    """Train one run under its lock, and keep its status true however training ends.

    Args:
        train: `module:function` with the arguments of `lcd.pipelines.jobs.train.train_run`.
    """
    with store.run_lock(run_dir):
        remove_unfinished(run_dir)
        if store.Run(run_dir, run_config).done:
            return
        threads = int(os.environ.get("OMP_NUM_THREADS") or 1)
        store.update_status(run_dir, state=store.RUNNING, error=None, steps=run_config["steps"], threads=threads)
        try:
            # A launcher may train on another machine than the command was given on, and long after.
            check_device(device)
            sources.refuse_changed(run_config)
            resolve(train)(run_config, run_dir, tracker, device)
        except (Stopped, KeyboardInterrupt, SystemExit):
            with contextlib.suppress(OSError):
                store.update_status(run_dir, state=store.QUEUED)
            raise
        except Diverged as trouble:
            store.update_status(run_dir, state=store.DIVERGED, error=describe(trouble))
            raise
        except Exception as error:
            # On a full disk neither may fit; what went wrong is told all the same.
            with contextlib.suppress(OSError):
                store.update_status(run_dir, state=store.FAILED, error=describe(error))
                write_atomic(Path(run_dir) / ERROR_FILE, traceback.format_exc())
            raise
        if not store.Run(run_dir, run_config).done:
            _refuse_unfinished(train, run_config, run_dir)
        (Path(run_dir) / ERROR_FILE).unlink(missing_ok=True)


def _refuse_unfinished(train: str, run_config: RunConfig, run_dir: str) -> None:
    sentence = f"{train} returned before the run was done: its curve {store.Run(run_dir, run_config).broken_promise()}"
    store.update_status(run_dir, state=store.FAILED, error=sentence)
    raise RuntimeError(sentence)


def describe(error: BaseException) -> str:
    """An error in one line."""
    full = disk_full_error(error)
    text = " ".join(str(full or error).split())
    if full is not None:
        return f"{text}. What was written before is whole: make room, and the same command continues."
    return text if isinstance(error, InputError | Diverged) else f"{type(error).__name__}: {text}"[:500]
