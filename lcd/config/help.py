"""`lcd <command> --help`: a command's groups and keys, their defaults, and what they mean."""

from dataclasses import Field
from importlib import resources

from lcd.config.budgets import choices
from lcd.config.chosen_files import defaults
from lcd.config.keys import GROUPS, NAMED_ELSEWHERE, flatten, groups, registered, schema_fields, show
from lcd.config.overrides import POSITIONAL
from lcd.config.schemas import SCHEMAS


def page_of(name: str, usage: str) -> str:
    """The page of a command: what it is for, its groups, its keys."""
    lines = [f"lcd {name} {usage}".rstrip(), "", f"  {SCHEMAS[name].__doc__}"]
    if taken := groups(name):
        lines += ["", "Groups (group=choice):"]
        lines += [f"  {group:<10} {_choices(group)}" for group in taken]
    if keys := key_table(name):
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


def key_table(command: str) -> list[tuple[str, str, str]]:
    """Every key of a command with its default and its meaning; for the help."""
    documented = dict(schema_fields(SCHEMAS[command]))
    rows = []
    for key, value in {**dict.fromkeys(documented), **flatten(defaults(command))}.items():
        entry = documented.get(key)
        chosen_by_group = key in GROUPS or (key.endswith(".name") and key != "study.name")
        if not chosen_by_group:
            empty = value is None and entry is not None and "dict" in str(entry.type)
            rows.append((key, "{}" if empty else show(value), _meaning(key, entry)))
    return rows


def _meaning(key: str, entry: Field | None) -> str:
    if entry is None:
        return _comment(key)
    options = entry.metadata.get("choices")
    return entry.metadata.get("meaning", "") + (f" ({', '.join(map(str, options))})" if options else "")


def _comment(key: str) -> str:
    """The comment beside a key of an open group (agent, frontend), taken from the files of that group."""
    group, _, name = key.partition(".")
    for choice in choices(group) if group in GROUPS else []:
        for line in (resources.files("lcd.configs") / group / f"{choice}.yaml").read_text("utf-8").splitlines():
            head, _, comment = line.partition("#")
            if head.split(":")[0].strip() == name and comment:
                return comment.strip()
    return ""
