"""What commands leave in a folder: drafted out of sight, put in place whole, and never over what LCD did not write.

The folder may be the user's own (`out=.`). `MANIFEST` in it tells which files LCD wrote there, for which product (a
report, a sheet of a task), and the hash of each; whatever it does not tell of, or tells otherwise, is the user's.

A product is drafted in a hidden folder beside its place. When the draft is whole it gets the manifest that will hold:
from that moment the new product counts. Its files are then renamed into place, and what the old product had and the new
one has not is removed. Who finds a draft with a manifest, because a kill came in between, first ends what was begun; a
draft without one is dropped. Links are not followed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from lcd.envs.errors import InputError
from lcd.files.atomic import DISK_FULL, locked, sync, write_atomic
from lcd.files.reading import Unreadable, read_json

MANIFEST = ".lcd-manifest.json"
DRAFT = ".lcd-draft-"
WAIT_S = 10.0
"""Seconds to wait while another process puts its files in place, which takes it less than one."""


@dataclass
class Manifest:
    """What LCD wrote in a folder.

    Attributes:
        files: name within the folder → its product and the hash of its content.
        folders: names of the folders that were made for them.
    """

    files: dict[str, dict[str, str]] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)


@contextlib.contextmanager
def drafted(folder: str | Path, product: str, inputs: Iterable[Path] = ()) -> Iterator[Path]:
    """A folder to write a product into; it takes the place of that product in `folder` when the block ends well.

    Nothing in `folder` changes when the block fails, or when one of the files would take the place of one that LCD did
    not write: that is an `InputError`.

    Args:
        folder: where the product goes; made if it is missing.
        product: names it among the other things that LCD wrote there.
        inputs: the files that the product is made of, whose places it must not take.
    """
    folder = Path(folder)
    made: list[Path] = []
    try:
        _refuse_no_folder(folder)
        made = _make(folder)
        with _draft(folder) as draft:
            yield draft
            with _locked_folder(folder):
                _finish(folder)
                _commit(folder, draft, product, inputs)
    except OSError as error:
        if error.errno in DISK_FULL:
            raise
        raise InputError(f"out={folder} cannot be written ({error.strerror}): give a writable folder.") from None
    finally:
        # What was made for nothing goes again: a folder that holds something is not removed by this.
        for path in reversed(made):
            with contextlib.suppress(OSError):
                path.rmdir()


@contextlib.contextmanager
def drafted_file(path: str | Path, inputs: Iterable[Path] = ()) -> Iterator[Path]:
    """As `drafted`, for a product that is one file, and others beside it that are named after it."""
    path = Path(path)
    with drafted(path.parent, path.name, inputs) as draft:
        yield draft / path.name


def check(folder: str | Path, product: str, names: Iterable[str] = (), inputs: Iterable[Path] = ()) -> None:
    """Refuse what `drafted` would refuse, before work is put into it.

    Args:
        folder: as for `drafted`.
        product: as for `drafted`; the files that it has there already will be written again.
        names: what is sure to be written.
        inputs: as for `drafted`.
    """
    folder = Path(folder)
    _refuse_no_folder(folder)
    if folder.is_dir():
        with _locked_folder(folder):
            _finish(folder)
            files = (_read(folder) or Manifest()).files
            again = [name for name, entry in files.items() if entry["product"] == product]
            _refuse_others(folder, [*names, *again], inputs)


def check_file(path: str | Path, inputs: Iterable[Path] = ()) -> None:
    """Refuse what `drafted_file` would refuse, before work is put into it."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"out={path} is a folder: give a file.")
    check(path.parent, path.name, [path.name], inputs)


def _refuse_no_folder(folder: Path) -> None:
    if folder.is_symlink():
        raise InputError(f"{folder} is a link, and results are not written through links: give another folder (out=).")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"out={folder} is a file: give a folder.")


