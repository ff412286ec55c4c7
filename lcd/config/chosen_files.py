"""What the chosen files of `lcd.configs` hold together, composed by Hydra, with what a budget and a user say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from lcd.config import budgets
from lcd.config.budgets import USUAL_STUDY, choices
from lcd.config.keys import NAMED_ELSEWHERE, registered, show
from lcd.config.study_files import SWEEPS, read_study
from lcd.envs.errors import InputError, nearest

if TYPE_CHECKING:
    from omegaconf import DictConfig

HYDRA_VERSION = "1.3"
FAMILY, FAMILIES = "study.family", "families"
"""The key of a family that a study writes, and the benchmark of such families of anybody's environments."""
SHORT_NAMES = {"ablate": ("study", "study=frontend"), "sweep": ("experiment", f"study={SWEEPS}delay")}
"""Commands that are `lcd diagnose` with another study: the key that chooses it, and the usual one."""


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


def with_choice(words: Words, group: str, name: Any) -> Words:
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


def in_full(command: str, overrides: Sequence[str]) -> tuple[str, Sequence[str]]:
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


def defaults(command: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The composed config of a command of which no keys are set, as nested dictionaries.

    Args:
        command: the command.
        overrides: what a user says; of it the choices of files count (`agent=ppg`).
    """
    command, texts = in_full(command, overrides)
    words = Words()
    for text in texts:
        group, equals, name = text.partition("=")
        if equals and group != "task" and group in _defaults_list(command):
            words = with_choice(words, group, name)
    return composed(command, words)


def composed(command: str, words: Words) -> dict[str, Any]:
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
            # A list and a set of keys have nothing to merge: who knows the key refuses the wrong one of them.
            alike = OmegaConf.is_list(OmegaConf.select(config, key)) == isinstance(value, list)
            OmegaConf.update(config, key, value, merge=alike, force_add=True)
        return _plain(config)
    except (OmegaConfBaseException, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{said} cannot be composed: {_reason(error)}") from None


def _benchmark_of_study(words: Words, chosen: Mapping[str, str]) -> Words:
    """A study's file may say which benchmark it is of, and so may the family that it writes; a chosen one wins."""
    if "study" not in chosen or "benchmark" in words.choices:
        return words
    shipped = budgets.read("study", chosen["study"])
    said = words.file.get("benchmark", shipped.get("benchmark"))
    said = said or _benchmark_of_family(words.file.get("family", shipped.get("family")), words.keys)
    return words if said is None else with_choice(words, "benchmark", said)


def _benchmark_of_family(family: Any, keys: Sequence[tuple[str, Any]]) -> str | None:
    """The benchmark of the family that a study writes (`study.family`): that of its task, or of anybody's env."""
    found = dict(family) if isinstance(family, Mapping) else {}
    for key, value in keys:
        if key == FAMILY and isinstance(value, Mapping):
            found |= value
        elif key.startswith(f"{FAMILY}."):
            found[key.removeprefix(f"{FAMILY}.")] = value
    if found.get("env") is not None:
        return FAMILIES
    head = str(found.get("task")).partition("/")[0]
    return head if head in {*choices("benchmark"), *registered("benchmark")} else None


def _defaults_list(command: str) -> dict[str, str]:
    """Group → the file that a command takes unless another one is chosen."""
    entries = budgets.read("", command) or {}
    return {group: name for entry in entries.get("defaults", ()) if entry != "_self_" for group, name in entry.items()}


def _content(command: str, files: Mapping[str, str], said: str) -> dict[str, Any]:
    """What the chosen files hold, composed by Hydra."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_module
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        with initialize_config_module("lcd.configs", version_base=HYDRA_VERSION):
            config = hydra_compose(command, overrides=[f"{group}={name}" for group, name in files.items()])
            return _plain(config)
    except (HydraException, OmegaConfBaseException, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{said} cannot be composed: {_reason(error)}") from None


def _plain(config: "DictConfig") -> dict[str, Any]:
    """A config without what belongs to OmegaConf."""
    from omegaconf import OmegaConf

    return cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True))


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
