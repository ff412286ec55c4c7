"""Names for things that third parties may add: built in, by entry point, or as `module:object`.

A `module:object` is code, and a command may meet such names in files of somebody else's study. So a command says which
ones it was given (`naming`), and no others are imported, by itself or by the processes that it starts.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lcd.envs.errors import InputError, nearest

RESERVED = {"wandb": "runs that lcd report reads", "gym": "environments of Gymnasium"}
"""What stands before a colon and names no module."""

_named: frozenset[str] | None = None


@contextlib.contextmanager
def naming(names: Iterable[str] | None) -> Iterator[None]:
    """Import no `module:object` but these while this lasts; None is any, for programs that call this package."""
    global _named
    before = _named
    _named = None if names is None else frozenset(names)
    try:
        yield
    finally:
        _named = before


def named() -> frozenset[str] | None:
    """What `naming` was told, for a process that is started to do a part of the same work."""
    return _named


def code_names(config: Any) -> set[str]:
    """Every text in nested lists and dictionaries that may name a `module:object`."""
    if isinstance(config, str):
        return {config} if ":" in config else set()
    if isinstance(config, Mapping):
        return code_names([*config, *config.values()])
    if isinstance(config, list | tuple):
        return set().union(*map(code_names, config))
    return set()


class Registry:
    """A table from names to objects, which are imported only when they are asked for."""

    def __init__(self, kind: str, group: str) -> None:
        """Begin with no names.

        Args:
            kind: what the names stand for, as an error's sentence should call it ("benchmark").
            group: the entry point group through which other packages add names ("lcd.benchmarks").
        """
        self.kind = kind
        self.group = group
        self._built_in: dict[str, Any] = {}
        self._made: dict[str, tuple[str, Callable[[str], tuple[str, ...]]]] = {}

    def add_made(self, prefix: str, maker: str, code_in: Callable[[str], tuple[str, ...]]) -> None:
        """Add all names that begin with a prefix.

        Args:
            prefix: with a colon at its end.
            maker: `module:function` of such a name, and of what imports a `module:object` in it → the object; that
                takes as a second argument what an error's sentence should call it.
            code_in: such a name → what of it is code that making it imports.
        """
        self._made[prefix] = (maker, code_in)

    def add(self, name: str, target: Any) -> None:
        """Add a built-in: `target` is the object itself or a string `module:object`."""
        self._built_in[name] = target

    def names(self) -> list[str]:
        """Every name, built-ins first."""
        others = (point.name for point in entry_points(group=self.group))
        return list(dict.fromkeys([*self._built_in, *others]))

    def is_built_in(self, name: str) -> bool:
        """Whether the name is one of ours, and nobody else's."""
        return name in self._built_in

    def code_in(self, name: str) -> tuple[str, ...]:
        """The code that a name has imported: itself where it is a `module:object` and no registered name."""
        if made := self._maker(name):
            return made[1](name)
        return (name,) if ":" in name and name not in self.names() else ()

    def _maker(self, name: str) -> tuple[str, Callable[[str], tuple[str, ...]]] | None:
        return next((made for prefix, made in self._made.items() if name.startswith(prefix)), None)

    def may_resolve(self, name: str) -> bool:
        """Whether the name is a registered one, or that of code which may be imported here."""
        # What is installed is asked for last: it takes milliseconds, and a study asks this of all its runs.
        known = name in self._built_in or self._maker(name) is not None or name in self.names()
        allowed = all(_named is None or {name, code} & _named for code in self.code_in(name)) if ":" in name else True
        return allowed and (known or ":" in name)

    def resolve(self, name: str) -> Any:
        """The object called `name`: a built-in, an entry point's, or the one at `module:object`."""
        if name in self._built_in:
            target = self._built_in[name]
            return self._load(target) if isinstance(target, str) else target
        for point in entry_points(group=self.group, name=name):
            return self._load(point.value)
        if ":" in name:
            if not self.may_resolve(name):
                raise InputError(
                    f"The {self.kind} '{name}' is named by a file, and only a command names code: name it there, or "
                    f"register it by an entry point ({self.group})."
                )
            made = self._maker(name)
            return self._load(name) if made is None else self._load(made[0])(name, self._load)
        raise InputError(f"There is no {self.kind} '{name}'; {nearest(name, self.names())}")

    def explains(self, name: str) -> str:
        """What a name stands for, in one line: the first of its docstring, read without importing anything."""
        target = self._built_in.get(name, name)
        for point in () if name in self._built_in else entry_points(group=self.group, name=name):
            target = point.value
        if not isinstance(target, str):
            return (inspect.getdoc(target) or "").partition("\n")[0]
        module_name, _, attribute = target.partition(":")
        try:
            found = find_spec(module_name)
            text = "" if found is None or found.origin is None else Path(found.origin).read_text("utf-8")
            return _docstring(ast.parse(text), attribute).strip().partition("\n")[0]
        # A module of somebody else's, or a package above it, may be broken in any way.
        except Exception:
            return ""

    def _load(self, target: str, kind: str | None = None) -> Any:
        """What a `module:object` names, called as an error's sentence should call it."""
        kind = kind or self.kind
        module_name, _, attribute = target.partition(":")
        if module_name in RESERVED:
            raise InputError(
                f"The {kind} '{target}' is no module:object: '{module_name}:' is for {RESERVED[module_name]}."
            )
        try:
            found = import_module(module_name)
        # A module may fail in any way, and may want to end the process.
        except (Exception, SystemExit) as error:
            why = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
            raise InputError(f"The {kind} '{target}' cannot be imported: {why.rstrip('.')}.") from error
        for part in attribute.split("."):
            try:
                found = getattr(found, part)
            except AttributeError:
                options = nearest(part, (n for n in vars(found) if not n.startswith("_")))
                raise InputError(f"The {kind} '{target}' has no '{part}'; {options}") from None
        return found


def _docstring(module: ast.Module, name: str) -> str:
    """What a module says of the class, function or value of this name; of a value also what its class says."""
    named = {node.name: node for node in module.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    if name in named:
        return ast.get_docstring(named[name]) or ""
    for node, after in zip(module.body, [*module.body[1:], None], strict=True):
        if not (isinstance(node, ast.Assign) and any(ast.unparse(target) == name for target in node.targets)):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            return after.value.value
        made = node.value.func if isinstance(node.value, ast.Call) else None
        if isinstance(made, ast.Name) and made.id in named:
            return ast.get_docstring(named[made.id]) or ""
    return ast.get_docstring(module) or ""
