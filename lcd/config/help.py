"""`lcd <command> --help`: a command's groups and keys, their defaults, and what they mean."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field
from importlib import resources
from typing import Any

from lcd.config.budgets import choices
from lcd.config.chosen_files import defaults
from lcd.config.keys import GROUPS, NAMED_ELSEWHERE, groups, registered, schema_fields, show
from lcd.config.nested import flatten
from lcd.config.outside import settings_from_outside
from lcd.config.overrides import POSITIONAL
from lcd.config.schemas import SCHEMAS


def page_of(name: str, usage: str, overrides: Sequence[str] = ()) -> str:
    """The page of a command: what it is for, its groups, its keys.

    Args:
        name: the command.
        usage: what comes after its name.
        overrides: what else was said; the keys are those of the choices among it.
    """
    lines = [f"lcd {name} {usage}".rstrip(), "", f"  {SCHEMAS[name].__doc__}"]
    if taken := groups(name):
        lines += ["", "Groups (group=choice):"]
        lines += [f"  {group:<10} {_choices(group)}" for group in taken]
    if keys := key_table(name, overrides):
        width = max(len(f"{key}={value}") for key, value, _ in keys)
        lines += ["", "Keys and their defaults (key=value):"]
        lines += [f"  {f'{key}={value}':<{width}}  {meaning}".rstrip() for key, value, meaning in keys]
    if name in POSITIONAL:
        letters = "XY"[: len(POSITIONAL[name])]
        pairs = " ".join(f"{key}={letter}" for key, letter in zip(POSITIONAL[name], letters, strict=True))
        lines += ["", f"  lcd {name} {' '.join(letters)} is lcd {name} {pairs}"]
    return "\n".join(lines)


def _choices(group: str) -> str:
    names, others = registered(group) if group == "task" else choices(group), []
    if group == "task":
        others = ["another task of the benchmark"]
    if group in NAMED_ELSEWHERE:
        others = ["another registered name", "module:object"]
    return ", ".join([*names, *others])


def key_table(command: str, overrides: Sequence[str] = ()) -> list[tuple[str, str, str]]:
    """Every key of a command with its default and its meaning; for the help.

    Args:
        command: the command.
        overrides: what else was said; of it the choices count (`agent=ppg`).
    """
    documented = dict(schema_fields(SCHEMAS[command]))
    chosen = defaults(command, overrides)
    rows = []
    schema = {key: None if entry.default is MISSING else entry.default for key, entry in documented.items()}
    for key, value in {**schema, **flatten(chosen)}.items():
        entry = documented.get(key)
        chosen_by_group = key in groups(command) or (key.endswith(".name") and key != "study.name")
        if not chosen_by_group:
            empty = value is None and entry is not None and "dict" in str(entry.type)
            rows.append((key, "{}" if empty else show(value), _meaning(key, entry, chosen)))
    told = {key for key, _, _ in rows}
    own = [row for row in settings_from_outside(chosen) if row[0] not in told]
    return rows + [(key, show(default), meaning) for key, default, meaning in own]


def _meaning(key: str, entry: Field | None, chosen: Mapping[str, Any]) -> str:
    if entry is None:
        return _comment(key, chosen)
    options = entry.metadata.get("choices")
    return entry.metadata.get("meaning", "") + (f" ({', '.join(map(str, options))})" if options else "")


def _comment(key: str, chosen: Mapping[str, Any]) -> str:
    """The comment beside a key of an open group (agent, frontend), in the file of the choice or of a variant of it."""
    group, _, key_there = key.partition(".")
    if group not in GROUPS:
        return ""
    name = (chosen.get(group) or {}).get("name")
    for choice in sorted(choices(group), key=lambda choice: choice != name):
        lines = (resources.files("lcd.configs") / group / f"{choice}.yaml").read_text("utf-8").splitlines()
        if choice != name and f"name: {name}" not in lines:
            continue
        for line in lines:
            head, _, comment = line.partition("#")
            if head.split(":")[0].strip() == key_there and comment:
                return comment.strip()
    return ""
