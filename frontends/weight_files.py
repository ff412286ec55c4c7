"""Files of weights, read only where they are files: a pipe or a device may never end."""

from __future__ import annotations

import errno
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: Path) -> BinaryIO:
    """A regular file, open to be read.

    Raises:
        OSError: where it is something else, or cannot be read; `strerror` says why.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    return path.open("rb")
