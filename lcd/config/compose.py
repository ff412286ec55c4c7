"""Composition of the commands' configs by Hydra from the groups in `lcd.configs`, typed by `lcd.config.schemas`."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache
from typing import Any

import yaml

from lcd.config import budgets
from lcd.config.budgets import USUAL_STUDY, choices
from lcd.config.own_code import OWN_CODE
from lcd.config.registries import KINDS, registry
from lcd.config.schemas import SCHEMAS, SETTINGS, LauncherConfig, TrackerConfig
from lcd.config.study_files import SWEEPS, check_path, read_study
from lcd.envs.errors import InputError, nearest
from lcd.files.reading import not_plain
from lcd.process.limits import require_memory

HYDRA_VERSION = "1.3"
GROUPS = (
    "benchmark",
    "task",
    "agent",
    "frontend",
    "launcher",
    "tracker",
    "study",
    "budget",
    "stopping",
)
SHORT_NAMES = {"ablate": ("study", "study=frontend"), "sweep": ("experiment", f"study={SWEEPS}delay")}
"""Commands that are `lcd diagnose` with another study: the key that chooses it, and the usual one."""
RANGES = "ranges"
POSITIONAL = {
    "report": ("path", "against"),
    "power": ("path",),
    "verify": ("path",),
    "list": ("what",),
    "view": ("task",),
    "measure": ("benchmark",),
    "horizon": ("mdp",),
}
NAMED_ELSEWHERE = ("benchmark", "agent", "frontend", "launcher", "tracker")
"""Groups of which a registry, or a module:object, has more than there are files."""
TEXT_KEYS = ("out", "path", "against", "policy", "mdp", "bridge", "horizons", RANGES)
FILE_KEYS = ("study",)
WITH_SETTINGS = {"launcher": LauncherConfig, "tracker": TrackerConfig}
"""Groups whose choices have keys of their own beside those that all have."""
NO_KNOBS = ("self", "task", "view", "split", "num_envs", "copies", "seed", "seeds", "reward_p")
PATH_OR_LIST = "curriculum"
OWN_KEY = re.compile(r"[{,]\s*['\"]?[A-Za-z_][\w.]*:[A-Za-z_][\w.]*['\"]?\s*:")
SEED_BYTES = 1024
"""Least that a seed takes: it has networks, environments and random streams of its own."""


def groups(command: str) -> list[str]:
    """The config groups that a command takes."""
    return [name for name in GROUPS if name in {entry.name for entry in fields(SCHEMAS[command])}]


def registered(group: str) -> list[str]:
    """The names in a group's registry, those of third parties included."""
    if group == "task":
        from lcd.envs.benchmarks import get_benchmark
        from lcd.envs.protocols import KnownHardness, offers

        # The tasks whose names say their benchmark, without those that are made to check the scores.
        known = [get_benchmark(name) for name in choices("benchmark")]
        tasks = [(found.name, task) for found in known if not offers(found, KnownHardness) for task in found.tasks]
        return sorted(task for name, task in tasks if task.startswith(f"{name}/"))
    return sorted(registry(group).names()) if group in KINDS else []


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

    command, overrides = _in_full(command, overrides)
    overrides, named = _with_any_names(command, overrides)
    words = _benchmark_of_task(command, _words(command, _named(command, overrides)))
    plain = _composed(command, words)
    _refuse_target(plain)
    _refuse_odd(plain)
    _refuse_missing(command, plain)
    for key, value in named.items():
        _set(plain, key, value)
    _gather_settings(plain)
    if plain.get("curriculum") and plain.get("task") is None:
        plain["task"] = {"name": "curriculum", "knobs": {}}
    config = OmegaConf.to_object(_typed(SCHEMAS[command], plain))
    _check(config)
    return config


def defaults(command: str) -> dict[str, Any]:
    """The composed config of a command without overrides, as nested dictionaries."""
    command, overrides = _in_full(command, ())
    return _composed(command, _words(command, overrides))


