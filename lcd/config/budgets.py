"""Budgets: how much is trained, by benchmark and agent, and what agents' names mean there; see `configs/budget`."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import yaml

GROUP = "budget"
OTHERS = "others"
PROTOCOL = ("seeds", "steps", "evaluation.every", "evaluation.copies", "evaluation.episodes")


@cache
def read(group: str, name: str) -> dict[str, Any]:
    """The content of a group's file."""
    return yaml.safe_load((resources.files("lcd.configs") / group / f"{name}.yaml").read_text("utf-8"))


def default_budget(benchmark: str, names: Sequence[str]) -> str:
    """The budget that a benchmark takes unless another one is given."""
    owners = {owner: name for name in names for owner in read(GROUP, name)["own_of"]}
    return owners.get(benchmark, owners[OTHERS])


def agent_file(budget: str, benchmark: str, agent: str) -> str:
    """The file of `configs/agent` that an agent's name means."""
    return _section(budget, benchmark).get("agents", {}).get(agent, agent)


def protocol(budget: str, benchmark: str, agent: str) -> Iterator[tuple[str, int]]:
    """How much is trained and evaluated: the keys of `PROTOCOL` and their values, for an agent of that name."""
    section = _section(budget, benchmark)
    for key in PROTOCOL:
        value: Any = section
        for part in key.split("."):
            value = value[part]
        if isinstance(value, Mapping):
            value = value.get(agent, value[OTHERS])
        yield key, value


def settings(budget: str, benchmark: str, agent: str) -> Mapping[str, Any]:
    """The hyper-parameters that a budget changes, of an agent of that name."""
    return _section(budget, benchmark).get("settings", {}).get(agent, {})


def _section(budget: str, benchmark: str) -> Mapping[str, Any]:
    content = read(GROUP, budget)
    return content.get(benchmark if benchmark not in ("name", "own_of") else OTHERS, content[OTHERS])
