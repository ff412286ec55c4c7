"""Processes of ours that a process of ours starts: fresh interpreters that do work named as `module:function`."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from multiprocessing.connection import Connection, Pipe
from typing import Any

from lcd.envs.errors import Cancelled, Diverged, InputError
from lcd.files.atomic import disk_full_error

LONGEST_ERROR = 500


def start(life: str, environment: Mapping[str, str] | None = None, group: int | None = None) -> tuple[Any, Connection]:
    """Start a process that calls `life` with a pipe's descriptor.

    The other end is the starting process's alone: when that dies, by whatever, the pipe closes.

    Args:
        life: `module:function`.
        environment: the process's variables; None: those of this one.
        group: its process group, 0 for one of its own; None: this one's.

    Returns:
        The `subprocess.Popen` and this process's end of the pipe.
    """
    module, _, function = life.partition(":")
    pipe, far_end = Pipe()
    process = subprocess.Popen(
        # -P: whatever lies in the working directory must not stand for a module of ours or of Python's.
        [sys.executable, "-P", "-c", f"from {module} import {function}; {function}({far_end.fileno()})"],
        pass_fds=[far_end.fileno()],
        stdin=subprocess.DEVNULL,
        env=environment,
        process_group=group,
    )
    far_end.close()
    return process, pipe


def resolve(target: str) -> Any:
    """The object at `module:object`."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def describe(error: BaseException) -> str:
    """An error in one line."""
    full = disk_full_error(error)
    text = " ".join(str(full or error).split())
    if full is not None:
        mend = "make it writable" if full.errno == errno.EROFS else "make room"
        return f"{text}. What was written before is whole: {mend}, and the same command continues."
    if isinstance(error, IsADirectoryError):
        return f"{error.filename} is a folder where a file should be: move it away"
    return (
        text
        if isinstance(error, InputError | Diverged | Cancelled)
        else f"{type(error).__name__}: {text}"[:LONGEST_ERROR]
    )
