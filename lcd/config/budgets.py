"""Budgets: how much is trained, by benchmark and agent, and what agents' names mean there; see `configs/budget`."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from importlib import resources
from typing import Any

import yaml

GROUP = "budget"
OTHERS = "others"
PROTOCOL = ("seeds", "steps", "evaluation")
"""What a budget says of training; in a study, steps are each agent's own: null."""
PRETRAINING = "pretraining"
USUAL_STUDY = "lcd"
"""The shipped study that others leave as it is where they say nothing."""
BUDGETS = "budgets"
"""The key of a study's file that says what budgets mean for this study: budget → changed keys."""
DEFINITION = "definition"
"""The key of a study's file that says which φ and ψ its headline has, and the command's own key of that."""
OF_FILES = ("benchmark", DEFINITION, BUDGETS)
"""Keys of a study's file that are none of a study: of which benchmark it is, and these two."""


def choices(group: str) -> list[str]:
    """The files of a config group, without the one that stands for names registered elsewhere."""
    return sorted(set(_files(resources.files("lcd.configs") / group)) - {"custom"})


def _files(folder: Any, prefix: str = "") -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".yaml"):
            yield prefix + entry.name.removesuffix(".yaml")


@cache
def read(group: str, name: str) -> dict[str, Any]:
    """The content of a group's file."""
    return yaml.safe_load((resources.files("lcd.configs") / group / f"{name}.yaml").read_text("utf-8"))


@cache
def explains(group: str, name: str) -> str:
    """The first line of the comment at the head of a group's file; "" without one."""
    first = (resources.files("lcd.configs") / group / f"{name}.yaml").read_text("utf-8").partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else ""


def default_budget(benchmark: str, names: Sequence[str]) -> str:
    """The budget that a benchmark takes unless another one is given."""
    owners = {owner: name for name in names for owner in read(GROUP, name)["own_of"]}
    return owners.get(benchmark, owners[OTHERS])


def agent_file(budget: str, benchmark: str, agent: str) -> str:
    """The file of `configs/agent` that an agent's name means."""
    return _section(budget, benchmark).get("agents", {}).get(agent, agent)


def protocol(budget: str, benchmark: str, agent: str) -> dict[str, Any]:
    """How much is trained and evaluated: the keys of `PROTOCOL` and their values, for an agent of that name."""
    section = {key: deepcopy(_section(budget, benchmark)[key]) for key in PROTOCOL}
    return section | {"steps": _of_agent(section["steps"], agent)}


def _of_agent(steps: Any, agent: str) -> Any:
    return steps.get(agent, steps[OTHERS]) if isinstance(steps, Mapping) else steps


def steps_of(steps: Any, agent: str, budget: str, benchmark: str) -> int:
    """The steps that an agent is trained for.

    Args:
        steps: What a study says: a number for all agents, a mapping of agent → number with `default`, or null.
        agent: The agent's name.
        budget: Whose steps are taken where the study says none.
        benchmark: Of which benchmark.
    """
    if isinstance(steps, Mapping):
        steps = steps.get(agent, steps.get("default"))
    return protocol(budget, benchmark, agent)["steps"] if steps is None else steps


def settings(budget: str, benchmark: str, agent: str) -> Mapping[str, Any]:
    """The hyper-parameters that a budget changes, of an agent of that name."""
    return _section(budget, benchmark).get("settings", {}).get(agent, {})


def _section(budget: str, benchmark: str) -> Mapping[str, Any]:
    benchmarks = read(GROUP, budget)["benchmarks"]
    return benchmarks.get(benchmark, benchmarks[OTHERS])


def settled(
    plain: Mapping[str, Any], benchmark: str, budget: str, named: bool, file: Mapping[str, Any]
) -> dict[str, Any]:
    """A command's config with how much is trained, but for the keys that the user says: those win over all of this.

    What is said first in this list wins: the user's study file; the budget that they name; the shipped study's file;
    the benchmark's own budget. What either file says of the budget that holds (`budgets`) wins over what else it says,
    and stands in the place of what the budget says everywhere.

    Args:
        plain: The chosen files' content.
        benchmark: Its name.
        budget: The budget that holds.
        named: Whether the user names it; else it is the benchmark's own.
        file: The content of the user's study file; empty where they give none.
    """
    found = {**plain, GROUP: budget}
    if "agent" not in found:
        return found | {PRETRAINING: {"name": budget} | deepcopy(read(GROUP, budget)[PRETRAINING])}
    name = str(found["agent"].get("name"))
    found["agent"] = {**found["agent"], **settings(budget, benchmark, name)}
    usual = protocol(budget, benchmark, name)
    if "study" not in found:
        return usual | found | {"evaluation": {**found["evaluation"], **usual["evaluation"]}}
    usual |= {"steps": None}
    shipped = found["study"]
    here, theirs = (study.get(BUDGETS, {}).get(budget) for study in (shipped, file))
    layers = [shipped, usual] if named and here is None else [usual, shipped, here or {}]
    layers = [read("study", USUAL_STUDY), *layers]
    study: dict[str, Any] = {}
    for layer in (*layers, file, theirs or {}):
        for key, value in layer.items():
            merged = key == "evaluation" and key in study
            study[key] = {**study[key], **value} if merged else deepcopy(value)
    found[DEFINITION] = study.get(DEFINITION, found[DEFINITION])
    return found | {"study": {key: value for key, value in study.items() if key not in OF_FILES}}
