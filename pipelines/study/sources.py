"""The source of what a run names as `module:object`: found and hashed without importing it.

It is part of what the run is, as a file of weights is: an edited environment is another run. What counts is the module,
and what it imports from its own package or folder, followed from file to file. Installed packages, Python's own
modules, data files, and what is imported by a name made up at run time do not count.
"""

from __future__ import annotations

import ast
import importlib.util
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any, Final, cast

from lcd.envs.errors import InputError
from lcd.files.atomic import sha256_of
from lcd.pipelines.study.configs import AnyConfig, JobConfig

SOURCE: Final = "source"
"""The run config's key: part (benchmark, agent, front-end, kind) → module → hash. Only runs that name code have it."""
PARTS = ("benchmark", "agent", "frontend", "kind")
OURS = "lcd"
PYTHONS_OWN = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
INSTALLED = ("site-packages", "dist-packages")
"""What folders of installed packages are called, those of other environments that are looked in too included."""


def named_code(run_config: JobConfig) -> dict[str, tuple[str, ...]]:
    """The parts of a run that are given as `module:object`, or name some, with these."""
    from lcd.agents import agents
    from lcd.envs.benchmarks import BENCHMARKS
    from lcd.frontends import frontends
    from lcd.pipelines.kinds.kind import kinds

    registries = dict(zip(PARTS, (BENCHMARKS, agents, frontends, kinds), strict=True))
    found = {part: registries[part].code_in(name) for part, name in named_parts(run_config).items()}
    return {part: code for part, code in found.items() if code}


def named_parts(config: Mapping[str, Any]) -> dict[str, str]:
    """The names of a job's benchmark, agent and front-end, those that it has."""
    given = {part: config[part] for part in PARTS if part in config}
    return {part: each["name"] if isinstance(each, Mapping) else each for part, each in given.items()}


def with_source(run_config: AnyConfig) -> AnyConfig:
    """The run config with the hashes of the code that it names; a run that names none stays as it is."""
    found = {
        part: {module: sha256 for name in code for module, sha256 in hashes_of(name).items()}
        for part, code in named_code(run_config).items()
    }
    return cast("AnyConfig", {**run_config, SOURCE: found}) if found else run_config


def refuse_changed(run_config: JobConfig) -> None:
    """Refuse to train with other source than the run was asked for with."""
    anew: JobConfig = {**run_config, "source": {}}
    if told := difference(run_config, with_source(anew)):
        raise InputError(f"{told} since the run was asked for: give the same command again, or put the source back.")


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Which named code is not the same in two run configs: the beginning of a sentence (then comes "since"), or None.

    Args:
        before: may be of a time when sources were not kept.
    """
    for part in PARTS:
        if names := changed_modules(before.get(SOURCE, {}).get(part, {}), now.get(SOURCE, {}).get(part, {})):
            source = f"the source of {part}={named_parts(now)[part]}"
            if part not in before.get(SOURCE, {}):
                return f"It is not known whether {source} has changed"
            return f"T{source[1:]} has changed (modules: {', '.join(names)})"
    return None


def changed_modules(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The modules that came, went or changed."""
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def hashes_of(target: str, paths: Sequence[str] = ()) -> dict[str, str]:
    """Module → SHA-256 of its file, for the code of `module:object`; empty where the module is not found.

    Args:
        paths: folders to look in besides those that Python looks in.
    """
    first = target.partition(":")[0]
    start = _spec(first.partition(".")[0], paths)
    if start is None:
        return {}
    found: dict[str, str] = {}
    waiting, seen = list(_with_parents(first)), set()
    folder = _folder(start)
    alone = folder is None or folder in PYTHONS_OWN or folder.name in INSTALLED
    while waiting:
        name = waiting.pop()
        top = name.partition(".")[0]
        if name in seen or top == OURS or (alone and top != start.name):
            continue
        seen.add(name)
        spec = _spec(name, paths)
        if spec is None or spec.origin is None or not _belongs(spec, start):
            continue
        path = Path(spec.origin)
        try:
            found[name] = sha256_of(path)
            if path.suffix == ".py":
                waiting += _imported(path, name, package=spec.submodule_search_locations is not None)
        except OSError:
            continue
    return dict(sorted(found.items()))


def _spec(name: str, paths: Sequence[str]) -> ModuleSpec | None:
    """Where a module is. Unlike `importlib.util.find_spec` this never imports the packages that it lies in."""
    top, *rest = name.split(".")
    try:
        spec = importlib.util.find_spec(top) or PathFinder.find_spec(top, list(paths))
        for count, _ in enumerate(rest, 1):
            if spec is None or spec.submodule_search_locations is None:
                return None
            spec = PathFinder.find_spec(".".join([top, *rest[:count]]), list(spec.submodule_search_locations))
    except (ImportError, KeyError, ValueError):  # a namespace package asks for its parent
        return None
    return spec


def _belongs(spec: ModuleSpec, start: ModuleSpec) -> bool:
    """Whether a module lies in the package of the named one, or in the folder beside it unless that is Python's own."""
    if spec.name.partition(".")[0] == start.name:
        return True
    folder = _folder(start)
    if folder is None or not spec.has_location or spec.origin is None:
        return False
    return Path(spec.origin).resolve().is_relative_to(folder)


def _folder(top: ModuleSpec) -> Path | None:
    """The folder in which a top-level module or package lies."""
    if top.submodule_search_locations:
        return Path(next(iter(top.submodule_search_locations))).resolve().parent
    return Path(top.origin).resolve().parent if top.origin and top.has_location else None


def _with_parents(name: str) -> Iterator[str]:
    """A module and the packages around it, which are imported with it."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _imported(path: Path, name: str, package: bool) -> list[str]:
    """The modules that a file may import, inside functions too; some of the names may be of other things."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return []
    around = name.split(".") if package else name.split(".")[:-1]
    wanted: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            wanted += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = around[: len(around) - node.level + 1] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            wanted += [base, *(f"{base}.{alias.name}" for alias in node.names)] if base else []
    return [part for each in wanted for part in _with_parents(each)]
