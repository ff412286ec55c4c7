"""`lcd new`: write a file to begin with, which runs as it is."""

import keyword
import sys
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

from lcd.config.task_schemas import NewConfig
from lcd.envs.benchmarks import BENCHMARKS
from lcd.envs.errors import InputError
from lcd.files.atomic import write_atomic
from lcd.files.outputs import check_file

STARTERS = {"benchmark": "gridworld"}
"""What can be begun → the module of `lcd.envs.starters` that is written, with the new name in place of its own."""


def run(cfg: NewConfig) -> int:
    """Write the file and say what to do with it; returns the exit code."""
    if cfg.name is None:
        raise InputError(f"lcd new {cfg.what} needs a name: lcd new {cfg.what} my_worlds.")
    _check_name(cfg.name)
    folder = Path(cfg.out or ".").expanduser()
    path = folder / f"{cfg.name}.py"
    if path.exists() or path.is_symlink():
        raise InputError(f"{path} is there already: nothing is written over; choose another name, or out=FOLDER.")
    check_file(path)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(path, written_for(cfg.what, cfg.name))
    print(path, *_commands(cfg.name, folder), sep="\n")
    return 0


def written_for(what: str, name: str) -> str:
    """The text of a starter in which everything is called by a name of the user's."""
    starter = STARTERS[what]
    text = resources.files("lcd.envs.starters").joinpath(f"{starter}.py").read_text("utf-8")
    return text.replace(starter.capitalize(), class_name(name)).replace(starter, name)


def class_name(name: str) -> str:
    """`my_worlds` → `MyWorlds`."""
    return "".join(part.capitalize() for part in name.split("_"))


def _check_name(name: str) -> None:
    """Refuse what is no name of a module, and one that is taken."""
    good = name.isascii() and name.isidentifier() and name == name.lower() and name[0] != "_" and class_name(name)
    if not good or keyword.iskeyword(name):
        raise InputError(f"name={name} must be a Python module's: small letters, digits and underscores (my_worlds).")
    taken = name in sys.stdlib_module_names or name in BENCHMARKS.names() or _is_installed(name)
    if taken or name == STARTERS["benchmark"]:
        raise InputError(f"name={name} is taken by a module or benchmark that is there: choose another one.")


def _is_installed(name: str) -> bool:
    """Whether a module of this name can be imported, wherever it lies."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _commands(name: str, folder: Path) -> list[str]:
    there = "" if folder == Path(".") else f"cd {folder} && "
    of_it = f"{name}:{class_name(name)}"
    return [
        f"  {there}lcd check {of_it}",
        f"  {there}lcd diagnose benchmark={of_it}",
        f"  {there}python -m pytest {name}.py",
    ]
