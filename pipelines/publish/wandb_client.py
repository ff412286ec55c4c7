"""What we ask of W&B's client: runs that say nothing and stop nothing, and where their offline files are."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import logging
import os
import secrets
import shutil
import socket
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from lcd.config.settings import checked
from lcd.envs.errors import InputError, nearest
from lcd.pipelines.study.configs import TrackerEntry

INIT_TIMEOUT_S = 30.0
FLUSH_TIMEOUT_S = 3.0
ASKED_FOR_S = 10
FINISH_TIMEOUT_S = 300.0
"""So long a run's end may wait for W&B's server; what is not uploaded by then stays on the disk."""
PLACE = "wandb"
"""Where the client puts its files, in a folder that it is given."""
HEADER, BLOCK = 7, 32768

QUIET = {
    "silent": True,
    "console": "off",
    "disable_git": True,
    "disable_code": True,
    "disable_job_creation": True,
    "save_code": False,
    "init_timeout": INIT_TIMEOUT_S,
    "finish_timeout": FINISH_TIMEOUT_S,
    "finish_timeout_raises": True,
    "x_disable_meta": True,
    "x_disable_stats": True,
    "x_disable_machine_info": True,
    "x_save_requirements": False,
    # Whole blocks only until the run is finished: see `finish`.
    "x_transaction_log_flush_interval": 0,
}

SCHEME = "wandb:"
"""What a path begins with that names W&B's runs and no file."""
REACHED_IN_S = 5.0
"""So long a connection may take to open."""
MODES = ("offline", "online", "disabled")


@dataclass(frozen=True)
class WandbSettings:
    """How W&B mirrors a study.

    Attributes:
        mode: offline needs no login.
        project: W&B's project.
        entity: W&B's user or team; None: who is logged in.
        videos: of so many evaluations one is filmed (a held-out episode of the first seed); 0: none.
        artifacts: whether weights of pretrained front-ends, curves and the diagnosis go along as artifacts.
    """

    mode: str = "offline"
    project: str = "lcd"
    entity: str | None = None
    videos: int = 0
    artifacts: bool = True

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"tracker.mode={self.mode} is unknown: {nearest(self.mode, MODES)}")
        if self.videos < 0:
            raise InputError(f"tracker.videos={self.videos} must be 0 (none) or more: of so many evaluations one.")


def is_wandb(path: str | None) -> bool:
    """Whether a command's path names W&B's runs."""
    return path is not None and path.startswith(SCHEME)


def wandb_settings(tracker: TrackerEntry) -> WandbSettings:
    """What is set of `tracker=wandb`."""
    return checked(WandbSettings, tracker.get("settings", {}), "tracker", "tracker=wandb", "setting")


def logged_in() -> bool:
    """Whether W&B has a key, or is too old to say so without asking for one; nothing is sent anywhere."""
    import wandb

    logging.getLogger("wandb").setLevel(logging.ERROR)
    if "prompt" not in inspect.signature(wandb.login).parameters:
        return True
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            return bool(wandb.login(prompt=False, verify=False))
        except wandb.Error:
            return False


def unreachable() -> str | None:
    """Why no connection to W&B's server can be opened; None where one can, or where a proxy stands between."""
    import wandb

    url = urlsplit(wandb.setup().settings.base_url)
    if not url.hostname or url.scheme in getproxies():
        return None
    try:
        socket.create_connection((url.hostname, url.port or 443), timeout=REACHED_IN_S).close()
    except OSError as error:
        return f"{url.netloc}: {error.strerror or error}"
    return None


def harmless(method: Callable[..., Any]) -> Callable[..., Any]:
    """Turn whatever W&B raises into one warning, after which the mirror stays quiet."""

    @functools.wraps(method)
    def wrapped(self: Any, *arguments: Any, **knobs: Any) -> Any:
        if self.broken:
            return None
        try:
            return method(self, *arguments, **knobs)
        except Exception as error:
            self.broken = True
            message = " ".join(str(error).split())
            warnings.warn(f"W&B is left out from here on: {type(error).__name__}: {message}", stacklevel=2)
            return None

    return wrapped


def new_id() -> str:
    """A W&B run id, minted at random once and then kept."""
    return secrets.token_hex(6)


def id_of_sweep() -> str | None:
    """The id that W&B's agent has given to the run that it calls us for, which then is the run's; None without one."""
    return os.environ.get("WANDB_RUN_ID") if os.environ.get("WANDB_SWEEP_ID") else None


def discard_unsynced(folder: Path) -> bool:
    """Remove the offline W&B folders in `folder`; returns whether none is left, i.e. none was synced."""
    left = [path for path in offline_folders(folder) if list(path.glob("*.synced"))]
    for path in set(offline_folders(folder)) - set(left):
        shutil.rmtree(path, ignore_errors=True)
    return not left


def offline_folders(folder: Path) -> list[Path]:
    """The offline W&B runs that a run's or a diagnosis's folder holds; what is elsewhere is not followed."""
    try:
        found = [] if (folder / PLACE).is_symlink() else sorted((folder / PLACE).glob("offline-run-*"))
        return [path for path in found if not path.is_symlink()]
    except PermissionError:  # somebody else's, whose folder may not be read
        return []


def start(settings: WandbSettings, folder: Path, run_id: str, **fields: Any) -> Any:
    """A W&B run in `folder`, silent, with nothing gathered about the machine."""
    import wandb

    if (folder / PLACE).is_symlink():
        raise InputError(f"{folder / PLACE} is a link: nothing is written there; remove it.")
    logging.getLogger("wandb").setLevel(logging.ERROR)
    # Releases of W&B differ in what can be set.
    quiet = wandb.Settings(**{key: value for key, value in QUIET.items() if key in wandb.Settings.model_fields})
    # A run that an earlier failure left open in this process would take this run's rows.
    if wandb.run is not None:
        wandb.run.finish(exit_code=1)
    return wandb.init(
        project=settings.project,
        entity=settings.entity,
        mode=settings.mode,
        dir=str(folder),
        id=run_id,
        resume="allow",
        settings=quiet,
        **fields,
    )


def rows_there(run: Any) -> int:
    """How many rows of a resumed run's history W&B's server has.

    The client counts from the run's summary, which may be ahead of the history where a process was killed.
    """
    import wandb

    try:
        last = wandb.Api(timeout=ASKED_FOR_S).run(run.path).lastHistoryStep
    except Exception:  # the client raises whatever its server and its own checks bring up
        return int(run.starting_step)
    return min(int(last) + 1, int(run.starting_step))


def finish(run: Any, folder: Path) -> None:
    """End a W&B run and wait until its offline file is whole, which W&B's service sees to a little later.

    The service writes blocks of 32 KiB; the file's end is written, and its length another, when the run is closed.
    """
    run.finish()
    end = time.monotonic() + FLUSH_TIMEOUT_S
    files = [path for place in offline_folders(folder) for path in place.glob(f"run-{run.id}.wandb")]
    while any(path.stat().st_size <= HEADER or path.stat().st_size % BLOCK == 0 for path in files):
        if time.monotonic() >= end:
            break
        time.sleep(0.005)
