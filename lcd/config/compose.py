"""The config of a command: chosen files and what a user says, typed by `lcd.config.schemas` and checked."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from lcd.config.chosen_files import composed, in_full
from lcd.config.keys import WITH_SETTINGS
from lcd.config.masks_given import settle_benchmark
from lcd.config.overrides import benchmark_of_task, in_one_spelling, with_any_names, with_keys, words_of
from lcd.config.schema_parts import SETTINGS
from lcd.config.schemas import SCHEMAS
from lcd.config.values import check_values, refuse_missing, refuse_odd, refuse_target, typed
from lcd.envs.errors import InputError


def compose(command: str, overrides: Sequence[str] = ()) -> Any:
    """The config of a command.

    Args:
        command: a key of `SCHEMAS`.
        overrides: `key=value`; `group=name` takes a file of the group, a registered name or module:object.

    Returns:
        An instance of the command's dataclass.

    Raises:
        InputError: for every mistake.
    """
    from omegaconf import OmegaConf

    command, overrides = in_full(command, overrides)
    overrides, named = with_any_names(command, in_one_spelling(command, overrides))
    words = benchmark_of_task(command, words_of(command, with_keys(command, overrides)))
    plain = composed(command, words)
    refuse_target(plain)
    refuse_odd(plain)
    refuse_missing(command, plain)
    for key, value in named.items():
        _set(plain, key, value)
    _gather_settings(plain)
    if plain.get("curriculum") and plain.get("task") is None:
        plain["task"] = {"name": "curriculum", "knobs": {}}
    config = OmegaConf.to_object(typed(SCHEMAS[command], plain))
    settle_benchmark(config)
    check_values(config)
    return config


def _set(plain: dict[str, Any], key: str, value: dict[str, Any]) -> None:
    *sections, last = key.split(".")
    for section in sections:
        plain = plain[section]
    if isinstance(plain[last], str):
        raise InputError(
            f"{key}={plain[last]} and {key}.{next(iter(value))} cannot both be given: write all into the file."
        )
    plain[last] = {**(plain[last] or {}), **value}


def _gather_settings(plain: dict[str, Any]) -> None:
    """Put the keys of a launcher's or tracker's own into its `settings`."""
    for group in WITH_SETTINGS:
        if group in plain:
            common = {entry.name for entry in fields(WITH_SETTINGS[group])}
            own = {key: value for key, value in plain[group].items() if key not in common}
            plain[group] = {key: value for key, value in plain[group].items() if key in common} | {SETTINGS: own}
