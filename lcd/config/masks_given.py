"""`masks=`: where the labels of somebody's environment come from, put into the name of its benchmark.

A run's config names its benchmark and no more, so that all that views are made of stands in that name: a table of
colours with its colours, whatever the file was called.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from lcd.config.own_code import OWN_CODE
from lcd.config.schema_parts import BenchmarkConfig, TaskConfig
from lcd.envs.errors import InputError
from lcd.envs.gym_names import FLOW, PREFIX, canonical, with_masks
from lcd.envs.masks import ColourMasks
from lcd.files.reading import Unreadable, read_yaml

STAND_IN = "frontend_gain"
"""The contrast that stands in for φ where the front-end that learns from motion stands in for masks."""
FILES = (".yaml", ".yml", ".json")


def settle_benchmark(config: Any) -> None:
    """Write the benchmark's whole name into a command's config; Gymnasium's `module:Id-v0` gets its prefix."""
    given = {entry.name: getattr(config, entry.name) for entry in fields(config)}
    benchmark, task, masks = given.get("benchmark"), given.get("task"), given.get("masks")
    if not isinstance(benchmark, BenchmarkConfig):
        return
    own = whole = canonical(benchmark.name)
    if masks == FLOW:
        _through_flow(given)
        whole = with_masks(own, FLOW)
    elif masks is not None:
        whole = with_masks(own, _told(masks))
    # `lcd view gym:ID` is of the whole benchmark.
    if isinstance(task, TaskConfig) and task.name in (benchmark.name, own) and own.startswith(PREFIX):
        task.name = whole
    benchmark.name = whole


def _told(masks: str) -> str:
    """The masks as they stand in a benchmark's name."""
    if masks.endswith(FILES):
        try:
            return str(ColourMasks.of_table(read_yaml(masks), masks))
        except (Unreadable, OSError) as why:
            raise InputError(f"masks={masks} cannot be read ({why}): give a YAML file of class: colour.") from None
    key = masks.removeprefix("info.")
    if OWN_CODE.fullmatch(masks) or (key != masks and key.isprintable() and key and not set(key) & set("?+")):
        return masks
    raise InputError(
        f"masks={masks} is not understood: give module:function, which says the labels of a moment, a YAML file of "
        "class: colour, info.KEY, or flow."
    )


def _through_flow(given: dict[str, Any]) -> None:
    """Ask what agents gain that see pixels through the flow front-end."""
    study = given.get("study")
    if study is None:
        raise InputError(
            "masks=flow compares agents that see through flow with others: it is for lcd diagnose and check."
        )
    if STAND_IN not in (study.contrasts or []):
        study.contrasts = [*(study.contrasts or []), STAND_IN]
