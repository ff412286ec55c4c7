"""The one way from what other people's runs tell to the columns of a curve: a map of column to source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcd.curves.table import COLUMNS, LARGEST, NEEDED
from lcd.envs.errors import InputError, nearest
from lcd.files.reading import Unreadable, read_yaml
from lcd.pipelines.importing.read_run import ReadRun

if TYPE_CHECKING:
    import pandas as pd

SEED = "{seed}"
HISTORY = "history."
PLACES = ("history", "config", "summary", "run", "path")
"""What sources that are no constants begin with."""
FROM_RUN = ("id", "name", "group", "job_type")
EXAMPLE = "config.KEY, summary.KEY, history.KEY, path.NAME, run.name or a constant"
FIELD = re.compile(r"\{(\w+)\}")


def mapping_from(given: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """The mapping that `map=FILE` or `map.COLUMN=SOURCE` give, each of its sources checked."""
    if given is not None and not isinstance(given, str | Mapping):
        raise InputError(f"map={given!r} must be a YAML file of column: source, or a mapping of these.")
    content = _file(Path(given).expanduser()) if isinstance(given, str) else dict(given or {})
    for column, source in content.items():
        if column not in COLUMNS:
            raise InputError(f"map: '{column}' is no column of curves; {nearest(str(column), COLUMNS)}")
        if not isinstance(source, str | Real) or isinstance(source, bool):
            raise InputError(f"map.{column}={source} must be a text or a number: config.KEY, history.KEY, a constant.")
        number: Any = 0 if isinstance(source, str) else source
        if not -LARGEST < number < LARGEST:
            raise InputError(f"map.{column}={source} must be a finite number below {LARGEST:g}.")
        if str(source).startswith("run.") and source not in [f"run.{name}" for name in FROM_RUN]:
            raise InputError(
                f"map.{column}={source} is unknown: {nearest(str(source), [f'run.{n}' for n in FROM_RUN])}"
            )
    return content


def check_complete(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping that says where every needed column comes from; what it lacks is named."""
    every = any(SEED in str(source) for source in mapping.values())
    lacking = [name for name in NEEDED if name not in mapping and not (name == "seed" and every)]
    if lacking:
        raise InputError(f"map says nothing of {', '.join(lacking)}: give map.{lacking[0]}=… ({EXAMPLE}).")
    if not any(str(mapping[name]).startswith(HISTORY) for name in ("step", "return_mean")):
        raise InputError("map.step and map.return_mean must come from the history: map.return_mean=history.KEY.")
    return dict(mapping)


def _file(path: Path) -> dict[str, Any]:
    try:
        content = read_yaml(path)
    except Unreadable as why:
        raise InputError(f"map={path} cannot be read ({why}): give a YAML file of column: source.") from None
    if not isinstance(content, dict) or not content:
        raise InputError(f"map={path} holds no mapping: give a YAML file with a line 'column: source' for each.")
    return content


def refuse_constants_that_are_columns(run: ReadRun, mapping: Mapping[str, Any]) -> None:
    """Refuse a constant that is what the run calls a column, or a setting: its source was meant."""
    columns = set(map(str, run.table.columns))
    for column, source in mapping.items():
        if not isinstance(source, str) or source.partition(".")[0] in PLACES:
            continue
        place = "history" if source in columns else "config" if source in run.config else None
        if place is not None:
            kind = "column" if place == "history" else "setting"
            raise InputError(
                f"map.{column}={source} would be the constant '{source}', but the logs have a {kind} of that name: "
                f"give map.{column}={place}.{source}."
            )


