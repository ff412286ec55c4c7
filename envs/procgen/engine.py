"""Procgen's library behind gym3's binding: one engine is the copies of one game with one set of assets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lcd.envs.errors import InputError
from lcd.envs.procgen.skins import NOT_INSTALLED, wheel

try:
    from gym3.libenv import CEnv
except ImportError as missing:
    raise InputError(f"{NOT_INSTALLED} ({missing})") from missing

ACTIONS = 15
SIDE = 64
RESET = -1
"""The action that ends an episode."""

_STATE_FUNCTIONS = ["int get_state(libenv_env *, int, char *, int);", "void set_state(libenv_env *, int, char *, int);"]
_LARGEST_STATE = 2**20
_LOADED: dict[Path, Any] = {}


class Engine(CEnv):
    """One vector of copies. What `rewards`, `frames`, … show is overwritten by the next step."""

    def __init__(self, num_envs: int, options: dict[str, Any], skin: Path | None = None) -> None:
        """Start the library's copies.

        Args:
            num_envs: copies.
            options: what the library is made with; `resource_root` is added.
            skin: the folder of a skin; None for the game's own assets.
        """
        stock = wheel()
        # A skin's copy of the library finds Qt because the stock library has loaded it, so that one comes first.
        if skin is not None and stock / "prebuilt" not in _LOADED:
            Engine(1, options).close()
        folder = stock / "prebuilt" if skin is None else skin
        assets = (stock if skin is None else skin) / "assets"
        self.buffer: Any = None
        super().__init__(
            num_envs,
            lib_dir=str(folder),
            c_func_defs=_STATE_FUNCTIONS,
            options={**options, "resource_root": f"{assets}/"},
            reuse_arrays=True,
        )
        # A library that is unloaded would read its assets again.
        _LOADED.setdefault(folder, self._c_lib)
        # cffi looks a function up under a lock when it is first used. The garbage collector may close an engine while
        # that lock is held, which would then wait for itself: what closing needs is looked up now.
        self._closing = self._c_lib.libenv_close
        self.observe()

    @property
    def frames(self) -> np.ndarray:
        """uint8 (copies, 64, 64, 3)."""
        return self._ob["rgb"]

    @property
    def rewards(self) -> np.ndarray:
        """float32 (copies,)."""
        return self._rew

    @property
    def first(self) -> np.ndarray:
        """Has a new episode begun with this frame? Booleans (copies,)."""
        return self._first

    @property
    def levels(self) -> dict[str, np.ndarray]:
        """int32 `level_seed` and `prev_level_seed`, uint8 `prev_level_complete`; the high-resolution `rgb` if asked."""
        return self._info

    def start(self, actions: np.ndarray) -> None:
        """Begin a step; the library's threads carry it out."""
        self._ac["action"][:] = actions
        self._c_lib.libenv_act(self._c_env)

    def finish(self) -> None:
        """Wait for the step to end."""
        self._c_lib.libenv_observe(self._c_env)

    def get_state(self, copy: int) -> bytes:
        """The state of one copy, as Procgen writes it."""
        if self.buffer is None:
            self.buffer = self._ffi.new(f"char[{_LARGEST_STATE}]")
        length = self._c_lib.get_state(self._c_env, copy, self.buffer, _LARGEST_STATE)
        return self._ffi.buffer(self.buffer, length)[:]

    def set_state(self, copy: int, state: bytes) -> None:
        """Continue one copy from a state; its frame is drawn anew."""
        self._c_lib.set_state(self._c_env, copy, state, len(state))
