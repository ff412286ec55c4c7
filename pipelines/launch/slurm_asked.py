"""What Slurm's sbatch is asked for: the settings of `launcher=slurm`, and what it takes not, in its own words."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, NoReturn

from lcd.envs.errors import InputError

OURS = ("array", "chdir", "comment", "dependency", "error", "help", "open-mode", "output", "parsable", "signal",
        "test-only", "usage", "version", "wait", "wrap")  # fmt: skip
"""Keys of sbatch that this launcher says itself, or that would submit something else."""
NO_CLUSTER = ("configuration source", "contact slurm controller", "communications connection failure")
"""Words of sbatch where no cluster answers it."""
USUAL_ARRAY = 1001
"""Slurm's default of MaxArraySize."""


@dataclass(frozen=True)
class SlurmSettings:
    """Settings of `launcher=slurm`; `launcher.workers` says how many jobs of an array may run at the same time.

    Attributes:
        partition: where jobs are queued; null: the cluster's own.
        account: whose share they take.
        qos: their quality of service.
        constraint: features that their nodes must have.
        time: minutes that a job may take; one that comes to its end is queued again and goes on.
        memory: gigabytes of a job; null: the cluster's own.
        gpus: GPUs of a job, which its runs share.
        pack: runs in one job, at the same time.
        notice: seconds before the limit at which a job keeps what is trained; more than launcher.grace.
        retries: how often a job is submitted anew that was lost: with its node, pre-empted, or killed without a word.
        poll: seconds between two questions to Slurm.
        detach: submit, and do not wait (--detach).
        sbatch: further keys of sbatch ({exclusive: true, mail-type: FAIL}).
    """

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    time: int = 1440
    memory: float | None = None
    gpus: int = 0
    pack: int = 1
    notice: int = 120
    retries: int = 3
    poll: float = 10.0
    detach: bool = False
    sbatch: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, least in {"time": 1, "gpus": 0, "pack": 1, "notice": 1, "retries": 0, "poll": 0.1}.items():
            if getattr(self, key) < least:
                raise InputError(f"launcher.{key}={getattr(self, key)} must be at least {least}.")
        if self.memory is not None and not self.memory > 0:
            raise InputError(f"launcher.memory={self.memory} must be above 0.")
        for key, value in self.sbatch.items():
            if str(key).replace("_", "-") in OURS:
                raise InputError(f"launcher.sbatch={{{key}: …}}: the launcher finds its jobs by that; leave it out.")
            if any(ord(letter) < 32 for letter in f"{key}{value}"):
                raise InputError(f"launcher.sbatch={{{key}: …}}: a key and its value stand in one line.")
        if self.time * 60 <= self.notice:
            raise InputError(
                f"launcher.notice={self.notice} must be less than the {self.time} minutes of launcher.time."
            )


def look_ahead(*, settings: SlurmSettings, workers: int | str, threads: int, grace: float) -> None:
    """Have Slurm say whether it would take such a job."""
    if settings.notice <= grace:
        raise InputError(f"launcher.notice={settings.notice} must be more than launcher.grace={grace:g}.")
    if shutil.which("sbatch") is None:
        raise InputError("launcher=slurm needs Slurm's sbatch, which is not here: log in to a node that submits jobs.")
    if find_spec("submitit") is None:
        raise InputError(
            "launcher=slurm needs submitit: install it with pip install 'learning-challenge-diagnosticator[slurm]'."
        )
    asked = with_further({**asked_of_sbatch(settings), "time": settings.time, "cpus_per_task": threads}, settings)
    keys = [f"--{key.replace('_', '-')}" + ("" if value is True else f"={value}") for key, value in asked.items()]
    with outside_of_jobs():
        done = subprocess.run(
            ["sbatch", "--test-only", "--wrap=true", *keys], capture_output=True, text=True, check=False
        )
    if done.returncode:
        refuse(done.stderr)


def asked_of_sbatch(own: SlurmSettings, least_gpus: int = 0) -> dict[str, Any]:
    """What of the settings sbatch is told as it stands."""
    told = {
        "partition": own.partition,
        "account": own.account,
        "qos": own.qos,
        "constraint": own.constraint,
        "mem": None if own.memory is None else f"{int(own.memory * 1024)}M",
        "gpus_per_node": max(own.gpus, least_gpus) if own.gpus else None,
    }
    return {key: value for key, value in told.items() if value is not None}


def with_further(usual: dict[str, Any], own: SlurmSettings) -> dict[str, Any]:
    """Keys of sbatch, and what the user says in their place: true is one without a value, false takes one away."""
    told = usual | {str(key).replace("-", "_"): value for key, value in own.sbatch.items()}
    return {key: value for key, value in told.items() if value is not False}


def refuse(told: str) -> NoReturn:
    """Tell why sbatch takes no such job, in its words."""
    if any(words in told for words in NO_CLUSTER):
        why = f"launcher=slurm: sbatch reaches no Slurm ({_last_lines(told)})"
        raise InputError(f"{why}: log in to a node that submits jobs, or set SLURM_CONF.") from None
    raise InputError(f"launcher=slurm: sbatch takes no such job ({_last_lines(told)}).") from None


def _last_lines(told: str) -> str:
    why = " ".join(line.removeprefix("sbatch: ").removeprefix("error: ") for line in told.strip().splitlines()[-3:])
    return why[-300:]


def largest_array() -> int:
    """How many jobs an array of this cluster may have."""
    done = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, check=False)
    found = [line.partition("=")[2].strip() for line in done.stdout.splitlines() if line.startswith("MaxArraySize")]
    return int(found[0]) - 1 if found and found[0].isdigit() else USUAL_ARRAY - 1


@contextlib.contextmanager
def outside_of_jobs() -> Iterator[None]:
    """Hide the variables of a Slurm job, in which this command may run itself: they would hold for what it submits."""
    hidden = {name: value for name, value in os.environ.items() if name.startswith("SLURM_") and name != "SLURM_CONF"}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)