def read_by(run: ReadRun, mapping: Mapping[str, Any], named: Mapping[str, str] | None = None) -> pd.DataFrame:
    """The rows of one run as columns of curves; those that lack what is needed are left out.

    Args:
        run: what it told.
        mapping: a complete one.
        named: what the names of its folders say, for sources `path.NAME`.
    """
    import pandas as pd

    fixed = {name: _fixed(run, source, named or {}) for name, source in mapping.items() if not of_history(source)}
    if any(fixed[name] in (None, "") for name in fixed if name in NEEDED):
        return pd.DataFrame()
    told = {name: str(source).removeprefix(HISTORY) for name, source in mapping.items() if of_history(source)}
    history = run.table
    parts = []
    for seed, keys in _by_seed(list(map(str, history.columns)), told):
        if any(keys[name] not in history for name in keys if name in NEEDED):
            continue
        part = pd.DataFrame({name: history[key] for name, key in keys.items() if key in history})
        for name, value in fixed.items():
            part[name] = value
        if seed is not None:
            part["seed"] = seed
        parts.append(part[_whole(part)])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _whole(part: pd.DataFrame) -> pd.Series:
    """The rows that have all that is needed, and a finite return."""
    import numpy as np
    import pandas as pd

    from lcd.curves.reading import as_numbers

    whole = pd.Series(True, part.index)
    for name in NEEDED:
        whole &= part[name].notna() & (part[name].astype(object) != "")
    return whole & np.isfinite(as_numbers(part["return_mean"]))


def of_history(source: Any) -> bool:
    """Whether a source is told anew at each step."""
    return isinstance(source, str) and source.startswith(HISTORY)


def _fixed(run: ReadRun, source: Any, named: Mapping[str, str]) -> Any:
    if not isinstance(source, str):
        return source
    place, _, key = source.partition(".")
    if place == "run" and key in FROM_RUN:
        return getattr(run, key)
    if place in ("config", "summary"):
        return getattr(run, place).get(key)
    return named.get(key) if place == "path" and key else source


def _by_seed(columns: Iterable[str], told: Mapping[str, str]) -> list[tuple[int | None, dict[str, str]]]:
    """The history's keys of each seed that a run has, where keys name seeds (`…/seed_{seed}`)."""
    patterns = [key for key in told.values() if SEED in key]
    if not patterns:
        return [(None, dict(told))]
    pattern = re.compile(r"(\d{1,18})".join(map(re.escape, patterns[0].split(SEED, 1))))
    seeds = sorted({int(found[1]) for key in columns if (found := pattern.fullmatch(key))})
    return [(seed, {name: key.replace(SEED, str(seed)) for name, key in told.items()}) for seed in seeds]


class FolderNames:
    """How somebody's folders are called: `{task}/{view}/p{reward_p}/seed_{seed}`; {_} stands for anything."""

    def __init__(self, pattern: str | None) -> None:
        if pattern is not None and not isinstance(pattern, str):
            raise InputError(f"folders={pattern!r} must be a text: '{{task}}/{{view}}/p{{reward_p}}/seed_{{seed}}'.")
        self.pattern = pattern
        self.fields = [name for name in FIELD.findall(pattern or "") if name.strip("_")]
        if pattern is not None and not self.fields:
            raise InputError(
                f"folders={pattern} names nothing: write {{COLUMN}} where a column's value stands, as in "
                "'{task}/{view}/p{reward_p}/seed_{seed}'."
            )
        if odd := [name for name in self.fields if not name.isidentifier()]:
            raise InputError(
                f"folders={pattern} has {{{odd[0]}}}: a name begins with a letter; write {{_}} for the rest."
            )
        if twice := [name for name in self.fields if self.fields.count(name) > 1]:
            raise InputError(f"folders={pattern} has {{{twice[0]}}} twice: leave one of them out, or write {{_}}.")
        # Every second piece is a field's name; in one part of a path none is empty.
        pieces = FIELD.split(pattern or "")
        expression = "".join(
            re.escape(piece) if index % 2 == 0 else "[^/]+?" if not piece.strip("_") else f"(?P<{piece}>[^/]+?)"
            for index, piece in enumerate(pieces)
        )
        self._expression = re.compile(f"(?:.*/)?{expression}")

    @property
    def mapping(self) -> dict[str, str]:
        """Where columns come from that folders are named by."""
        return {name: f"path.{name}" for name in self.fields if name in COLUMNS}

    def read(self, name: str) -> dict[str, str] | None:
        """What a run's name says; None where it is of another form."""
        if self.pattern is None:
            return {}
        found = self._expression.fullmatch(name)
        return None if found is None else found.groupdict()
