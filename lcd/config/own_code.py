"""Code of the user's own: a module:object that a command names where a part of ours could stand."""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from lcd.config.schema_parts import BenchmarkConfig, LauncherConfig, TrackerConfig
from lcd.envs import gym_names

PARTS: tuple[str, ...] = (
    "agent",
    "frontend",
    "agents",
    "frontends",
    "contrasts",
    "analyses",
    "analysis",
    "sections",
    "section",
    "mdp",
    "masks",
)
OWN_CODE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def names_code(config: Any) -> bool:
    """Whether a command's config names code of the user's own: a module:object where a part of ours could stand.

    Only such a command looks for modules in the working directory, which may be somebody else's study.
    """
    if isinstance(config, BenchmarkConfig) and config.name.startswith(gym_names.PREFIX):
        return bool(gym_names.code_in(config.name))
    if isinstance(config, BenchmarkConfig | LauncherConfig | TrackerConfig):
        return _is_code(config.name)
    values = {entry.name: getattr(config, entry.name) for entry in fields(config)}
    if isinstance(benchmark := values.get("benchmark"), str) and names_code(BenchmarkConfig(name=benchmark)):
        return True
    named = [value for key, value in values.items() if key.removesuffix("_params") in PARTS]
    for part in values.get("parts") or ():
        named += [part.get(key) for key in PARTS] if isinstance(part, Mapping) else []
    for contrast in values.get("contrasts") or ():
        if isinstance(contrast, Mapping):
            fixed = contrast.get("at")
            named += [contrast.get("baseline"), contrast.get("variants")]
            named += [list(fixed.values())] if isinstance(fixed, Mapping) else []
    return any(map(_is_code, named)) or any(names_code(value) for value in values.values() if is_dataclass(value))


def search_working_directory() -> None:
    """Have a user's own module:object looked for where the command is given, as `python` does."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def _is_code(value: Any) -> bool:
    """Whether a name is, or a list or mapping holds, a module:object; of an agent's or front-end's config its name."""
    if isinstance(value, Mapping):
        return _is_code(value.get("name")) or any(_is_code(name) for name in value)
    if isinstance(value, list):
        return any(_is_code(name) for name in value)
    return isinstance(value, str) and OWN_CODE.fullmatch(value) is not None
