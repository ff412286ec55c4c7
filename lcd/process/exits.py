"""How commands end: what every exit code means (the only place that says so), and what is said on the way out."""

import contextlib
import errno
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Collection
from types import TracebackType

from lcd import __version__
from lcd.process.signals import CONTINUE_ME

OK, FAILED, MISTAKE, OURS, STOPPED, PIPE = 0, 1, 2, 70, 130, 141
EXITS = {
    OK: "all went well",
    FAILED: "something failed that is nobody's mistake: a run, a full disk, too little memory, a simulator",
    MISTAKE: "a mistake in the command or in a file that it reads; nothing was changed",
    OURS: "a fault of lcd; the log that is named tells all about it",
    CONTINUE_ME: "stopped by SIGTERM, SIGHUP or SIGUSR1; the same command continues. lcd status: runs are left to do",
    STOPPED: "stopped by Ctrl-C; the same command continues",
    PIPE: "whoever read the output went away (lcd list | head)",
}

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
KEPT_OUT = {errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EMFILE}
KEPT_OUT |= {errno.EIO, errno.EBUSY, errno.EROFS}


def exit_code_table() -> list[str]:
    """A line for each exit code."""
    return [f"  {code:>3}  {meaning}" for code, meaning in EXITS.items()]


def print_error(sentence: str, code: int) -> int:
    """Tell what went wrong; returns the code."""
    with contextlib.suppress(OSError):
        print(f"lcd: {printable(sentence)}", file=sys.stderr)
    return code


def printable(text: object) -> str:
    """A text in one line, with nothing that would command a terminal."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(text))


def system_refusal(fault: Exception) -> str | None:
    """What the system refused, in a sentence; None where it is no refusal but a fault of ours."""
    from lcd.files.atomic import disk_full_error

    # A library's error may hide that a disk is full.
    trouble = disk_full_error(fault) or fault
    if not isinstance(trouble, OSError):
        return None
    where = f" at {trouble.filename}" if trouble.filename else ""
    if trouble.errno in NO_ROOM:
        return (
            f"{trouble.strerror}{where}: what was written before is whole; make room, and the same command continues."
        )
    if trouble.errno == errno.ENOENT and "temporary directory" in str(trouble.strerror):
        return (
            "no folder for temporary files can be written: make room in /tmp, or name another one by TMPDIR; the same "
            "command continues."
        )
    if isinstance(trouble, IsADirectoryError):
        return f"{trouble.filename} is a folder where a file should be: move it away; the same command continues."
    if trouble.errno in KEPT_OUT:
        return f"{trouble.strerror}{where}: lcd must be able to read and write there; the same command continues."
    return None


def discard_output() -> None:
    """What is left to print goes nowhere: the interpreter must not complain when it flushes."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report_unexpected(fault: Exception, line: str, modules: Collection[str]) -> int:
    """The last resort: a sentence, and a log with everything else; returns the exit code.

    Args:
        fault: what was raised.
        line: the command.
        modules: those of the user's own that it names.
    """
    what = f"{type(fault).__name__}: {fault}".split("\n")[0][:200]
    about = f"lcd {__version__}, Python {platform.python_version()}, {platform.platform()}"
    log = f"{about}\n{line}\n\n{traceback.format_exc()}".encode("utf-8", "backslashreplace")
    try:
        handle, path = tempfile.mkstemp(prefix="lcd-fault-", suffix=".log")
        with os.fdopen(handle, "wb") as file:
            file.write(log)
    except OSError:
        return print_error(f"this is a fault of lcd ({what}), and there is no room for a log of it.", OURS)
    if (own := _own_code(fault.__traceback__, modules)) is not None:
        return print_error(f"{own}, which is yours, failed ({what}): {path} says where.", FAILED)
    return print_error(
        f"this is a fault of lcd, not yours ({what}): please report it with {path}, which says where.", OURS
    )


def _own_code(trace: TracebackType | None, modules: Collection[str]) -> str | None:
    """The one of a user's modules in which something failed, if it was there."""
    passed = {str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(trace)}
    return next((name for name in modules if name in passed), None)
