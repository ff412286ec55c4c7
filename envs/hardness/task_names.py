"""Names of tasks that say what is varied: `hardness/discrete:delay=4,sequence_length=2`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lcd.envs.errors import InputError

PREFIX = "hardness/"


def task_name(base: str, varied: Mapping[str, Any], order: Iterable[str]) -> str:
    """The name of a base with some knobs set, in a fixed order.

    Args:
        base: such as "discrete" or "mujoco/HalfCheetah-v5".
        varied: knobs and values: numbers, texts, booleans, None or lists of these.
        order: all knobs that there are; it orders those in the name.
    """
    order = list(order)
    knobs = sorted(varied, key=lambda name: order.index(name) if name in order else len(order))
    values = ",".join(f"{name}={_written(name, varied[name])}" for name in knobs)
    return PREFIX + base + (f":{values}" if values else "")


def parse_task(name: str) -> tuple[str, dict[str, Any]]:
    """The base and the knobs of a task's name."""
    if not name.startswith(PREFIX):
        raise InputError(f"task={name} is no task of the benchmark 'hardness': give {PREFIX}discrete:delay=4, say.")
    # In curves a name may be followed by the knobs that were the same for all, in brackets.
    base, _, values = name.removeprefix(PREFIX).partition("[")[0].partition(":")
    knobs = {}
    for part in values.split(",") if values else []:
        key, equals, value = part.partition("=")
        if not key or not equals:
            raise InputError(f"task={name} has the part '{part}': give knob=value, separated by commas.")
        knobs[key] = _read(value)
    return base, knobs


def _written(name: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        text = "+".join(_written(name, entry) for entry in value)
        return text if len(value) > 1 else f"{text}+"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "none"}[value]
    if isinstance(value, int | float):
        return f"{value:.12g}"
    if isinstance(value, str) and not set(value) & set("=:+ ") and value not in ("true", "false", ""):
        return value.replace(",", "+")
    raise InputError(f"{name} is {value!r}, which cannot be written into a task's name: give numbers, names or lists.")


def _read(text: str) -> Any:
    if "+" in text:
        return [_read(part) for part in text.split("+") if part]
    if text in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
