"""What a user sets of something that a registry holds, checked against its own dataclass.

The dataclass is an agent's `Config`, and else the annotation of a parameter `settings`:
`def launch(function, calls, watch, *, settings: Queue, **common)`. Who has no such parameter has no settings.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

from lcd.config.keys import show
from lcd.config.registries import ALL, chosen, registry
from lcd.envs.checks import of_kind
from lcd.envs.errors import InputError, nearest

PARAMETER = "settings"


def settings_for(
    target: Any, given: Mapping[str, Any], key: str, owner: str, common: Iterable[str] = ()
) -> dict[str, Any]:
    """What something is to be called with besides: `settings`, checked, if it takes them.

    Args:
        target: the class or function.
        given: what the user sets, as plain values.
        key: the config key above the settings, for an error's sentence ("launcher").
        owner: whose settings they are, for the sentence ("launcher=slurm").
        common: keys beside them that all have, one of which may have been meant.

    Raises:
        InputError: where it has no such setting, or a value is of the wrong kind.
    """
    if not isinstance(given, Mapping):
        raise InputError(f"{key}={show(given)} must be a set of settings: {key}={{setting: value}}.")
    schema = schema_of(target)
    if schema is None:
        for name in given:
            raise InputError(f"{key}.{name} is not a setting of {owner}: {nearest(name, common)}")
        return {}
    return {PARAMETER: checked(schema, given, key, owner, "setting", common)}


def check_choices(config: Any) -> None:
    """Refuse what a command names and no registry has, and settings that are none of its own, before anything is done.

    Args:
        config: the command's; its launcher, tracker, analyses and sections are looked at.
    """
    given = {entry.name: getattr(config, entry.name) for entry in fields(config)}
    for kind in ("launcher", "tracker"):
        if (chosen := given.get(kind)) is not None:
            common = [entry.name for entry in fields(chosen) if entry.name not in ("name", PARAMETER)]
            target = registry(kind).resolve(chosen.name)
            settings_for(target, chosen.settings, kind, f"{kind}={chosen.name}", common)
    for kind, key in (("analysis", "analyses"), ("section", "sections")):
        if key in given:
            _check_parts(kind, key, given[key], given[f"{kind}_params"])


def _check_parts(kind: str, key: str, names: list[str] | None, params: Mapping[str, Any]) -> None:
    known = registry(kind)
    meant = chosen(known, names)
    for name in meant:
        if not known.may_resolve(name):
            raise InputError(f"{key}=[{name}] is unknown: {nearest(name, [*known.names(), ALL])}")
    for name in params:
        if name not in meant:
            named = ",".join([*([ALL] if names is None else names), name])
            advice = f"name it there, {key}=[{named}], or leave this out."
            advice = advice if known.may_resolve(name) else nearest(name, known.names())
            raise InputError(f"{kind}_params.{name}: {key} has no such {kind}: {advice}")
    for name in meant:
        if not known.is_built_in(name) or name in params:
            settings_for(known.resolve(name), params.get(name, {}), f"{kind}_params.{name}", f"{kind} '{name}'")


def schema_of(target: Any) -> type | None:
    """The dataclass of a class's or function's settings; None where it has none."""
    called: Any = target
    if isinstance(target, type):
        called = called.__init__
    try:
        found = get_type_hints(called).get(PARAMETER)
    except (TypeError, NameError, AttributeError):
        # Hints may name what is imported for type checkers alone.
        found = inspect.get_annotations(called).get(PARAMETER) if callable(called) else None
        found = vars(inspect.getmodule(called)).get(found) if isinstance(found, str) else found
    return found if isinstance(found, type) and is_dataclass(found) else None


def checked(schema: type, given: Mapping[str, Any], key: str, owner: str, noun: str, common: Iterable[str] = ()) -> Any:
    """An instance of a dataclass from plain values.

    Args:
        schema: the dataclass.
        given: values by field; those left out keep their defaults.
        key: the config key above them, for an error's sentence.
        owner: whose they are, for the sentence.
        noun: what one of them is called in the sentence.
        common: keys beside them that may have been meant.

    Raises:
        InputError: for an unknown field, a value of the wrong kind, or a field without default that is left out.
    """
    types = get_type_hints(schema)
    known = [field.name for field in fields(schema) if field.init]
    for name in given:
        if name not in known:
            raise InputError(f"{key}.{name} is not a {noun} of {owner}: {nearest(name, [*known, *common])}")
    values = {name: of_kind(f"{key}.{name}", value, types[name]) for name, value in given.items()}
    for field in fields(schema):
        if field.name in known and field.name not in values and field.default is field.default_factory is MISSING:
            raise InputError(f"{key}.{field.name} is missing: {owner} has no default for it.")
    return schema(**values)
