"""What MuJoCo draws with where there is no screen: EGL, or OSMesa, which draws in software.

MUJOCO_GL=egl or osmesa says which; else it is EGL where its library is, else OSMesa.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import ctypes.util
import os
import platform
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lcd.envs.errors import InputError

EGL, OSMESA = "egl", "osmesa"
PACKAGES = {EGL: "libegl1 libgl1 libgl1-mesa-dri", OSMESA: "libosmesa6"}
"""What Debian and Ubuntu call what has the libraries."""


def backend() -> str:
    """Which of both; "" where there is neither."""
    said = os.environ.get("MUJOCO_GL", "").lower().strip()
    if said in PACKAGES:
        return said
    return EGL if ctypes.util.find_library("EGL") else OSMESA if ctypes.util.find_library("OSMesa") else ""


def context() -> Any:
    """What all cameras of this process draw with, made current; a process that was forked takes its own."""
    found = _context_of(os.getpid())
    found.make_current()
    return found


@cache
def _context_of(process: int) -> Any:
    try:
        with quiet():
            if platform.system() != "Linux":
                from mujoco import GLContext
            elif backend() == EGL:
                from mujoco.egl import GLContext
            elif backend() == OSMESA:
                from mujoco.osmesa import GLContext
            else:
                raise ImportError("there is neither EGL nor OSMesa")
            made = GLContext(64, 64)  # MuJoCo draws into buffers of its own, whose size is the model's
            atexit.register(_freed, made)
            return made
    except InputError:
        raise
    # A driver fails in its own ways.
    except Exception as why:
        raise _refusal(why) from why


def _freed(made: Any) -> None:
    """Later, what it is freed with is gone; with some drivers it already is."""
    with contextlib.suppress(Exception):
        made.free()


def _refusal(why: Exception) -> InputError:
    told = f"{type(why).__name__}: {str(why).splitlines()[0].rstrip('.') if str(why) else 'no reason given'}"
    said = f"MUJOCO_GL={os.environ['MUJOCO_GL']} needs {PACKAGES[backend()]}; " if backend() else ""
    return InputError(
        f"MuJoCo's bodies are drawn with OpenGL, which cannot be had here ({told}): {said}apt-get install "
        f"{PACKAGES[EGL]}, or {PACKAGES[OSMESA]}, or take view=state."
    )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """MuJoCo without notices while models are read; it would leave them in a file where it runs, too."""
    _load_triton_first()
    if platform.system() == "Linux" and not os.environ.get("DISPLAY"):
        # Else it looks for a screen as soon as it is imported, and complains that there is none.
        os.environ.setdefault("MUJOCO_GL", backend() or "off")
    try:
        import mujoco
    except AttributeError as why:
        # So says the library that looks for a driver that is not there.
        raise _refusal(why) from why
    told = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(told)


@cache
def _load_triton_first() -> None:
    """Mesa draws in software by LLVM; triton, which torch brings, has one of its own, and crashes if it is later."""
    found = find_spec("triton")
    for folder in (found.submodule_search_locations if found else None) or ():
        library = Path(folder) / "_C/libtriton.so"
        if library.is_file() and "OpenGL" not in sys.modules:
            # What cannot be loaded here cannot be in the way either.
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(library))
