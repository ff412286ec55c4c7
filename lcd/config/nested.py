"""Dictionaries within dictionaries, and the dotted keys of what lies in them."""

from collections.abc import Collection, Mapping
from typing import Any


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one dictionary with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def without(config: Mapping[str, Any], keys: Collection[str], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries without some dotted keys."""
    return {
        key: without(value, keys, f"{prefix}{key}.") if isinstance(value, Mapping) else value
        for key, value in config.items()
        if f"{prefix}{key}" not in keys
    }


def with_changes(config: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Nested dictionaries with changes; `a.b` is the key `b` in the dictionary `a`, made where there is none."""
    found = dict(config)
    for key, value in changes.items():
        section, dot, inner = key.partition(".")
        old = found.get(section)
        found[section] = with_changes(old if isinstance(old, Mapping) else {}, {inner: value}) if dot else value
    return found
