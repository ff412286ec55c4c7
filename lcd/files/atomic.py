"""Writing files so that nobody ever finds half of one, and telling whether one has changed."""

import contextlib
import errno
import fcntl
import functools
import hashlib
import os
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from lcd.envs.errors import InputError

UNFINISHED = ".partial"
"""How the names of files end that are still written; they are hidden, too."""
STALE_S = 3600.0
"""A file that is still being written was touched since so many seconds, whatever clocks differ by."""
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
"""What the system says when a disk takes no more of what is written."""


def write_atomic(path: str | Path, content: str | bytes) -> None:
    """Write a file so that a reader, a crash or a power cut sees the old content or the new, never a part of it."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` once it is on the disk; an error leaves the old one."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=unfinished_prefix(path), suffix=UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that only their owner may read.
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if error.errno and error.filename in (None, temporary):
            error.filename = str(path)  # a write does not say where, and nobody knows the temporary one
        raise
    finally:
        # What is half written would take the room that whatever else must be written needs.
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    sync(path.parent)


def make_folder(path: str | Path) -> None:
    """Make a folder, and those above it, so that a power cut does not lose it with what is written into it later."""
    path = Path(path)
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync(path.parent)


def unfinished_prefix(path: Path) -> str:
    """How the name of a file begins that is still written: with its name, and with who writes it."""
    return f".{path.name}.{_machine()}-{os.getpid()}-"


def remove_unfinished(folder: str | Path, deep: bool = True) -> None:
    """Delete what processes that were killed while they wrote have left in a folder; others may be writing there.

    Args:
        folder: the folder.
        deep: also in folders below.
    """
    for path in (Path(folder).rglob if deep else Path(folder).glob)(f".*{UNFINISHED}"):
        with contextlib.suppress(FileNotFoundError):
            machine, _, process = path.name.removesuffix(UNFINISHED).rpartition(".")[2].partition("-")
            number = process.partition("-")[0]
            dead = machine == _machine() and number.isdecimal() and not Path(f"/proc/{number}").exists()
            if dead or time.time() - path.lstat().st_mtime >= STALE_S:
                path.unlink()


@functools.cache
def _machine() -> str:
    """What tells machines apart, and containers, which have process ids of their own."""
    try:
        told = Path("/proc/sys/kernel/random/boot_id").read_text() + os.readlink("/proc/self/ns/pid")
    except OSError:
        told = socket.gethostname()
    return hashlib.sha256(told.encode()).hexdigest()[:8]


@contextlib.contextmanager
def locked(path: str | Path, sentence: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold an exclusive lock on a file or a folder; the system releases it when the process ends, however it ends.

    Args:
        path: a folder, which must be there, or a file, which is made.
        sentence: the `InputError` when another process holds it for too long.
        wait_s: how many seconds are not too long.
    """
    handle = os.open(path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        end = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise InputError(sentence) from None
                time.sleep(0.05)
        # Whoever held it may have removed it, so that the next one makes another.
        if not os.path.exists(path) or not os.path.samestat(os.stat(path), os.fstat(handle)):
            raise InputError(sentence)
        yield
    finally:
        os.close(handle)


def is_locked(path: str | Path) -> bool | None:
    """Does a process hold the lock of a file? None where this user may not know."""
    try:
        # A stranger's may be a pipe, which nobody need write to.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK)) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except PermissionError:
        return None
    except OSError:
        pass
    return False


def sync(path: str | Path) -> None:
    """See onto the disk what a file holds, or what was made, renamed or removed in a folder.

    Without it a power cut may undo that a file was made or renamed.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def disk_full_error(error: BaseException) -> OSError | None:
    """The system's own word that a disk takes no more, which a library's error may hide.

    Args:
        error: what was raised, maybe while that word was being handled.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in DISK_FULL:
            return seen
        seen = seen.__cause__ or seen.__context__
    return None


def sha256_of(path: str | Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal digits; an `OSError` for a pipe or a device: it may never end."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
