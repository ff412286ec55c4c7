"""`lcd remove`: take runs out of a study, after a look at which, and nothing that LCD did not write.

What a run has left is known by its name: a file of any other name stays, and so do links and what has been changed
since the run was done. The config goes last, so that a removal which was killed is ended by the same command.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from rich.console import Console

from lcd.config.steering_schemas import RemoveConfig
from lcd.consoles import console_for_tables
from lcd.envs.errors import InputError
from lcd.files.atomic import UNFINISHED, sha256_of
from lcd.pipelines.steering.chosen import asked, chosen, counted, study_of, tell_of_waiting
from lcd.pipelines.steering.glance import Glance, Seen
from lcd.pipelines.steering.screen import table
from lcd.pipelines.study import store
from lcd.pipelines.study.cancelling import MARK
from lcd.pipelines.study.configs import inputs_of
from lcd.pipelines.study.hands import Sight, acquire, free_to_take
from lcd.pipelines.study.lease import AT_WORK, LEASES
from lcd.process import exits
from lcd.process.limits import readable_size

FILES = (
    *("curve.csv", "train.csv", "objectness.csv", "log.txt", "error.txt", MARK),
    *("checkpoints/*.ckpt", "pictures/step-*.png", f".*{UNFINISHED}", f"*/.*{UNFINISHED}"),
)
"""What LCD writes into a run's folder, but for what its kind leaves and `LAST`."""
FOLDERS = ("wandb", "checkpoints/rollouts", AT_WORK, LEASES)
"""Folders of which all is the run's."""
LAST = ("status.json", ".lock", "config.yaml")
MOST_SHOWN = 12


def run(cfg: RemoveConfig) -> int:
    """Show which runs are chosen, ask, and remove them; returns the exit code."""
    study, console = study_of(cfg), console_for_tables()
    if bool(asked(cfg)) == cfg.all:
        raise InputError("Say which runs: by conditions (state=failed, task=…, agent=…), or all=true for every one.")
    if (study.path / "runs").is_symlink():
        raise InputError(
            f"{study.path / 'runs'} is a link, and nothing outside of a study is removed: remove it there."
        )
    with study.at_work():
        seen = Glance(study).look()
        found = [each for each in chosen(seen, cfg) if each.config is not None and not each.folder.is_symlink()]
        free = _free(found, console)
        if not found:
            console.print(f"No run of {study.path} is chosen: nothing is removed.", highlight=False, soft_wrap=True)
            return exits.OK
        _refuse_needed(found, seen)
        _show(found, console)
        if not (cfg.yes or _agreed(console)):
            return exits.OK
        kept = [path for each in found for path in _remove(each, free[each.folder])]
    console.print(
        f"{counted(len(found), study.path)} removed; 'lcd report {study.path}' tells what is left.", soft_wrap=True
    )
    for path in kept:
        told = f"{path} stays: LCD did not write it, or it was changed since."
        console.print(told, highlight=False, soft_wrap=True, markup=False)
    return exits.OK


def _free(found: Sequence[Seen], console: Console) -> dict[Path, Sight]:
    """What was seen of the leases of runs, all of which nobody has: whoever works on one is respected."""
    free = free_to_take([each.folder for each in found], lambda: tell_of_waiting(console))
    for each in found:
        if each.folder not in free:
            raise InputError(f"The run {each.name} ({each.label}) is being trained: 'lcd cancel' it first, or wait.")
    return free


def _refuse_needed(found: Sequence[Seen], seen: Sequence[Seen]) -> None:
    """Refuse to take away what runs that stay are made of."""
    gone = {each.name for each in found}
    for each in seen:
        needed = gone & {entry["job"] for entry in inputs_of(each.config)} if each.config is not None else set()
        if each.name not in gone and needed:
            raise InputError(
                f"The run {min(needed)} stays as long as {each.name} ({each.label}), which was made with what it left: "
                "choose that one, too."
            )


def _show(found: Sequence[Seen], console: Console) -> None:
    size = sum(path.lstat().st_size for each in found for path in _below(each.folder))
    console.print(f"{len(found)} runs ({readable_size(size)}):", highlight=False)
    rows = [[each.label, each.name, each.state] for each in found[:MOST_SHOWN]]
    for line in table([["", "run", "state"], *rows], console.width):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if len(found) > MOST_SHOWN:
        console.print(f"… and {len(found) - MOST_SHOWN:,} more", highlight=False)


def _agreed(console: Console) -> bool:
    """Whether somebody at the terminal says yes."""
    if not (sys.stdin is not None and sys.stdin.isatty()):
        raise InputError("These runs would be removed, and nobody is asked here: --yes removes them.")
    console.print("Remove them? What they have learned is lost. [y/N] ", end="", markup=False, highlight=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _below(folder: Path) -> Iterator[Path]:
    """Every file and link below a folder; links are not followed."""
    for place, folders, files in os.walk(folder):
        yield from (Path(place) / name for name in files)
        yield from (Path(place) / name for name in folders if (Path(place) / name).is_symlink())


def _remove(seen: Seen, silent: Sight) -> list[Path]:
    """Remove a run; returns what stays."""
    run = store.Run(seen.config, seen.folder)  # type: ignore[arg-type]
    if acquire(seen.folder, silent) is None:
        raise InputError(f"The run {seen.name} ({seen.label}) is being trained: 'lcd cancel' it first, or wait.")
    seal = run.status["seal"]
    kept = [path for path in _below(seen.folder) if not _is_ours(run, path, seal)]
    # Without its curve and its checkpoints it is not taken for one that is done, should this be killed.
    if run.status["state"] == store.DONE:
        run.update(state=store.QUEUED, step=0)
    for name in FOLDERS:
        if not (seen.folder / name).is_symlink() and not (seen.folder / name).parent.is_symlink():
            shutil.rmtree(seen.folder / name, ignore_errors=True)
    for path in _below(seen.folder):
        if path not in kept and path.relative_to(seen.folder).as_posix() not in LAST:
            path.unlink(missing_ok=True)
    for name in LAST:
        if seen.folder / name not in kept:
            (seen.folder / name).unlink(missing_ok=True)
    for place, _, _ in os.walk(seen.folder, topdown=False):
        if not os.listdir(place):
            os.rmdir(place)
    return kept


def _is_ours(run: store.Run, path: Path, seal: dict[str, str]) -> bool:
    """Whether a file of a run's folder is what LCD wrote."""
    name = path.relative_to(run.path).as_posix()
    if path.is_symlink():
        return False
    if any(name.startswith(f"{folder}/") for folder in FOLDERS):
        return True
    depth, known = name.count("/"), (*FILES, *LAST, *run.kind.outputs)
    if not path.is_file() or not any(each.count("/") == depth and fnmatchcase(name, each) for each in known):
        return False
    try:
        return name not in seal or sha256_of(path) == seal[name]
    except OSError:
        return False
