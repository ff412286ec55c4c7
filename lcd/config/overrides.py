"""What a user writes behind a command, understood: keys and their values, chosen files, names of registries."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from typing import Any

import yaml

from lcd.config.budgets import choices
from lcd.config.chosen_files import Words, defaults, with_choice
from lcd.config.keys import (
    GROUPS,
    MAP,
    NAMED_ELSEWHERE,
    RANGES,
    TEXT_KEYS,
    conditions,
    groups,
    is_open,
    registered,
    schema_fields,
)
from lcd.config.nested import flatten
from lcd.config.own_code import OWN_CODE
from lcd.config.schemas import SCHEMAS, StudyConfig
from lcd.envs.errors import InputError
from lcd.envs.gym_names import PREFIX, canonical
from lcd.files.reading import RepeatedKey, plain_yaml

POSITIONAL = {
    "report": ("path", "against"),
    "import": ("path",),
    "power": ("path",),
    "verify": ("path",),
    "sync": ("path",),
    "wandb-sweep": ("path",),
    "status": ("path", "run"),
    "logs": ("path", "run"),
    "cancel": ("path", "run"),
    "retry": ("path", "run"),
    "remove": ("path", "run"),
    "list": ("what", "benchmark"),
    "completion": ("shell",),
    "view": ("task",),
    "measure": ("benchmark",),
    "new": ("what", "name"),
    "check": ("benchmark",),
    "horizon": ("mdp",),
}
KNOBS = ("task.knobs.", "study.knobs.")
"""What comes before a knob's name: of a run of one task, and of a study."""
MANY = "run"
"""The key of as many words as there are."""
STUDY = "study"
NUMBERS = ("reward_p", "seed")
FILE_KEYS = ("study",)
PATH_OR_LIST = "curriculum"
SIGNS = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[{}\[\],:]|[^'"{}\[\],:\s][^'"{}\[\],:]*""")
"""Brackets, commas and colons of a value, its quoted texts, and what lies between these."""
OWN_KEY = re.compile(r"[{,]\s*['\"]?[A-Za-z_][\w.]*:[A-Za-z_][\w.]*['\"]?\s*:")


def in_one_spelling(command: str, overrides: Sequence[str]) -> list[str]:
    """Overrides by the keys that a command has: `seeds=` is a study's, `study.seeds=` those of a single run.

    What is one thing is written in one way, whatever the command.
    """
    own = {entry.name for entry in fields(SCHEMAS[command])}
    of_study = {entry.name for entry in fields(StudyConfig)} - {"name"}
    found = []
    for text in overrides:
        head = text.partition("=")[0].partition(".")[0]
        rest = text.removeprefix("study.")
        if _has_key(text) and STUDY in own and head not in own and head in of_study:
            text = f"{STUDY}.{text}"
        elif _has_key(text) and STUDY not in own and rest != text and re.split(r"[.=]", rest)[0] in own & of_study:
            text = rest
        found.append(text)
    return found


def with_any_names(command: str, overrides: Sequence[str]) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """The overrides that Hydra can read, and by their key those whose names hold signs that it takes for its own.

    These names are tasks (ranges.TASK=[lo,hi]), what W&B's runs log (map.COLUMN=history.KEY), and module:object
    (study.frontend_params={my:Encoder: {width: 8}}).
    """
    known = {name for name, _ in schema_fields(SCHEMAS[command])}
    others: list[str] = []
    found: dict[str, dict[str, Any]] = {}
    for text in overrides:
        key, _, value = text.partition("=")
        if RANGES in known and key.startswith(f"{RANGES}."):
            # A task's name may hold an equals sign, too.
            key, _, value = text.rpartition("=")
            found.setdefault(RANGES, {})[key.removeprefix(f"{RANGES}.")] = _read(text, value, list)
        elif MAP in known and key.startswith(f"{MAP}."):
            found.setdefault(MAP, {})[key.removeprefix(f"{MAP}.")] = _constant(value)
        elif key in known and key.endswith("_params") and OWN_KEY.search(value):
            found.setdefault(key, {}).update(_read(text, value, dict))
        else:
            others.append(text)
    return others, found


def _constant(value: str) -> str | float:
    """A number where it is one; what names a key stays as it is."""
    try:
        return float(value)
    except ValueError:
        return value


