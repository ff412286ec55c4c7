"""The values of a config, refused in one sentence where they cannot be meant."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from lcd.config.budgets import choices
from lcd.config.keys import TEXT_KEYS, groups, registered, schema_fields, show
from lcd.config.nested import flatten
from lcd.config.study_files import check_path
from lcd.envs.errors import InputError, nearest
from lcd.files.reading import not_plain
from lcd.process.limits import require_memory
from lcd.scores.hard import HardFrom

NO_KNOBS = ("self", "task", "view", "split", "num_envs", "copies", "seed", "seeds", "reward_p")
SEED_BYTES = 1024
"""Least that a seed takes: it has networks, environments and random streams of its own."""


def seed_list(key: str, value: Any) -> list[int]:
    """Seeds from a number of them or from a list.

    Args:
        key: the config key, for the error's sentence.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        require_memory(f"{key}={value}", value * SEED_BYTES)
        return list(range(value))
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        whole = all(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 for seed in value)
        if whole and len(set(value)) == len(value):
            return list(value)
    raise InputError(f"{key}={show(value)} must be a number of seeds (5) or a list of different seeds ([0,1,2]).")


def check_knob(key: str, name: str) -> None:
    """Refuse as a knob what every environment is made with anyway.

    Args:
        key: the config key, for the error's sentence.
    """
    if name in NO_KNOBS:
        raise InputError(f"{key}: '{name}' is no knob of an environment; commands have keys of their own for it.")


def check_probabilities(key: str, value: Any) -> None:
    """Refuse what is no probability of keeping a reward, or a list of them."""
    values = value if isinstance(value, list) else [value]
    numbers = all(isinstance(p, int | float) and not isinstance(p, bool) for p in values)
    if not values or not numbers or len(set(values)) != len(values) or not all(0 < p <= 1 for p in values):
        raise InputError(f"{key}={show(value)} must lie in (0, 1]{', each once' if value is values else ''}.")


def refuse_target(config: Any, path: str = "") -> None:
    entries: Iterable[tuple[Any, Any]] = ()
    if isinstance(config, Mapping):
        entries = config.items()
    elif isinstance(config, list):
        entries = enumerate(config)
    for key, value in entries:
        if key == "_target_":
            raise InputError(f"{path}_target_={value} is not allowed: give a registered name or module:object.")
        refuse_target(value, f"{path}{key}.")


def refuse_odd(plain: Mapping[str, Any]) -> None:
    """What a run is told apart by is written to files, which do not hold everything."""
    for key, value in flatten(plain).items():
        if (reason := not_plain(value)) is not None:
            raise InputError(f"{key} holds {reason}: give another value.")
        head, _, last = key.rpartition(".")
        if head.rpartition(".")[2] == "knobs":
            check_knob(key, last)


def refuse_missing(command: str, config: Mapping[str, Any]) -> None:
    task = config.get("task") or {}
    if "task" in groups(command) and not isinstance(task.get("name"), str) and not config.get("curriculum"):
        raise InputError(f"task is missing: give task=…; {nearest('', registered('task'))}")
    for key, value in flatten(config).items():
        if value == "???":
            raise InputError(f"{key} is missing: give {key}=….")


def typed(schema: type, plain: dict[str, Any]) -> Any:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    structured = OmegaConf.structured(schema)
    try:
        return OmegaConf.merge(structured, plain)
    except OmegaConfBaseException as error:
        key = error.full_key or _wrong_key(structured, plain)
        value = _at(plain, key)
        expected = dict(schema_fields(schema)).get(key)
        kind = _kind(expected.type) if expected else "something else"
        raise InputError(f"{key}={show(value)} has the wrong type: it must be {kind}.") from None


def _wrong_key(structured: Any, plain: Mapping[str, Any]) -> str:
    """The key whose value has the wrong type, where OmegaConf does not say."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    def wrong(alone: dict[str, Any]) -> bool:
        try:
            OmegaConf.merge(structured, alone)
        except OmegaConfBaseException:
            return True
        return False

    for head, value in plain.items():
        for name, inner in value.items() if isinstance(value, Mapping) else ():
            if wrong({head: {name: inner}}):
                return f"{head}.{name}"
        if wrong({head: value}):
            return head
    return ""


def _at(plain: Mapping[str, Any], key: str) -> Any:
    """What nested dictionaries hold at a dotted key."""
    found: Any = plain
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _kind(annotation: Any) -> str:
    text = annotation.__name__ if isinstance(annotation, type) and "[" not in str(annotation) else str(annotation)
    words = {
        "int": "a whole number",
        "float": "a number",
        "str": "a text",
        "list[str]": "a list of names ([a,b])",
        "list[float]": "a list of numbers ([1,0.5])",
        "list[typing.Any]": "a list",
        "dict[str, typing.Any]": "a set of keys",
    }
    return " or ".join(words.get(part, "null" if part == "None" else part) for part in text.split(" | "))


def check_values(config: Any, prefix: str = "") -> None:
    """Refuse values outside a key's choices or below its least value."""
    for entry in fields(config):
        value, key = getattr(config, entry.name), prefix + entry.name
        if is_dataclass(value):
            check_values(value, f"{key}.")
            continue
        options, least = entry.metadata["choices"], entry.metadata["least"]
        unsaid = value is None and entry.default is None
        if options and value not in options and not unsaid:
            raise InputError(f"{key}={show(value)} is unknown: {nearest(str(value), options)}")
        # A text ("Infinity") becomes a number only where the schema says that it is one.
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{key}={value} must be a finite number.")
        if least is not None and not unsaid:
            _check_least(key, value, least, auto=entry.default == "auto")
        # Ranges may be given one by one, without a file.
        if entry.name in TEXT_KEYS and isinstance(value, str):
            check_path(key, value)
        if entry.name == "seeds":
            seed_list(key, value)
        if entry.name == "reward_p" and value is not None:
            check_probabilities(key, value)
        if entry.name == "threshold":
            HardFrom.parse(key, value)
        if key == "study.steps":
            _check_steps(key, value)


def _check_least(key: str, value: Any, least: float, auto: bool) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not (auto and value == "auto") and not (whole and value >= least):
        kind = "auto or a whole number" if auto else "a whole number"
        raise InputError(f"{key}={show(value)} must be {kind} of at least {least}.")


def _check_steps(key: str, value: Any) -> None:
    """Refuse what is neither a number of steps, nor one for each agent, nor null."""
    by_agent = value if isinstance(value, Mapping) else {"default": value}
    for agent, steps in by_agent.items():
        known = agent == "default" or ":" in agent or agent in {*choices("agent"), *registered("agent")}
        if not known:
            raise InputError(f"{key}.{agent} is no agent: {nearest(agent, {*choices('agent'), *registered('agent')})}")
        whole = isinstance(steps, int) and not isinstance(steps, bool) and steps >= 1
        if not whole and not (steps is None and by_agent is not value):
            raise InputError(
                f"{key}={show(value)} must be a whole number of at least 1, one for each agent "
                "({ppo: 1000, default: 500}), or null for the budget's."
            )
