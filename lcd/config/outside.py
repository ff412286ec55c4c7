"""The settings of what no file of `lcd.configs` stands for, an entry point's or a module:object's; for the help."""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from lcd.config.budgets import choices
from lcd.config.keys import NAMED_ELSEWHERE
from lcd.config.own_code import OWN_CODE, search_working_directory
from lcd.config.registries import registry
from lcd.config.settings import schema_of
from lcd.envs.registry import code_names, naming

NEEDED = "???"
"""Stands for the default of what has none."""
_SECTION = re.compile(r"(?:Args|Attributes):\n((?:[ \t]+.*(?:\n|$)|\n)+)")
_ENTRY = re.compile(r"(\w+)(?: \(.*?\))?: *(.*)")


def settings_from_outside(chosen: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Key, default and meaning of every setting that only code tells.

    Args:
        chosen: what a command's choices hold together, by group; only what it names is imported.

    Raises:
        InputError: where something cannot be imported.
    """
    names = {group: (chosen.get(group) or {}).get("name") for group in NAMED_ELSEWHERE if group != "benchmark"}
    outside = {group: name for group, name in names.items() if name and name not in choices(group)}
    if any(map(OWN_CODE.fullmatch, outside.values())):
        search_working_directory()
    with naming(code_names(outside)):
        for group, name in outside.items():
            told = _parameters(name) if group == "frontend" else _fields(group, name)
            yield from ((f"{group}.{key}", default, meaning) for key, default, meaning in told)


def _parameters(name: str) -> Iterator[tuple[str, Any, str]]:
    """What a front-end's class or function takes."""
    from lcd.frontends import frontends, parameters_of

    found = parameters_of(name)
    build = frontends.resolve(name)
    known = {**meanings(inspect.getdoc(build)), **meanings(inspect.getdoc(build.__init__))}
    for parameter in found.values():
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            default = NEEDED if parameter.default is parameter.empty else parameter.default
            yield parameter.name, default, known.get(parameter.name, "")


def _fields(group: str, name: str) -> Iterator[tuple[str, Any, str]]:
    """The fields of an agent's, a launcher's or a tracker's dataclass."""
    from lcd.agents import settings_of

    schema = settings_of(name) if group == "agent" else schema_of(registry(group).resolve(name))
    if not (isinstance(schema, type) and is_dataclass(schema)):
        return
    known: dict[str, str] = {}
    for ancestor in reversed(schema.__mro__):
        known |= meanings(inspect.cleandoc(vars(ancestor).get("__doc__") or ""))
    for entry in fields(schema):
        if entry.init:
            yield entry.name, _default(entry), entry.metadata.get("meaning") or known.get(entry.name, "")


def _default(entry: Field) -> Any:
    if entry.default_factory is not MISSING:
        return entry.default_factory()
    return NEEDED if entry.default is MISSING else entry.default


def meanings(docstring: str | None) -> dict[str, str]:
    """What a Google docstring says of each name below `Args:` or `Attributes:`, on one line."""
    found: dict[str, str] = {}
    for section in _SECTION.findall(docstring or ""):
        lines = inspect.cleandoc(section).splitlines()
        name = ""
        for line in lines:
            if entry := _ENTRY.match(line):
                name, found[entry[1]] = entry[1], entry[2]
            elif name:
                found[name] = f"{found[name]} {line.strip()}"
    return {name: text.strip().removesuffix(".") for name, text in found.items()}