def _read(text: str, value: str, kind: type) -> Any:
    try:
        found = plain_yaml(value)
    except RepeatedKey as repeated:
        raise InputError(_twice(text.partition("=")[0], str(repeated.problem))) from None
    except yaml.YAMLError:
        found = None
    if not isinstance(found, kind):
        right = "TASK=[lo,hi]" if kind is list else "{module:object: {key: value}}, with a space after each key's colon"
        raise InputError(f"{text} cannot be read: write {text.partition('=')[0].partition('.')[0]}…{right}.")
    return found


def with_keys(command: str, overrides: Sequence[str]) -> Iterator[str]:
    """The overrides, words without a key with the key that their place gives them."""
    free, many = list(POSITIONAL.get(command, ())), []
    for text in overrides:
        if free == [MANY] and not _has_key(text):
            many.append(text)
            continue
        if free and not _has_key(text):
            if free[0] == "task" and (OWN_CODE.fullmatch(text) or canonical(text).startswith(PREFIX)):
                yield f"benchmark={text}"
            text = f"{free.pop(0)}={text}"
        yield text
    if many:
        yield f"{MANY}=[{','.join(map(_quoted, many))}]"


def as_words(command: str, said: Mapping[str, Any]) -> list[str]:
    """What a user says in Python, as words of the command line: a mapping's keys behind dots where they are keys.

    Args:
        command: whose keys these are.
        said: key to value.
    """
    known = {*_keys(command), *(key.rpartition(".")[0] for key in _keys(command))}
    words = []
    for key, value in said.items():
        if isinstance(value, Mapping) and (key in known and not _is_key(command, key)):
            name = value.get("name")
            inside = {f"{key}.{inner}": each for inner, each in value.items() if inner != "name"}
            words += as_words(command, {key: name} if name is not None else {}) + as_words(command, inside)
        else:
            words.append(f"{key}={_written(value)}")
    return words


def _is_key(command: str, key: str) -> bool:
    """Whether a key has a value of its own, which may be a mapping."""
    return key in {name for name, _ in schema_fields(SCHEMAS[command])} and key not in groups(command)


def _written(value: Any) -> str:
    """A value as Hydra reads it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{inner}: {_inside(each)}" for inner, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_inside, value)) + "]"
    return str(value)


def _inside(value: Any) -> str:
    """A value within a list or mapping: texts are quoted."""
    return _quoted(value) if isinstance(value, str) else _written(value)


def _has_key(text: str) -> bool:
    head, equals, _ = text.partition("=")
    return bool(equals) and head.lstrip("+~").replace(".", "_").replace("@", "_").isidentifier()


def words_of(command: str, overrides: Iterable[str]) -> Words:
    """The user's overrides, understood."""
    from hydra.core.override_parser.types import OverrideType

    words = Words()
    for text in overrides:
        text = _spelled_out(command, text)
        override = _parsed(text)
        key = override.key_or_group
        if override.type == OverrideType.DEL or override.package is not None:
            raise InputError(f"{text} is not understood: give key=value.")
        if override.is_sweep_override():
            value = text.split("=", 1)[1]
            raise InputError(f"{text} gives several values: write a list as {key}=[{value}].")
        group = key.removesuffix(".name")
        if key in groups(command) or (group in groups(command) and group in NAMED_ELSEWHERE):
            words = with_choice(words, group, override.value())
        elif key in GROUPS and key not in conditions(command):
            raise InputError(f"{text}: 'lcd {command}' takes no {key}; {_nearest_key(command, key)}")
        else:
            _known(command, key)
            words.keys.append((key, override.value()))
    return words


def benchmark_of_task(command: str, words: Words) -> Words:
    """A task whose name begins with a benchmark's is one of that benchmark, unless another one is chosen."""
    if not {"benchmark", "task"} <= set(groups(command)) or "benchmark" in words.choices:
        return words
    said = [words.names.get("task", words.choices.get("task")), *(str(v) for k, v in words.keys if k == "task.name")]
    heads = [name.partition("/")[0] for name in said if name]
    found = [head for head in heads if head in choices("benchmark") or head in registered("benchmark")][-1:]
    return with_choice(words, "benchmark", found[0]) if found else words


