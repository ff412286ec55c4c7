"""A study's file of anybody's: `study=FILE.yaml`."""

import json
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from lcd.config.budgets import BUDGETS, GROUP, OF_FILES, choices
from lcd.config.schemas import StudyConfig
from lcd.envs.errors import InputError, nearest
from lcd.files.reading import Unreadable, read_yaml

SWEEPS = "hardness/"
"""Where the shipped studies over dimensions of hardness lie."""
KEYS = tuple(entry.name for entry in fields(StudyConfig))
SECTIONS = {entry.name: tuple(key.name for key in fields(entry.type)) for entry in fields(StudyConfig)
            if is_dataclass(entry.type)}  # fmt: skip
LONGEST_STUDY = 20_000
"""Letters that a study's file may hold."""
LONGEST_NAME, LONGEST_PATH = 200, 3000
"""Room is left for what is written beside and below a path."""


def read_study(name: str) -> dict[str, Any]:
    """The content of a study's file, checked; its name is the file's unless it says another."""
    check_path("study", name)
    file = Path(name).expanduser()
    where = f"study={file}"
    try:
        found = read_yaml(file)
    except Unreadable as why:
        raise InputError(f"{where} cannot be read ({why}): give a YAML file with keys of study.…") from None
    if not isinstance(found, Mapping):
        raise InputError(f"{where} must hold a set of keys: {', '.join(KEYS)}.")
    if len(json.dumps(found)) > LONGEST_STUDY:
        raise InputError(f"{where} holds more than {LONGEST_STUDY:,} letters: a study is said in some lines.")
    check_study(found, where, (*KEYS, *OF_FILES))
    for budget, changes in found.get(BUDGETS, {}).items():
        if budget not in choices(GROUP):
            raise InputError(f"{where}: {BUDGETS}.{budget} is no budget: {nearest(budget, choices(GROUP))}")
        check_study(changes, f"{where}: {BUDGETS}.{budget}", KEYS)
    return {"name": file.stem} | dict(found)


def check_study(study: Any, where: str, keys: tuple[str, ...]) -> None:
    """Refuse keys that a study does not have, and what is no plain data.

    Args:
        study: What a file says of it, or what it says of a budget.
        where: The file, for an error's sentence.
        keys: Those that are allowed here.
    """
    if not isinstance(study, Mapping):
        raise InputError(f"{where} must be a set of keys: {', '.join(keys)}.")
    for key, value in study.items():
        if key not in keys:
            raise InputError(f"{where}: '{key}' is no key of a study: {nearest(str(key), keys)}")
        _refuse_interpolation(value, f"{where}: {key}")
        if key == BUDGETS and not isinstance(value, Mapping):
            raise InputError(f"{where}: {key} must be a set of keys: budgets, each with what it changes.")
        if key not in SECTIONS:
            continue
        if not isinstance(value, Mapping):
            raise InputError(f"{where}: {key}={value} must be a set of keys: {', '.join(SECTIONS[key])}.")
        for last in value:
            if last not in SECTIONS[key]:
                raise InputError(f"{where}: '{key}.{last}' is no key of a study: {nearest(str(last), SECTIONS[key])}")


def _refuse_interpolation(value: Any, where: str) -> None:
    """Refuse what would have the environment's variables, or other keys, put in its place."""
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for each in inside:
        _refuse_interpolation(each, where)
    if isinstance(value, str) and "${" in value:
        raise InputError(f"{where}={value} must not hold ${{: write what it stands for.")


def check_path(key: str, value: str) -> None:
    """Refuse what is no path.

    Args:
        key: The config key, for the error's sentence.
        value: The path.
    """
    if value == "":
        raise InputError(f"{key} is empty: give a path.")
    if max(len(part) for part in os.fsencode(value).split(b"/")) > LONGEST_NAME or len(value) > LONGEST_PATH:
        raise InputError(f"{key}={value[:40]}… is too long for a path: give a shorter one.")
    try:
        Path(value).expanduser()
    except RuntimeError:
        raise InputError(f"{key}={value}: nobody on this machine is called so; give ./{value} for a file.") from None
