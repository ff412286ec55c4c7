"""Writing files so that nobody ever finds half of one."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

UNFINISHED = ".partial"
"""How the names of files end that are still written; they are hidden, too."""


def write_atomic(path: str | Path, content: str | bytes) -> None:
    """Write a file so that a reader, a crash or a power cut sees the old content or the new, never a part of it."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` once it is on the disk; an error leaves the old one."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that only their owner may read.
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        # What is half written would take the room that whatever else must be written needs.
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(path.parent)


def make_folder(path: str | Path) -> None:
    """Make a folder, and those above it, so that a power cut does not lose it with what is written into it later."""
    path = Path(path)
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: str | Path) -> None:
    """See the names in a folder onto the disk: without it a power cut may undo that a file was made or renamed."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_unfinished(folder: str | Path) -> None:
    """Delete what processes that were killed while they wrote have left below a folder; nobody may write there now."""
    for path in Path(folder).rglob(f".*{UNFINISHED}"):
        path.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
