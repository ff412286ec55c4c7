"""What several machines write into one shared folder safely: a ledger, whose numbered entries are each written once.

Nothing here relies on locks, on clocks, or on what a machine has in its cache. It stands on operations that a file
system on many machines does as one, each for all of them: a hard link is made only where nothing has that name, and a
rename puts a whole file or folder in place. `Disk` has them, so that a test can put a file system in its place which
stops, kills and resumes whoever uses it between any two of them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from lcd.envs.errors import InputError
from lcd.files.atomic import UNFINISHED, make_folder, sync, unfinished_prefix, write_atomic

NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV}

NO_FILE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}
"""What opening says where nothing lies there, a link that leads nowhere, or a socket."""
LARGEST_ENTRY = 64 << 20


class Disk:
    """The operations on a shared folder that others build on; each is done as a whole or not at all."""

    def read(self, path: Path) -> bytes | None:
        """A regular file's content; None where there is none, or more than anybody wrote."""
        if (handle := _opened(path)) is None:
            return None
        with os.fdopen(handle, "rb") as file:
            return file.read() if os.fstat(handle).st_size <= LARGEST_ENTRY else None

    def names(self, folder: Path) -> list[str]:
        """What lies in a folder, sorted; nothing where there is none."""
        try:
            return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def is_folder(self, path: Path) -> bool:
        """Whether a path is a folder, and not a link to one."""
        return path.is_dir() and not path.is_symlink()

    def make(self, folder: Path) -> None:
        """Make a folder, and those above it, where they are not there."""
        make_folder(folder)

    def create(self, path: Path, content: bytes) -> bool:
        """Make a file with its content; False where something has that name, which then stays."""
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=unfinished_prefix(path), suffix=UNFINISHED)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            try:
                os.link(temporary, path)
            except FileExistsError:
                # Over a network a link may be made and the answer lost: what is asked again then finds its own.
                if not os.path.samefile(temporary, path):
                    return False
            except OSError as error:
                if error.errno not in NO_LINKS:
                    raise
                raise InputError(
                    f"{path.parent} lies on a file system that has no hard links, on which nothing can be shared: give "
                    "another folder (out=)."
                ) from None
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        sync(path.parent)
        return True

    def replace(self, path: Path, content: bytes) -> None:
        """Put a file in place, over the one that is there."""
        write_atomic(path, content)

    def rename(self, source: Path, target: Path) -> bool:
        """Put a file or a folder in place; False where it is gone."""
        try:
            os.rename(source, target)
        except FileNotFoundError:
            return False
        sync(target.parent)
        return True

    def copy(self, source: Path, target: Path, link: bool) -> None:
        """Copy a file, or with `link` give it a second name; nothing where it is gone, or is a link to somewhere."""
        if source.is_symlink():
            return
        with contextlib.suppress(FileNotFoundError):
            if link:
                os.link(source, target, follow_symlinks=False)
            else:
                shutil.copy2(source, target, follow_symlinks=False)

    def touch(self, path: Path) -> None:
        """Change what `stamp` tells of a file."""
        os.utime(path)

    def stamp(self, path: Path) -> int | None:
        """What a touch changes; it is compared with what it was, never with a clock."""
        # An opened file is asked for anew where a network's client would answer of its cache.
        if (handle := _opened(path)) is None:
            return None
        try:
            return os.fstat(handle).st_mtime_ns
        finally:
            os.close(handle)

    def remove(self, path: Path) -> None:
        """Remove a file or a folder with all that is in it, as far as it is there."""
        if self.is_folder(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()

    def remove_empty(self, folder: Path) -> None:
        """Remove a folder if there is nothing in it."""
        with contextlib.suppress(OSError):
            folder.rmdir()


def _opened(path: Path) -> int | None:
    """A regular file, open to be read; None where there is none. A stranger's pipe is not waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in NO_FILE:
            return None
        raise
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    return None


def numbers(names: Iterable[str]) -> list[int]:
    """Those of some names that are numbers, sorted."""
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


class Ledger:
    """Numbered entries in a folder: each number is written once, by one; entries stay as they are, for ever.

    Who wants to add one says which number it is to have, the one after the last that they know. Of many who try, one
    succeeds; the others read what it wrote and decide anew.

    Args:
        disk: where it lies.
        folder: that of the entries.
    """

    def __init__(self, disk: Disk, folder: Path):
        self.disk, self.folder = disk, folder

    def last(self) -> int:
        """The highest number, 0 where there is none yet; there may be a higher one when this returns."""
        return max(numbers(self.disk.names(self.folder)), default=0)

    def read(self, number: int) -> bytes | None:
        """An entry; None where there is none of that number."""
        return self.disk.read(self.place(number)) if number > 0 else None

    def add(self, number: int, content: bytes) -> bool:
        """Add the entry of a number; False where there is one."""
        self.disk.make(self.folder)
        return self.disk.create(self.place(number), content)

    def place(self, number: int) -> Path:
        """An entry's file."""
        return self.folder / f"{number:06d}"
