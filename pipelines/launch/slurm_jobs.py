"""What was submitted to Slurm, as a study's folder tells, and what Slurm says of it.

    study/slurm/<when>-<letters>/     one submission, by one command
      jobs.json                       its jobs, and which calls each makes
      outcomes-….json                 how the calls of a job ended
      *_submitted.pkl  *_log.out      submitit's: what a job is given, and what it printed

So a command that comes later finds what is queued already, and `lcd cancel` what nobody wants any more. A study may
be a stranger's: a job counts only if Slurm says, by its comment, that it was submitted from this very folder.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcd.files.atomic import make_folder, write_atomic
from lcd.files.reading import Unreadable, read_json

PLACE, JOBS_FILE = "slurm", "jobs.json"
PENDING, CANCELLED = "PENDING", "CANCELLED"
LIVING = ("PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "REQUEUED", "RESIZING", "REQUEUE_HOLD",
          "REQUEUE_FED", "SIGNALING", "STAGE_OUT", "STOPPED", "SPECIAL_EXIT")  # fmt: skip
STUCK = "STUCK"
"""What is said here of a job that waits for ever."""
NEVER_STARTS = ("launch failed requeued held", "DependencyNeverSatisfied")
"""Why a job waits for ever: its node could not start it, or what it waits for was lost. Others that wait are let go."""
JOB_ID = re.compile(r"\d+(_\d+)?")
PATIENCE_S = 60


@dataclass(frozen=True)
class Submitted:
    """A job.

    Attributes:
        job: its id; within an array `<array>_<number>`.
        calls: the names of the calls that it makes.
        outcomes: the file that takes how they ended.
    """

    job: str
    calls: tuple[str, ...]
    outcomes: Path

    @property
    def array(self) -> str:
        return self.job.partition("_")[0]

    @property
    def mark(self) -> Path:
        """The file that says: it was cancelled because it would never have started, and is to be submitted again."""
        return self.outcomes.with_suffix(".again")

    @property
    def log(self) -> Path:
        """What it printed."""
        return self.outcomes.parent / f"{self.job}_0_log.out"

    def ended(self) -> dict[str, dict[str, Any]] | None:
        """How its calls ended, by their names; None as long as that is not written."""
        try:
            told = read_json(self.outcomes)
        except Unreadable:
            return None
        whole = isinstance(told, dict) and all(isinstance(told.get(name), dict) for name in self.calls)
        return {name: {"error": None, "stopped": False} | told[name] for name in self.calls} if whole else None


def make_place(study: Path) -> Path:
    """A new folder for one submission: nobody could have put anything there before."""
    make_folder(study / PLACE)
    return Path(tempfile.mkdtemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), dir=study / PLACE)).resolve()


def discard(place: Path) -> None:
    """Remove the folder of a submission of which nothing came."""
    shutil.rmtree(place, ignore_errors=True)
    with contextlib.suppress(OSError):
        place.parent.rmdir()


def remember(place: Path, jobs: Iterable[Submitted]) -> None:
    """Write down what was submitted."""
    told = {each.job: {"calls": each.calls, "outcomes": each.outcomes.name} for each in jobs}
    write_atomic(place / JOBS_FILE, json.dumps(told, indent=1))


def remembered(place: Path) -> list[Submitted]:
    """What was submitted from a folder; of what a stranger may have written there, what can be meant."""
    try:
        told = read_json(place / JOBS_FILE)
    except Unreadable:
        return []
    found = []
    for job, each in told.items() if isinstance(told, dict) else ():
        match each:
            case {"calls": list(calls), "outcomes": str(outcomes)} if JOB_ID.fullmatch(job) and "/" not in outcomes:
                found.append(Submitted(job, tuple(map(str, calls)), place / outcomes))
    return found


def job_states(arrays: Iterable[str]) -> dict[str, tuple[str, str]] | None:
    """The states of jobs and their comments, by their ids, as far as Slurm still knows them.

    Args:
        arrays: the ids of arrays and of single jobs.

    Returns:
        None where Slurm does not answer: its jobs go on meanwhile.
    """
    asked = ",".join(sorted(set(arrays)))
    if not asked:
        return {}
    ask = ["squeue", "--noheader", "--array", "--states=all", f"--jobs={asked}", "--format=%i|%T|%r|%k"]
    try:
        done = subprocess.run(ask, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode:
        return {} if "nvalid job id" in done.stderr else None
    lines = (line.strip().split("|", 3) for line in done.stdout.splitlines())
    return {
        job: (STUCK if state == PENDING and reason in NEVER_STARTS else state, comment)
        for job, state, reason, comment in (line for line in lines if len(line) == 4)
    }


def queued(study: Path) -> dict[Submitted, str]:
    """The jobs submitted for a study that are not over, and their states; none where Slurm does not answer."""
    places = [place for place in (study / PLACE).glob("*") if not place.is_symlink()]
    jobs = {place.resolve(): remembered(place.resolve()) for place in places}
    states = job_states(each.array for found in jobs.values() for each in found) or {}
    return {
        each: states[each.job][0]
        for place, found in jobs.items()
        for each in found
        if each.job in states and states[each.job][0] in (*LIVING, STUCK) and states[each.job][1] == str(place)
    }


def cancel_queued(study: Path, unwanted: Callable[[str], bool], why: str) -> int:
    """Take jobs out of the queue that have not started and of whose calls none is wanted; how many.

    Args:
        study: the study's folder.
        unwanted: whether a call of a name is not wanted.
        why: how such a call ended, for the command that waits for it.
    """
    if not (study / PLACE).is_dir():
        return 0
    waiting = [each for each, state in queued(study).items() if state in (PENDING, STUCK)]
    jobs = [each for each in waiting if all(map(unwanted, each.calls))]
    for each in jobs:
        write_atomic(each.outcomes, json.dumps({name: {"error": why, "stopped": False} for name in each.calls}))
    withdraw(jobs)
    return len(jobs)


def withdraw(jobs: Sequence[Submitted], again: bool = False) -> None:
    """Take jobs out of the queue; a mark tells other commands that wait for them that they are to be made `again`."""
    for each in jobs if again else ():
        each.mark.touch()
    if jobs:
        subprocess.run(["scancel", *(each.job for each in jobs)], capture_output=True, check=False, timeout=PATIENCE_S)


def tidy(study: Path, living: Mapping[Submitted, str]) -> None:
    """Remove the folders of submissions of which all jobs are over and ended well."""
    kept = {each.outcomes.parent for each in living}
    for place in (study / PLACE).glob("*"):
        jobs = remembered(place.resolve()) if place.resolve() not in kept and not place.is_symlink() else []
        if jobs and all(map(_went_well, jobs)):
            shutil.rmtree(place, ignore_errors=True)


def _went_well(job: Submitted) -> bool:
    ended = job.ended()
    return ended is not None and not any(each["error"] or each["stopped"] for each in ended.values())


def arrays_of(jobs: Sequence[Submitted]) -> list[str]:
    """The ids of the arrays of some jobs, each once."""
    return list(dict.fromkeys(each.array for each in jobs))