def _make(folder: Path) -> list[Path]:
    """Make a folder and those above it that are missing; those that were made, the uppermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
    return missing[::-1]


def _locked_folder(folder: Path) -> contextlib.AbstractContextManager[None]:
    return locked(folder, f"Another process is writing into {folder}: wait for it, or give another out=.", WAIT_S)


@contextlib.contextmanager
def _draft(folder: Path) -> Iterator[Path]:
    """A hidden folder in `folder`, locked as long as it is worked on."""
    with contextlib.ExitStack() as stack:
        with _locked_folder(folder):
            _finish(folder)
            draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=folder))
            stack.enter_context(locked(draft, f"{draft} is in use."))
        try:
            yield draft
        finally:
            # One whose files are on their way into place is left to whoever comes next.
            if not (draft / MANIFEST).exists():
                shutil.rmtree(draft, ignore_errors=True)


def _finish(folder: Path) -> None:
    """End what killed processes began: place whole drafts, drop others. The caller holds the folder."""
    for draft in sorted(folder.glob(f"{DRAFT}*")):
        if draft.is_symlink() or not draft.is_dir():
            continue
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked(draft, f"{draft} is in use."))
            except (InputError, FileNotFoundError):
                continue
            _place(folder, draft)
            shutil.rmtree(draft, ignore_errors=True)


def _commit(folder: Path, draft: Path, product: str, inputs: Iterable[Path]) -> None:
    """Decide that a draft holds from now on, and put it in place. The caller holds the folder."""
    files = [path for path in sorted(draft.rglob("*")) if path.is_file() and not path.is_symlink()]
    new = {path.relative_to(draft).as_posix(): {"product": product, "sha256": _digest(path)} for path in files}
    old = _read(folder) or Manifest()
    gone = [name for name, entry in old.files.items() if entry["product"] == product and name not in new]
    _refuse_others(folder, new, inputs)
    _refuse_inputs(folder, gone, inputs)
    kept = {name: entry for name, entry in old.files.items() if entry["product"] != product}
    manifest = Manifest(kept | new, _folders(folder, kept | new, old))
    for path in (*files, *(path for path in draft.rglob("*") if path.is_dir())):
        sync(path)
    write_atomic(draft / MANIFEST, json.dumps(asdict(manifest), indent=1))
    try:
        _place(folder, draft)
    except BaseException as interruption:
        # Ctrl-C or a signal may wait for the few renames that are left; a failure may not.
        if not isinstance(interruption, Exception):
            _place(folder, draft)
        raise


def _folders(folder: Path, names: Iterable[str], old: Manifest) -> list[str]:
    """The folders that hold these files and that LCD made, or is about to make."""
    above = {str(parent) for name in names for parent in PurePosixPath(name).parents if str(parent) != "."}
    return sorted(name for name in above if name in old.folders or not (folder / name).exists())


def _place(folder: Path, draft: Path) -> None:
    """Put a draft with a manifest in place; may be done again wherever it was interrupted."""
    old, new = _read(folder) or Manifest(), _read(draft)
    if new is None:
        return
    # A stranger's draft may hold a link to somewhere else, and tell of files that lie there.
    waiting = [name for name in new.files if _is_as_written(draft, name, new)]
    _refuse_others(folder, waiting, known=new)
    for name in waiting:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(draft / name, folder / name)
    for name in old.files.keys() - new.files.keys():
        if _is_as_written(folder, name, old):
            (folder / name).unlink()
    for name in sorted(set(old.folders) - set(new.folders), reverse=True):
        if not _through_link(folder, name):
            with contextlib.suppress(OSError):
                (folder / name).rmdir()
    os.replace(draft / MANIFEST, folder / MANIFEST)
    sync(folder)


def _refuse_others(
    folder: Path, names: Iterable[str], inputs: Iterable[Path] = (), known: Manifest | None = None
) -> None:
    """Refuse names at which something lies that LCD did not write, or that is an input.

    Args:
        folder: where the names are.
        names: what is going to be written.
        inputs: files that must stay.
        known: what else than the folder's manifest tells of LCD's files.
    """
    manifest = _read(folder) or Manifest()
    for name in names:
        for parent in reversed(PurePosixPath(name).parents):
            path = folder / parent
            if str(parent) != "." and os.path.lexists(path) and (path.is_symlink() or not path.is_dir()):
                raise InputError(f"{path} is in the way of a folder of that name: move it, or give another out=.")
        if os.path.lexists(folder / name) and not _is_as_written(folder, name, manifest, known or Manifest()):
            raise InputError(
                f"{folder / name} was not written by LCD, or was changed since: move it, or give another out=."
            )
    _refuse_inputs(folder, names, inputs)


def _refuse_inputs(folder: Path, names: Iterable[str], inputs: Iterable[Path]) -> None:
    for name in names:
        for path in inputs:
            if (folder / name).exists() and path.exists() and os.path.samefile(folder / name, path):
                raise InputError(f"{path} is read, so that nothing may be written in its place: give another out=.")


def _is_as_written(folder: Path, name: str, *manifests: Manifest) -> bool:
    """Whether a file is as one of the manifests tells."""
    path = folder / name
    hashes = {manifest.files[name]["sha256"] for manifest in manifests if name in manifest.files}
    if not hashes or path.is_symlink() or _through_link(folder, name) or not path.is_file():
        return False
    return _digest(path) in hashes


def _through_link(folder: Path, name: str) -> bool:
    """Whether a folder on the way from `folder` to what is called `name` there is a link."""
    return any((folder / parent).is_symlink() for parent in PurePosixPath(name).parents if str(parent) != ".")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(folder: Path) -> Manifest | None:
    """A folder's manifest; None without one, or where what a stranger put there is none."""
    path = folder / MANIFEST
    if path.is_symlink():
        return None
    try:
        found = read_json(path)
        files, folders = found["files"], found["folders"]
        good = all(map(_within, (*files, *folders))) and all(map(_is_entry, files.values()))
    except (Unreadable, KeyError, TypeError, AttributeError):
        return None
    return Manifest(files, list(folders)) if good else None


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in ("product", "sha256"))


def _within(name: Any) -> bool:
    """Whether a name leads to somewhere below the folder it is of."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and str(path) != MANIFEST
