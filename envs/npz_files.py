"""Arrays in `.npz` files that anybody may have written: nothing is unpickled, and no memory is taken unasked."""

from __future__ import annotations

import io
import math
import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lcd.envs.errors import InputError

MOST_BYTES = 2**31
"""Of one array in a file."""
MEMBER = ".npy"
_HEADER_BYTES = 1 << 16
"""A header's own word for how long it is counts no further than this."""


class Header(NamedTuple):
    """What a file says of an array before it is read, and how many bytes that would be."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    bytes_told: int
    bytes_there: int

    def refuse_lies(self, path: Path, key: str) -> None:
        """Refuse an array that has other bytes than its header tells of."""
        if self.bytes_there != self.bytes_told:
            raise InputError(
                f"{path}: '{key}' has {self.bytes_there:,} bytes, but its header tells of {self.bytes_told:,}: save it "
                "anew."
            )


@contextmanager
def opened(path: Path, right: str) -> Iterator[zipfile.ZipFile]:
    """The archive in a regular file; whatever goes wrong within it is an `InputError`.

    Args:
        path: the file.
        right: what should be given, for the sentence.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(f"{path} is no regular file: give {right}.")
        with zipfile.ZipFile(path) as archive:
            yield archive
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}): give an .npz file.") from None
    # A broken or hostile archive makes zipfile, zlib and numpy raise nearly anything.
    except Exception as error:
        why = (str(error).splitlines() or [""])[0].rstrip(".") or type(error).__name__
        raise InputError(f"{path} is no .npz file that can be read: {why}.") from None


def keys_in(archive: zipfile.ZipFile) -> list[str]:
    """The names of the arrays of a file."""
    return [name.removesuffix(MEMBER) for name in archive.namelist() if name.endswith(MEMBER)]


def header_in(path: Path, archive: zipfile.ZipFile, key: str) -> Header:
    """The header of an array, which alone is read."""
    info = archive.getinfo(f"{key}{MEMBER}")
    # Of other methods zipfile unpacks a whole piece at once, however long it becomes.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(
            f"{path}: '{key}' is packed by another method than numpy's: save it by numpy.savez_compressed."
        )
    with archive.open(info) as member:
        head = io.BytesIO(member.read(_HEADER_BYTES))
    version = np.lib.format.read_magic(head)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise InputError(f"{path}: '{key}' is of the npy version {version}, but must be of (1, 0) or (2, 0).")
    shape, _, dtype = readers[version](head)
    return Header(shape, dtype, head.tell() + math.prod(shape) * dtype.itemsize, info.file_size)


def array_in(archive: zipfile.ZipFile, key: str) -> np.ndarray:
    """An array whose header was looked at."""
    with archive.open(f"{key}{MEMBER}") as member:
        return np.lib.format.read_array(member, allow_pickle=False)


def numbers_in(path: Path, archive: zipfile.ZipFile, key: str, dimensions: tuple[int, ...]) -> np.ndarray:
    """An array of real numbers with as many dimensions as one of those.

    Raises:
        InputError: where it holds something else (pickled objects, say), is too large, or lies about its size.
    """
    header = header_in(path, archive, key)
    if header.dtype.kind not in "iufb" or header.dtype.hasobject:
        raise InputError(f"{path}: '{key}' has the type {header.dtype}, but must hold numbers (nothing is unpickled).")
    if len(header.shape) not in dimensions or min(header.shape, default=1) < 0:
        told = " or ".join(map(str, dimensions))
        raise InputError(f"{path}: '{key}' has the shape {header.shape}, but must have {told} dimensions.")
    if header.bytes_told > MOST_BYTES:
        raise InputError(f"{path}: '{key}' has the shape {header.shape}, which is more than the 2 GB that are read.")
    header.refuse_lies(path, key)
    return array_in(archive, key)
