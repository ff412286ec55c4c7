"""Reading YAML, JSON and small tables that anybody may have written: what comes back is plain data."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import yaml

from lcd.envs.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

DEEPEST = 60
"""How many lists and mappings may lie in one another; ours have five."""
DEEPEST_SAID = 6
"""Keys within keys that are told to a reader."""
MOST_ENTRIES = 1_000_000
"""A few lines of YAML can stand for more entries than any memory holds."""
LARGEST = 2**63 - 1
ENTRY = re.compile(r"^[A-Za-z_]\w*:", re.MULTILINE)
"""Where an entry of a file's mapping begins."""


class Unreadable(ValueError):
    """A file does not hold what it should; the message says why, to be put in brackets."""


class RepeatedKey(yaml.MarkedYAMLError):
    """A mapping has a key twice; the problem names it."""


class PlainLoader(yaml.SafeLoader):
    """PyYAML's safe one, but that a key which a mapping has twice is refused: it would take the last without a word."""

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        """A mapping as its text has it, before others are merged into it."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if (key.tag, key.value) in seen:
                raise RepeatedKey(problem=f"'{key.value}'", problem_mark=key.start_mark)
            seen.add((key.tag, key.value))
        return node


def plain_yaml(text: str) -> Any:
    """As `yaml.safe_load`, of which no key is lost."""
    return yaml.load(text, PlainLoader)


def open_regular(path: str | Path) -> BinaryIO:
    """A regular file, open to be read: a pipe or a device may never end."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise Unreadable("it is no regular file")
        return open(path, "rb")
    except OSError as error:
        raise Unreadable(error.strerror or type(error).__name__) from error


def read_bytes(path: str | Path, most: int | None = None) -> bytes:
    """The content of a regular file; refused where it has more than `most` bytes."""
    try:
        with open_regular(path) as file:
            if most is not None and os.fstat(file.fileno()).st_size > most:
                raise Unreadable(f"it has more than {most:,} bytes")
            return file.read()
    except OSError as error:
        raise Unreadable(error.strerror or type(error).__name__) from error


def read_yaml(path: str | Path) -> Any:
    """The content of a YAML file, if it is plain data: texts, finite numbers, lists, mappings with texts as keys."""
    return _parsed(path, _load_yaml, "YAML")


def _load_yaml(text: str) -> Any:
    """As `yaml.safe_load`, which takes 9 ms for a run's config: of ten thousand runs most entries are the same."""
    found = list(ENTRY.finditer(text))
    starts = [each.start() for each in found]
    if starts and starts[0] == 0 and len({each.group() for each in found}) == len(found):
        entries = [_entry(text[start:end]) for start, end in zip(starts, [*starts[1:], None], strict=True)]
        if None not in entries:
            return json.loads(f"{{{','.join(map(str, entries))}}}")
    return plain_yaml(text)


@lru_cache(maxsize=4096)
def _entry(text: str) -> str | None:
    """An entry of a mapping as it stands in JSON; None where its text means nothing, or no plain data, by itself."""
    try:
        found = plain_yaml(text)
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(found, dict) or len(found) != 1 or not_plain(found) is not None:
        return None
    return json.dumps(found)[1:-1]


def read_json(path: str | Path) -> Any:
    """The content of a JSON file, if its numbers are finite."""
    return _parsed(path, json.loads, "JSON")


def read_table(path: str | Path, key: str, needed: Sequence[str], right: str) -> pd.DataFrame:
    """A CSV file with certain columns.

    Args:
        path: the file.
        key: the config's key that names it, for an error's sentence.
        needed: the columns.
        right: what should be given, for the sentence.

    Raises:
        InputError: where it cannot be read, or lacks a column.
    """
    import pandas as pd

    try:
        with open_regular(path) as file:
            table = pd.read_csv(file)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{key}={path} cannot be read ({why}): give {right}.") from None
    require_columns(table.columns, needed, f"{key}={path}", f"give {right}")
    return table


def require_columns(columns: Collection[str], needed: Sequence[str], whose: str, fix: str) -> None:
    """Refuse a table that lacks columns, naming all that it lacks."""
    if missing := [column for column in needed if column not in columns]:
        named = ", ".join(f"'{column}'" for column in missing)
        raise InputError(f"{whose} has no column{'s' * (len(missing) > 1)} {named}: {fix}.")


def parse_json(text: str) -> Any:
    """What a JSON text holds, if its numbers are finite."""
    return _checked(text, json.loads, "JSON")


def parse_yaml(content: bytes) -> Any:
    """What a YAML file's content is, if it is plain data."""
    return _checked(_decoded(content), plain_yaml, "YAML")


def _parsed(path: str | Path, parse: Callable[[str], Any], kind: str) -> Any:
    return _checked(_decoded(read_bytes(path)), parse, kind)


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("it is not UTF-8") from None


def _checked(text: str, parse: Callable[[str], Any], kind: str) -> Any:
    try:
        found = parse(text)
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError) as error:
        where = getattr(error, "problem_mark", None)
        line = getattr(error, "lineno", None) or (where.line + 1 if where else None)
        what = f"it has the key {error.problem} twice" if isinstance(error, RepeatedKey) else f"it is not {kind}"
        raise Unreadable(what + (f": see line {line}" if line else "")) from None
    if (reason := not_plain(found)) is not None:
        raise Unreadable(f"it holds {reason}")
    return found


def not_plain(value: Any) -> str | None:
    """What keeps a value from being plain data, which JSON and YAML both hold; None where nothing does."""
    entries = 0
    place: list[str] = []

    def reason(value: Any, depth: int) -> str | None:
        nonlocal entries
        entries += 1
        if depth > DEEPEST or entries > MOST_ENTRIES:
            return "too many entries" if entries > MOST_ENTRIES else "lists or mappings that are nested too deeply"
        if isinstance(value, float) and not math.isfinite(value):
            return f"{value}, which is no finite number"
        if isinstance(value, int) and abs(value) > LARGEST:
            return "a whole number of more than 64 bits"
        if isinstance(value, str) and not writable(value):
            return f"{value!a}, which is no text that can be written to a file"
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    return f"the key {key!r}, which is no text"
            for key, each in value.items():
                if (found := reason(key, depth + 1) or reason(each, depth + 1)) is not None:
                    place.insert(0, key)
                    return found
            return None
        if isinstance(value, list):
            return next(filter(None, (reason(each, depth + 1) for each in value)), None)
        return None if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"

    found = reason(value, 0)
    return (
        f"{found} ({'.'.join(place)})"
        if found and 0 < len(place) <= DEEPEST_SAID and writable("".join(place))
        else found
    )


def writable(text: str) -> bool:
    """Whether files and paths can hold a text: NUL ends a path, and half a pair of surrogates is no character."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