def _spelled_out(command: str, text: str) -> str:
    """The override, with quotes around a path."""
    head, _, value = text.partition("=")
    if not _has_key(text):
        raise InputError(f"'{text}' is not understood: give key=value; 'lcd {command} --help' lists the keys.")
    plain = value not in ("", "null") and value[0] not in "'\""
    path = (
        head in (*TEXT_KEYS, "what")
        or (head in FILE_KEYS and value.endswith((".yaml", ".yml")))
        or (head == PATH_OR_LIST and value[:1] not in "[{")
    )
    # A task's name may go on with what is varied, whose signs mean something to Hydra.
    name = (head in ("task", "benchmark", "masks") and ":" in value) or (
        head in conditions(command) and head not in NUMBERS and value[:1] != "["
    )
    if plain and (path or name):
        value = _quoted(value)
    return f"{head}={value}"


def _quoted(text: str) -> str:
    """A text that Hydra reads back as it is; backslashes are special only before a quote and at the end."""
    return "'" + re.sub(r"(\\*)('|$)", lambda found: found[1] * 2 + found[2].replace("'", "\\'"), text) + "'"


@cache
def _parser() -> Any:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    return OverridesParser.create()


def _parsed(text: str) -> Any:
    from hydra.errors import HydraException

    key, _, value = text.partition("=")
    try:
        found = _parser().parse_override(text)
    except (HydraException, ValueError, RecursionError) as error:
        raise InputError(
            f"{key}={value} cannot be read: close its brackets and quotes, or quote it as {key}=\"'…'\"."
        ) from error
    if (repeated := _repeated_key(value)) is not None:
        raise InputError(_twice(key, f"'{repeated}'"))
    return found


def _twice(key: str, repeated: str) -> str:
    return f"{key} has the key {repeated} twice: leave one of them out."


def _repeated_key(value: str) -> str | None:
    """A key that a mapping in a value has twice, of which Hydra takes the last; None where there is none."""
    signs = SIGNS.findall(value)
    inside: list[set[str] | None] = []
    for before, sign, after in zip(["", *signs], signs, [*signs[1:], ""], strict=False):
        if sign in ("{", "["):
            inside.append(set() if sign == "{" else None)
        elif sign in ("}", "]"):
            inside = inside[:-1]
        elif after == ":" and before in ("{", ",") and inside and (keys := inside[-1]) is not None:
            if (key := sign.strip()) in keys:
                return key
            keys.add(key)
    return None


@cache
def _keys(command: str) -> list[str]:
    named = [name for name, _ in schema_fields(SCHEMAS[command])]
    return sorted({*named, *flatten(defaults(command)), *groups(command)})


def _nearest_key(command: str, key: str) -> str:
    """The end of an error's sentence: the key that was probably meant, in whatever part of the config."""
    # Of keys that end alike the one that lies least deep is meant.
    last = {name.rpartition(".")[2]: name for name in sorted(_keys(command), key=lambda name: -name.count("."))}
    for wanted, options in ((key, {name: name for name in _keys(command)}), (key.rpartition(".")[2], last)):
        if close := get_close_matches(wanted, options, n=1, cutoff=0.75):
            return f"did you mean '{options[close[0]]}'?"
    return f"'lcd {command} --help' lists the keys."


def _known(command: str, key: str) -> None:
    schema = SCHEMAS[command]
    if "_target_" in key.split("."):
        raise InputError(f"{key} is not allowed: give a registered name or module:object.")
    if key in {name for name, _ in schema_fields(schema)} or is_open(key, schema):
        return
    sections = {name.rpartition(".")[0] for name in _keys(command)}
    if key in sections:
        inside = [name for name in _keys(command) if name.startswith(key + ".")]
        raise InputError(f"{key} has no value of its own: give one of {', '.join(inside)}.")
    for one, other in (KNOBS, KNOBS[::-1]):
        # A study and a run of one task have knobs under keys of their own.
        if key.startswith(one) and (right := other + key.removeprefix(one)) and is_open(right, schema):
            raise InputError(f"{key} is not a key of 'lcd {command}': there it is {right}.")
    raise InputError(f"{key} is not a key of 'lcd {command}': {_nearest_key(command, key)}")
