"""`study=adaptive`: each task with the agent and front-end that an earlier study's diagnosis recommends."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from lcd.config.keys import show
from lcd.config.schemas import DiagnoseConfig, StudyConfig
from lcd.config.values import seed_list
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.errors import InputError
from lcd.pipelines.study import store
from lcd.pipelines.study.parts import Part
from lcd.pipelines.study.parts import parts_of as usual_parts
from lcd.pipelines.study.quarantine import read_finished
from lcd.pipelines.study.remembered import definition_of
from lcd.scores.hard import HardFrom

NAME = "adaptive"
Recommended = dict[str, Any]
"""`tasks`: task → agent and frontend; `shared_seeds`: whether the seeds are those of the source."""


def recommend(cfg: DiagnoseConfig) -> Recommended | None:
    """What the diagnosis of `study.source`, by its own definition, recommends for each task; None without a source.

    The first of `study.agents` and of `study.frontends` is for what is easy, the last for what is hard.
    """
    study = cfg.study
    if study.source is None:
        if study.name == NAME:
            raise InputError("study.source is missing: give the folder of a study that was diagnosed.")
        return None
    from lcd.analyses.taxonomy import recommendations, taxonomy
    from lcd.scores.diagnosis import diagnose_curves
    from lcd.scores.validity import ERROR

    own_agents, own_frontends = _from_easy_to_hard(study)
    source = Path(study.source).expanduser()
    made = store.Study(source) if (source / "study.yaml").is_file() else None
    curves = read_finished(source, made).curves
    plain = curves[(curves["frontend"] == "identity") & (curves["shaping"] == "none")]
    agents = sorted(set(plain["agent"]), key=lambda name: (name != own_agents[0], name))
    simplest = plain[plain["agent"] == agents[0]] if agents else curves
    diagnosis = diagnose_curves(simplest, definition=definition_of(made))
    classes = taxonomy(diagnosis, HardFrom.parse("study.threshold", study.threshold))
    untrusted = [sentence for severity, sentence in diagnosis.warnings if severity == ERROR]
    if untrusted and classes.table.empty:
        raise InputError(f"study.source={study.source} recommends nothing. {untrusted[0]}")
    advice = recommendations(diagnosis, classes)
    hard = {
        "perception": advice["class"].isin(["perception", "both"]),
        "reward": advice["class"].isin(["reward", "both"]),
    }
    tasks = {
        task: {
            "agent": own_agents[-1] if reward else own_agents[0],
            "frontend": own_frontends[-1] if perception else own_frontends[0],
        }
        for task, perception, reward in zip(advice["task"], hard["perception"], hard["reward"], strict=True)
    }
    seeds = set(seed_list("study.seeds", study.seeds)) & set(curves["seed"].tolist())
    return {"tasks": tasks, "shared_seeds": bool(seeds)}


def _from_easy_to_hard(study: StudyConfig) -> tuple[list[str], list[str]]:
    """The agents and the front-ends of a study that is recommended some of them."""
    for key, names in (("agents", study.agents), ("frontends", study.frontends)):
        if not names:
            raise InputError(f"study.{key}={show(names)} must name what is for easy tasks, then what is for hard ones.")
    return study.agents or [], study.frontends or []


def parts_of(cfg: DiagnoseConfig, chosen: Recommended) -> list[Part]:
    """Every pair of agent and front-end that is recommended for some task, and the simplest, on all tasks."""
    benchmark = get_benchmark(cfg.benchmark.name)
    tasks = [task for task in cfg.study.tasks or benchmark.tasks if task in chosen["tasks"]]
    if not tasks:
        raise InputError(f"study.source={cfg.study.source} has no task of the benchmark '{benchmark.name}'.")
    (cross,) = usual_parts(replace(cfg, study=replace(cfg.study, tasks=tasks, parts=None)), benchmark)
    own_agents, own_frontends = _from_easy_to_hard(cfg.study)
    simplest = (own_agents[0], own_frontends[0])
    pairs = {simplest, *((each["agent"], each["frontend"]) for task, each in chosen["tasks"].items() if task in tasks)}
    agents = dict(zip(own_agents, cross.agents, strict=True))
    frontends = dict(zip(own_frontends, cross.frontends, strict=True))
    return [
        replace(cross, agents=[agents[agent]], frontends=[frontends[frontend]]) for agent, frontend in sorted(pairs)
    ]


def recommended(study: store.Study) -> dict[str, Any]:
    """What a study remembers of it, as arguments of `lcd.analyses.analyse`; a stranger's file may hold anything."""
    record = study.record.get("recommended")
    if not isinstance(record, dict) or not isinstance(tasks := record.get("tasks"), dict):
        return {}
    chosen = {
        str(task): {key: str(each[key]) for key in ("agent", "frontend")}
        for task, each in tasks.items()
        if isinstance(each, dict) and {"agent", "frontend"} <= set(each)
    }
    return {"chosen": chosen, "shared_seeds": bool(record.get("shared_seeds"))}
