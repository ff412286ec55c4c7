"""The keys and groups of the commands' configs, and how values are written."""

import json
from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from typing import Any

from lcd.config.budgets import choices
from lcd.config.registries import KINDS, registry
from lcd.config.schema_parts import SETTINGS, LauncherConfig, TrackerConfig
from lcd.config.schemas import SCHEMAS
from lcd.config.steering_schemas import CONDITION

GROUPS = (
    "benchmark",
    "task",
    "agent",
    "frontend",
    "launcher",
    "tracker",
    "study",
    "budget",
    "stopping",
)
NAMED_ELSEWHERE = ("benchmark", "agent", "frontend", "launcher", "tracker")
"""Groups of which a registry, or a module:object, has more than there are files."""
WITH_SETTINGS = {"launcher": LauncherConfig, "tracker": TrackerConfig}
"""Groups whose choices have keys of their own beside those that all have."""
RANGES, MAP = "ranges", "map"
TEXT_KEYS = ("out", "path", "against", "policy", "mdp", "bridge", "horizons", "masks", "folders", RANGES, MAP)


def groups(command: str) -> list[str]:
    """The config groups that a command takes."""
    of_groups = {entry.name for entry in fields(SCHEMAS[command]) if CONDITION not in entry.metadata}
    return [name for name in GROUPS if name in of_groups]


def conditions(command: str) -> list[str]:
    """The keys of a command that choose among a study's runs."""
    return [entry.name for entry in fields(SCHEMAS[command]) if CONDITION in entry.metadata]


def registered(group: str) -> list[str]:
    """The names in a group's registry, those of third parties included."""
    if group == "task":
        from lcd.envs.benchmarks import get_benchmark
        from lcd.envs.protocols import KnownHardness, offers

        # The tasks whose names say their benchmark, without those that are made to check the scores.
        known = [get_benchmark(name) for name in choices("benchmark")]
        tasks = [(found.name, task) for found in known if not offers(found, KnownHardness) for task in found.tasks]
        return sorted(task for name, task in tasks if task.startswith(f"{name}/"))
    return sorted(registry(group).names()) if group in KINDS else []


def schema_fields(schema: Any, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Every key of a schema with dots for nesting, and its field, without the settings of a choice's own."""
    for entry in fields(schema):
        if is_dataclass(entry.type):
            yield from schema_fields(entry.type, f"{prefix}{entry.name}.")
        elif entry.name != SETTINGS:
            yield prefix + entry.name, entry


def is_open(key: str, schema: Any) -> bool:
    """Whether a key lies in a part of the schema that takes any key."""
    head, _, rest = key.partition(".")
    if head in WITH_SETTINGS and rest:
        return head in {entry.name for entry in fields(schema)} and "." not in rest and rest != SETTINGS
    for entry in fields(schema):
        if entry.name == head and rest:
            return is_open(rest, entry.type) if is_dataclass(entry.type) else "dict" in str(entry.type)
    return False


def show(value: Any) -> str:
    """A value as it is written on the command line."""
    return value if isinstance(value, str) else json.dumps(value, default=str)