def _in_full(command: str, overrides: Sequence[str]) -> tuple[str, Sequence[str]]:
    """A command and its overrides, a short name as what it stands for."""
    if command not in SHORT_NAMES:
        return command, overrides
    key, usual = SHORT_NAMES[command]
    words = [usual]
    for text in overrides:
        head, equals, name = text.partition("=")
        chosen = equals and head == key != "study" and not name.endswith((".yaml", ".yml"))
        words.append(f"study={SWEEPS}{name}" if chosen else f"study={name}" if equals and head == key else text)
    return "diagnose", words


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one dictionary with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def schema_fields(schema: Any, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Every key of a schema with dots for nesting, and its field, without the settings of a choice's own."""
    for entry in fields(schema):
        if is_dataclass(entry.type):
            yield from schema_fields(entry.type, f"{prefix}{entry.name}.")
        elif entry.name != SETTINGS:
            yield prefix + entry.name, entry


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


def show(value: Any) -> str:
    """A value as it is written on the command line."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _with_any_names(command: str, overrides: Sequence[str]) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """The overrides that Hydra can read, and by their key those whose names hold signs that it takes for its own.

    These names are tasks (ranges.TASK=[lo,hi]), and module:object (study.frontend_params={my:Encoder: {width: 8}}).
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
        elif key in known and key.endswith("_params") and OWN_KEY.search(value):
            found.setdefault(key, {}).update(_read(text, value, dict))
        else:
            others.append(text)
    return others, found


def _read(text: str, value: str, kind: type) -> Any:
    try:
        found = yaml.safe_load(value)
    except yaml.YAMLError:
        found = None
    if not isinstance(found, kind):
        right = "TASK=[lo,hi]" if kind is list else "{module:object: {key: value}}, with a space after each key's colon"
        raise InputError(f"{text} cannot be read: write {text.partition('=')[0].partition('.')[0]}…{right}.")
    return found


def _set(plain: dict[str, Any], key: str, value: dict[str, Any]) -> None:
    *sections, last = key.split(".")
    for section in sections:
        plain = plain[section]
    if isinstance(plain[last], str):
        raise InputError(
            f"{key}={plain[last]} and {key}.{next(iter(value))} cannot both be given: write all into the file."
        )
    plain[last] = {**(plain[last] or {}), **value}


def _named(command: str, overrides: Sequence[str]) -> Iterator[str]:
    """The overrides, words without a key with the key that their place gives them."""
    free = list(POSITIONAL.get(command, ()))
    for text in overrides:
        if free and not _has_key(text):
            if free[0] == "task" and OWN_CODE.fullmatch(text):
                yield f"benchmark={text}"
            text = f"{free.pop(0)}={text}"
        yield text


def _has_key(text: str) -> bool:
    head, equals, _ = text.partition("=")
    return bool(equals) and head.lstrip("+~").replace(".", "_").replace("@", "_").isidentifier()


@dataclass(frozen=True)
class Words:
    """What a user says, sorted by what it does.

    Attributes:
        choices: Group → the file that was chosen last.
        names: Group → the registered name, or module:object, that takes the place of a file.
        file: The content of a study's file of theirs.
        keys: Keys with dots and their values, in order.
    """

    choices: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    file: dict[str, Any] = field(default_factory=dict)
    keys: list[tuple[str, Any]] = field(default_factory=list)


def _words(command: str, overrides: Iterable[str]) -> Words:
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
            words = _chosen(words, group, override.value())
        elif key in GROUPS:
            raise InputError(f"{text}: 'lcd {command}' takes no {key}; {_nearest_key(command, key)}")
        else:
            _known(command, key)
            words.keys.append((key, override.value()))
    return words


def _chosen(words: Words, group: str, name: Any) -> Words:
    """The words, and one more choice of a group."""
    name = name if isinstance(name, str) else show(name)
    names = {key: value for key, value in words.names.items() if key != group}
    if group == "study":
        written = name.endswith((".yaml", ".yml"))
        words = replace(words, file=read_study(name) if written else {})
        name = USUAL_STUDY if written else name
    if name in choices(group) or name == "custom":
        return replace(words, choices={**words.choices, group: name}, names=names)
    named = group == "task" or (group in NAMED_ELSEWHERE and ":" in name)
    if named or name in registered(group):
        return replace(words, choices={**words.choices, group: "custom"}, names={**names, group: name})
    options = set(choices(group)) | set(registered(group))
    raise InputError(f"{group}={show(name)} is unknown: {nearest(name, options)}")


def _benchmark_of_task(command: str, words: Words) -> Words:
    """A task whose name begins with a benchmark's is one of that benchmark, unless another one is chosen."""
    if not {"benchmark", "task"} <= set(groups(command)) or "benchmark" in words.choices:
        return words
    said = [words.names.get("task", words.choices.get("task")), *(str(v) for k, v in words.keys if k == "task.name")]
    heads = [name.partition("/")[0] for name in said if name]
    found = [head for head in heads if head in choices("benchmark")][-1:]
    return replace(words, choices={**words.choices, "benchmark": found[0]}) if found else words


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
    if plain and (path or (head == "task" and ":" in value)):
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

    try:
        return _parser().parse_override(text)
    except (HydraException, ValueError, RecursionError) as error:
        key, _, value = text.partition("=")
        raise InputError(
            f"{key}={value} cannot be read: close its brackets and quotes, or quote it as {key}=\"'…'\"."
        ) from error


def _gather_settings(plain: dict[str, Any]) -> None:
    """Put the keys of a launcher's or tracker's own into its `settings`."""
    for group in WITH_SETTINGS:
        if group in plain:
            common = {entry.name for entry in fields(WITH_SETTINGS[group])}
            own = {key: value for key, value in plain[group].items() if key not in common}
            plain[group] = {key: value for key, value in plain[group].items() if key in common} | {SETTINGS: own}


def _open(key: str, schema: Any) -> bool:
    """Whether a key lies in a part of the schema that takes any key."""
    head, _, rest = key.partition(".")
    if head in WITH_SETTINGS and rest:
        return head in {entry.name for entry in fields(schema)} and "." not in rest and rest != SETTINGS
    for entry in fields(schema):
        if entry.name == head and rest:
            return _open(rest, entry.type) if is_dataclass(entry.type) else "dict" in str(entry.type)
    return False


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
    if key in {name for name, _ in schema_fields(schema)} or _open(key, schema):
        return
    sections = {name.rpartition(".")[0] for name in _keys(command)}
    if key in sections:
        inside = [name for name in _keys(command) if name.startswith(key + ".")]
        raise InputError(f"{key} has no value of its own: give one of {', '.join(inside)}.")
    raise InputError(f"{key} is not a key of 'lcd {command}': {_nearest_key(command, key)}")


def _composed(command: str, words: Words) -> dict[str, Any]:
    """The content of the chosen files, what the budget says, and what the user says, as nested dictionaries."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    chosen = _defaults_list(command) | words.choices
    budget = None
    words = _benchmark_of_study(words, chosen)
    chosen, files = chosen | words.choices, dict(words.choices)
    if budgets.GROUP in chosen:
        benchmark = words.names.get("benchmark") or budgets.read("benchmark", chosen["benchmark"]).get("name", "")
        budget = words.choices.get(budgets.GROUP) or budgets.default_budget(benchmark, choices(budgets.GROUP))
        files[budgets.GROUP] = budget
        if chosen.get("agent", "custom") != "custom":
            files["agent"] = budgets.agent_file(budget, benchmark, chosen["agent"])
    said = f"{' '.join(f'{group}={name}' for group, name in files.items())}"
    plain = _content(command, files, said)
    for group, name in words.names.items():
        plain[group] = {**(plain.get(group) or {}), "name": name}
    if budget is not None:
        plain = budgets.settled(plain, benchmark, budget, budgets.GROUP in words.choices, words.file)
    try:
        config = OmegaConf.create(plain)
        for key, value in words.keys:
            said = f"{key}={value}"
            OmegaConf.update(config, key, value, merge=True, force_add=True)
        return OmegaConf.to_container(config, resolve=True)
    except (OmegaConfBaseException, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{said} cannot be composed: {_reason(error)}") from None


def _benchmark_of_study(words: Words, chosen: Mapping[str, str]) -> Words:
    """A study's file may say which benchmark it is of, unless another one is chosen."""
    if "study" not in chosen or "benchmark" in words.choices:
        return words
    said = words.file.get("benchmark", budgets.read("study", chosen["study"]).get("benchmark"))
    return words if said is None else _chosen(words, "benchmark", said)


def _defaults_list(command: str) -> dict[str, str]:
    """Group → the file that a command takes unless another one is chosen."""
    entries = budgets.read("", command) or {}
    return {group: name for entry in entries.get("defaults", ()) if entry != "_self_" for group, name in entry.items()}


def _content(command: str, files: Mapping[str, str], said: str) -> dict[str, Any]:
    """What the chosen files hold, composed by Hydra."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_module
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        with initialize_config_module("lcd.configs", version_base=HYDRA_VERSION):
            config = hydra_compose(command, overrides=[f"{group}={name}" for group, name in files.items()])
            return OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{said} cannot be composed: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _refuse_target(config: Any, path: str = "") -> None:
    entries: Iterable[tuple[Any, Any]] = ()
    if isinstance(config, Mapping):
        entries = config.items()
    elif isinstance(config, list):
        entries = enumerate(config)
    for key, value in entries:
        if key == "_target_":
            raise InputError(f"{path}_target_={value} is not allowed: give a registered name or module:object.")
        _refuse_target(value, f"{path}{key}.")


def _refuse_odd(plain: Mapping[str, Any]) -> None:
    """What a run is told apart by is written to files, which do not hold everything."""
    for key, value in flatten(plain).items():
        if (reason := not_plain(value)) is not None:
            raise InputError(f"{key} holds {reason}: give another value.")
        head, _, last = key.rpartition(".")
        if head.rpartition(".")[2] == "knobs":
            check_knob(key, last)


def check_knob(key: str, name: str) -> None:
    """Refuse as a knob what every environment is made with anyway.

    Args:
        key: the config key, for the error's sentence.
    """
    if name in NO_KNOBS:
        raise InputError(f"{key}: '{name}' is no knob of an environment; commands have keys of their own for it.")


def _refuse_missing(command: str, config: Mapping[str, Any]) -> None:
    task = config.get("task") or {}
    if "task" in groups(command) and not isinstance(task.get("name"), str) and not config.get("curriculum"):
        raise InputError(f"task is missing: give task=…; {nearest('', registered('task'))}")
    for key, value in flatten(config).items():
        if value == "???":
            raise InputError(f"{key} is missing: give {key}=….")


def _typed(schema: type, plain: dict[str, Any]) -> Any:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    structured = OmegaConf.structured(schema)
    try:
        return OmegaConf.merge(structured, plain)
    except OmegaConfBaseException as error:
        key = error.full_key or ""
        value = _at(plain, key)
        expected = dict(schema_fields(schema)).get(key)
        kind = _kind(expected.type) if expected else "something else"
        raise InputError(f"{key}={show(value)} has the wrong type: it must be {kind}.") from None


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


def _check(config: Any, prefix: str = "") -> None:
    """Refuse values outside a key's choices or below its least value."""
    for entry in fields(config):
        value, key = getattr(config, entry.name), prefix + entry.name
        if is_dataclass(value):
            _check(value, f"{key}.")
            continue
        options, least = entry.metadata["choices"], entry.metadata["least"]
        if options and value not in options:
            raise InputError(f"{key}={show(value)} is unknown: {nearest(str(value), options)}")
        # A text ("Infinity") becomes a number only where the schema says that it is one.
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{key}={value} must be a finite number.")
        if least is not None and not (value is None and entry.default is None):
            _check_least(key, value, least, auto=entry.default == "auto")
        # Ranges may be given one by one, without a file.
        if entry.name in TEXT_KEYS and isinstance(value, str):
            check_path(key, value)
        if entry.name == "seeds":
            seed_list(key, value)
        if entry.name == "reward_p" and value is not None:
            check_probabilities(key, value)
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


def check_probabilities(key: str, value: Any) -> None:
    """Refuse what is no probability of keeping a reward, or a list of them."""
    values = value if isinstance(value, list) else [value]
    numbers = all(isinstance(p, int | float) and not isinstance(p, bool) for p in values)
    if not values or not numbers or len(set(values)) != len(values) or not all(0 < p <= 1 for p in values):
        raise InputError(f"{key}={show(value)} must lie in (0, 1]{', each once' if value is values else ''}.")
