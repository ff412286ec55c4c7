"""Where runs lie: which files of a folder are logs of what kind, and the runs that they hold."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lcd.envs.errors import InputError, nearest
from lcd.files.reading import Unreadable, open_regular
from lcd.pipelines.importing import csv_logs, event_files, rliable_scores, sb3_logs, wandb_curves, wandb_records
from lcd.pipelines.importing.read_run import ReadRun

MOST_FILES = 100_000


class Format(NamedTuple):
    """A kind of log.

    Attributes:
        is_one: whether a file is such a log, by its name.
        read: the runs of all such files of one folder; a run is called as its folder lies below what was given.
        words: what it is, for a reader.
    """

    is_one: Callable[[str], bool]
    read: Callable[[Sequence[Path], str], Iterator[ReadRun]]
    words: str


def _each(read: Callable[[Path, str], ReadRun]) -> Callable[[Sequence[Path], str], Iterator[ReadRun]]:
    return lambda paths, name: (read(path, name) for path in paths)


def _together(read: Callable[[Sequence[Path], str], ReadRun]) -> Callable[[Sequence[Path], str], Iterator[ReadRun]]:
    return lambda paths, name: iter((read(paths, name),))


def _csv_files(paths: Sequence[Path], name: str) -> Iterator[ReadRun]:
    """Tables are told apart by their own names, too."""
    for path in paths:
        yield csv_logs.read_any_csv(path, f"{name}/{path.stem}" if name else path.stem)


FORMATS = {
    "evaluations": Format(
        lambda name: name == sb3_logs.EVALUATIONS,
        _each(sb3_logs.read_evaluations),
        "Stable-Baselines3's evaluations.npz",
    ),
    "progress": Format(
        lambda name: name == csv_logs.PROGRESS,
        _each(csv_logs.read_progress),
        "progress.csv of RLlib, or of SB3's logger",
    ),
    "wandb": Format(
        lambda name: name.endswith(wandb_curves.SUFFIX),
        lambda paths, name: (wandb_records.read_offline_run(path) for path in paths),
        "W&B's offline runs",
    ),
    "tensorboard": Format(
        lambda name: event_files.MARK in name,
        _together(event_files.read_event_files),
        "TensorBoard's event files (CleanRL's, say)",
    ),
    "monitor": Format(
        lambda name: name.endswith(sb3_logs.MONITOR),
        _together(sb3_logs.read_monitors),
        "Stable-Baselines3's monitor.csv: episodes of training",
    ),
    "rliable": Format(
        lambda name: name.endswith(".npz") and name != sb3_logs.EVALUATIONS,
        lambda paths, name: (run for path in paths for run in rliable_scores.read_scores(path)),
        "rliable's dictionaries, saved by numpy.savez",
    ),
    "csv": Format(
        lambda name: name.endswith(".csv") and name != csv_logs.PROGRESS and not name.endswith(sb3_logs.MONITOR),
        _csv_files,
        "any CSV file, by map=",
    ),
}
"""In the order in which they are looked for: what was held out comes before what was trained on."""


def found_at(source: Path, wanted: str | None) -> tuple[str, list[tuple[Path, list[Path]]], list[str]]:
    """The logs at a place: their format, the files of it folder by folder, and the other formats that are there.

    Args:
        source: a file or a folder.
        wanted: the format; None takes the first of `FORMATS` that is there.
    """
    if wanted is not None and (not isinstance(wanted, str) or wanted not in FORMATS):
        raise InputError(f"format={wanted} is unknown: {nearest(str(wanted), FORMATS)}")
    folders = list(_files_below(source))
    there = [name for name, each in FORMATS.items() if any(map(each.is_one, (f for _, fs in folders for f in fs)))]
    if source.is_file():
        chosen = wanted or _of_file(source, there)
        return chosen, [(source.parent, [source])], []
    if not there or (wanted is not None and wanted not in there):
        kinds = "; ".join(f"{name} ({each.words})" for name, each in FORMATS.items())
        missing = f"no log of the format '{wanted}'" if wanted else "no log of a known format"
        raise InputError(f"There is {missing} below '{source}': give a folder with one of {kinds}.")
    chosen = wanted or there[0]
    files = [(folder, [folder / f for f in names if FORMATS[chosen].is_one(f)]) for folder, names in folders]
    return chosen, [(folder, mine) for folder, mine in files if mine], [name for name in there if name != chosen]


def _of_file(source: Path, there: Sequence[str]) -> str:
    """The format of one file, of a CSV by how it begins."""
    if source.suffix == ".csv":
        try:
            with open_regular(source) as file:
                if file.read(2) == b"#{":
                    return "monitor"
        except (Unreadable, OSError):
            pass  # whoever reads it says why
    if not there:
        raise InputError(
            f"'{source}' is no log of a known format: give format=… ({', '.join(FORMATS)}), or another file."
        )
    return there[0]


def _files_below(source: Path) -> Iterator[tuple[Path, list[str]]]:
    """The files of each folder, sorted; links are not followed."""
    if source.is_file():
        yield source.parent, [source.name]
        return
    if not source.is_dir():
        raise InputError(f"There is nothing at '{source}': give a folder of logs, a file, or wandb:entity/project.")
    count = 0
    for folder, inner, files in os.walk(source):
        inner[:] = sorted(name for name in inner if not name.startswith(".lcd-"))
        count += len(files)
        if count > MOST_FILES:
            raise InputError(f"'{source}' has more than {MOST_FILES:,} files: give a folder of fewer.")
        yield Path(folder), sorted(name for name in files if not os.path.islink(os.path.join(folder, name)))


def runs_of(source: Path, kind: str, folders: Sequence[tuple[Path, list[Path]]]) -> Iterator[ReadRun]:
    """The runs of the logs that were found; what W&B's do not call themselves is called by where it lies."""
    for folder, files in folders:
        inside = folder.relative_to(source).as_posix() if source.is_dir() else folder.absolute().name
        for run in FORMATS[kind].read(files, "" if inside == "." else inside):
            run.name = run.name or inside
            yield run
