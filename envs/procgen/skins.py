"""The cache of skins: copies of Procgen's library, each with assets of its own that are painted by class.

Procgen reads its assets once for a loaded library, so every skin is a copy of the library beside a folder of assets. An
entry is keyed by the wheel's content and the skin's colours, is built once under a lock and moved into place in one go,
and is checked whenever it is opened: a damaged entry is built anew.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from lcd.envs.errors import InputError
from lcd.envs.procgen.mask_tables import Colour
from lcd.envs.procgen.paint import LEAST_OPACITY, OPAQUE

LIBRARY = "libenv.so"
CACHE_VARIABLE = "LCD_CACHE"
_FORMAT = "1"  # changes when the same wheel and colours should give other files
_SEAL = "seal"


NOT_INSTALLED = (
    "Procgen is not installed: pip install --no-deps procgen-mirror gym3, then pip install 'cffi<2' imageio; "
    "there are wheels for Linux on x86_64 with Python 3.11 and 3.12."
)


def wheel() -> Path:
    """The `data` folder of the installed Procgen, which is not imported: that would take the unmaintained `gym`."""
    spec = find_spec("procgen")
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    for place in places:
        if (Path(place) / "data" / "prebuilt" / LIBRARY).is_file():
            return Path(place) / "data"
    raise InputError(NOT_INSTALLED)


def cache_folder(cache: str | None = None) -> Path:
    """Where skins are kept: the knob, else the environment variable LCD_CACHE, else the user's cache folder."""
    chosen = cache or os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser() / "procgen"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lcd" / "procgen"


def skin_folder(colours: Mapping[str, Colour | None], cache: str | None = None) -> Path:
    """The folder of a skin, which is built first if it is not there or damaged."""
    data, parent = wheel(), cache_folder(cache)
    place = parent / _key(data, tuple(sorted(colours.items())))
    if _sound(place):
        return place
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with _lock(parent / f"{place.name}.lock"):
            if not _sound(place):
                _build(place, data, colours)
    except OSError as error:
        raise InputError(
            f"The folder {parent}, where Procgen's masks are kept, cannot be written ({error.strerror or error}): name "
            f"a writable one with the knob cache=… or the environment variable {CACHE_VARIABLE}."
        ) from None
    return place


@lru_cache
def _key(data: Path, colours: tuple[tuple[str, Colour | None], ...]) -> str:
    digest = blake2b(f"{_FORMAT} {colours} {sorted(LEAST_OPACITY.items())}".encode(), digest_size=10)
    digest.update((data / "prebuilt" / LIBRARY).read_bytes())
    for sprite, _ in colours:
        digest.update((data / "assets" / sprite).read_bytes())
    return digest.hexdigest()


def _digest(folder: Path) -> str:
    """A fingerprint of every file below a folder but the seal."""
    digest = blake2b(digest_size=20)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != _SEAL:
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _sound(place: Path) -> bool:
    try:
        return (place / _SEAL).read_text() == _digest(place)
    except OSError:
        return False


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Only one process builds; where a file system has no locks all do, and the last move wins."""
    import fcntl

    with path.open("a") as file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(place: Path, data: Path, colours: Mapping[str, Colour | None]) -> None:
    work = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=place.parent))
    try:
        made = work / "made"
        made.mkdir()
        shutil.copyfile(data / "prebuilt" / LIBRARY, made / LIBRARY)
        _write_assets(made / "assets", data / "assets", colours)
        (made / _SEAL).write_text(_digest(made))
        if place.exists():
            os.rename(place, work / "damaged")
        os.rename(made, place)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _write_assets(target: Path, source: Path, colours: Mapping[str, Colour | None]) -> None:
    """Every file that the library asks for: painted silhouettes, and one pixel for what is never drawn."""
    nothing = png(np.zeros((1, 1, 4), dtype=np.uint8))
    for path in source.rglob("*.png"):
        name = path.relative_to(source).as_posix()
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(png(silhouette(path, colours[name])) if name in colours else nothing)


def silhouette(path: Path, colour: Colour | None) -> np.ndarray:
    """The sprite in one colour, of the same size, with edges that are either there or not."""
    from imageio.v3 import imread

    alpha = imread(path, mode="RGBA")[..., 3]
    name = "/".join(path.parts[-2:])
    painted = np.zeros((*alpha.shape, 4), dtype=np.uint8)
    if colour is not None:
        painted[alpha >= LEAST_OPACITY.get(name, OPAQUE)] = (*colour, 255)
    return painted


def png(pixels: np.ndarray) -> bytes:
    """An RGBA image as a PNG file."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), dtype=np.uint8), pixels.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    body = (struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)
