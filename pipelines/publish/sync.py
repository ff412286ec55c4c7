"""`lcd sync`: upload a study's offline W&B runs, by W&B's own client."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from lcd.config.wandb_schemas import SyncConfig
from lcd.consoles import console_for_tables
from lcd.envs.errors import InputError, Unfinished
from lcd.pipelines.publish.wandb_client import logged_in, offline_folders, unreachable
from lcd.pipelines.study import store

AT_ONCE = 50
"""Folders that one call of the client gets: a command line has an end."""


def run(cfg: SyncConfig) -> int:
    """Upload what is not uploaded yet; returns the exit code."""
    if cfg.path is None:
        raise InputError("path is missing: give a study's folder.")
    study, console = store.Study(Path(cfg.path).expanduser()), console_for_tables()
    ready, working = waiting(study)
    if working:
        console.print(f"{working} runs that are at work are left for later.", highlight=False)
    if not ready:
        console.print(f"Nothing of {study.path} waits to be uploaded.", highlight=False, soft_wrap=True, markup=False)
        return 0
    if cfg.dry_run:
        for folder in ready:
            console.print(str(folder), highlight=False, soft_wrap=True, markup=False)
        return 0
    require_server()
    for start in range(0, len(ready), AT_ONCE):
        upload(ready[start : start + AT_ONCE], cfg)
    left, _ = waiting(study)
    console.print(f"{len(ready) - len(left)} of {len(ready)} offline runs are uploaded.", highlight=False)
    return int(bool(left))


def waiting(study: store.Study) -> tuple[list[Path], int]:
    """The offline folders that are not synced, and how many runs are left out because they still write theirs."""
    made = study.runs()
    working = [run for run in made if run.status["state"] == store.RUNNING and offline_folders(run.left)]
    places = [run.left for run in made if run not in working] + [study.diagnosis_dir]
    folders = [folder for place in places for folder in offline_folders(place)]
    return [folder for folder in folders if not list(folder.glob("*.synced"))], len(working)


def require_server() -> None:
    """Refuse in a sentence where nothing can be uploaded from here."""
    if find_spec("wandb") is None:
        raise InputError("W&B is not installed: pip install wandb.")
    if not logged_in():
        raise InputError("W&B has no key here: run 'wandb login', or set WANDB_API_KEY.")
    if (reason := unreachable()) is not None:
        raise Unfinished(f"W&B's server cannot be reached ({reason}): nothing is uploaded, and all of it stays here.")


def upload(folders: Sequence[Path], cfg: SyncConfig) -> None:
    """Have W&B's client upload some folders; what it complains of is told in its last line."""
    own = [f"--{name}={value}" for name in ("project", "entity") if (value := getattr(cfg, name)) is not None]
    command = [sys.executable, "-m", "wandb", "sync", *own, *(str(folder.resolve()) for folder in folders)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()] or ["it does not say why"]
        raise Unfinished(f"W&B's client has failed: {said[-1].strip()}")
