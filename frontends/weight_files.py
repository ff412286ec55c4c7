"""Files of weights, read only where they are files: a pipe or a device may never end."""

from __future__ import annotations

import errno
import stat
from io import BufferedReader
from pathlib import Path


def open_regular(path: Path) -> BufferedReader:
    """A regular file, open to be read.

    Raises:
        OSError: where it is something else, or cannot be read; `strerror` says why.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    return path.open("rb")
