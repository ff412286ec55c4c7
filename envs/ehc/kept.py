"""Tables that take long to make, kept in a folder of the user's.

The folder is `lcd/tables` in `$XDG_CACHE_HOME` (else in `~/.cache`), or what `LCD_TABLES` names; `LCD_TABLES=off` keeps
nothing. A file's name tells the hash of the code that made it and of the tables in it: what other code made is not
looked at, and what does not have the hash that its name tells is made anew. Whatever goes wrong with the folder, the
tables are made.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from functools import cache
from pathlib import Path

from lcd.envs import ehc, tabular
from lcd.envs.ehc.recipe import Recipe
from lcd.envs.errors import InputError
from lcd.envs.tabular.closure import codes_of
from lcd.envs.tabular.files import digest, load, save
from lcd.envs.tabular.mdp import TabularMDP

SETTING = "LCD_TABLES"
OFF = "off"
SLOW_S = 3.0
"""Seconds from which on tables are kept."""


def made(recipe: Recipe) -> TabularMDP:
    """A recipe's MDP, from the folder where it is kept."""
    place = folder()
    if place is None or recipe.draw is None:
        return recipe.make()
    found = _read(recipe, place)
    if found is None:
        began = time.perf_counter()
        found = recipe.make()
        if time.perf_counter() - began >= SLOW_S:
            _write(recipe, found, place)
        return found
    return found.changed(name=recipe.name, renderer=recipe.draw(codes_of(found)))


def folder() -> Path | None:
    """Where tables are kept; None: nowhere."""
    said = os.environ.get(SETTING, "")
    if said == OFF:
        return None
    if said:
        return Path(said).expanduser()
    with contextlib.suppress(RuntimeError):
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lcd" / "tables"
    return None


@cache
def code_hash() -> str:
    """A hash of the code that makes the tables."""
    found = hashlib.sha256()
    for package in (ehc, tabular):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix()):
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


def _read(recipe: Recipe, place: Path) -> TabularMDP | None:
    for path in sorted(place.glob(f"{recipe.name}-{code_hash()}-*.npz")):
        with contextlib.suppress(InputError):
            found = load(path)
            if found.codes is not None and digest(found)[:16] == path.stem.rpartition("-")[2]:
                return found
    return None


def _write(recipe: Recipe, mdp: TabularMDP, place: Path) -> None:
    path = place / f"{recipe.name}-{code_hash()}-{digest(mdp)[:16]}.npz"
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(prefix=".", suffix=".draft", dir=place)
        try:
            with os.fdopen(handle, "wb") as file:
                save(mdp, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(draft)
