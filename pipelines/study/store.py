"""A study's folder: what was asked for, its runs, its locks. It is the only source of truth.

study/
  study.yaml                 what was asked for
  runs/<run id>/             id = content hash of the run's config: the same request is the same run
    config.yaml  status.json  curve.csv  checkpoints/  wandb/
  diagnosis/

A run that is done is sealed: its status holds the hashes of its curve and checkpoints. `fault_of` says whether what
lies in the folder now is what the run left there.
"""

import contextlib
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from lcd.envs.errors import InputError
from lcd.files.atomic import UNFINISHED, is_locked, locked, make_folder, remove_unfinished, sha256_of, write_atomic
from lcd.files.reading import Unreadable, read_json, read_yaml
from lcd.files.slugs import slug
from lcd.pipelines.kinds.kind import CURVE_FILE, Job, is_job_config, kind_of
from lcd.pipelines.study.cancelling import is_cancelled
from lcd.pipelines.study.configs import (
    STATUS,
    JobConfig,
    PretrainConfig,
    RunConfig,
    Status,
    is_pretraining,
    is_training,
    run_id,
)
from lcd.pipelines.study.overlaps import refuse_overlaps

QUEUED, RUNNING, DONE, FAILED, DIVERGED = STATES = ("queued", "running", "done", "failed", "diverged")
"""What a run can be; of one that diverged (its numbers are not finite any more) `error` says which, where and when."""
SEALED = (CURVE_FILE, "checkpoints/*.ckpt")
"""What a finished run has left, besides what its kind says."""


def run_lock(run_dir: str | Path, wait_s: float = 10.0) -> contextlib.AbstractContextManager[None]:
    """The lock of one run; a worker whose parent was killed holds it for a moment longer."""
    path = Path(run_dir)
    return locked(path / ".lock", f"Another process is training the run {path.name}: wait for it, or stop it.", wait_s)


def is_at_work(run_dir: str | Path) -> bool | None:
    """Does a process work on a run now, as `run_lock` has it? None where this user may not know."""
    return is_locked(Path(run_dir) / ".lock")


def read_status(run_dir: str | Path) -> Status:
    """A run's status; that of a new run when the file is missing, cut off or not a status."""
    try:
        found = read_json(Path(run_dir) / "status.json")
        good = isinstance(found, dict) and found.get("state") in STATES
        good = good and all(_same_kind(found[key], value) for key, value in STATUS.items() if key in found)
    except Unreadable:
        good = False
    return cast(Status, STATUS | found if good else dict(STATUS))


def _same_kind(value: Any, example: Any) -> bool:
    """Whether a value read from a status may stand where the example does; the optional fields are texts."""
    if example is None:
        return value is None or isinstance(value, str)
    kind = int | float if isinstance(example, int | float) else type(example)
    return isinstance(value, kind) and not isinstance(value, bool)


def update_status(run_dir: str | Path, **changes: Any) -> Status:
    """Change some fields of a run's status, atomically; the only way to write it.

    Whoever calls this holds the run's lock. Returns the new status.
    """
    status = cast(Status, read_status(run_dir) | changes | {"updated": time.time()})
    write_atomic(Path(run_dir) / "status.json", json.dumps(status, indent=1))
    return status


def finish(run_dir: str | Path, **changes: Any) -> None:
    """Say that a run is done, and seal what it has left, in one write: who calls this writes nothing after it."""
    update_status(run_dir, state=DONE, seal=seal_of(run_dir), **changes)


def seal_of(run_dir: str | Path) -> dict[str, str]:
    """The hashes of what lies in a run's folder, by the files' names."""
    folder = Path(run_dir)
    files = sorted(path for pattern in (*SEALED, *_outputs(folder)) for path in folder.glob(pattern) if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in files}


def _outputs(folder: Path) -> tuple[str, ...]:
    """The files that a run's kind says it leaves."""
    try:
        return kind_of(read_yaml(folder / "config.yaml")).outputs
    except (Unreadable, InputError, TypeError, KeyError):  # somebody's training in a folder that is no study's
        return ()


_judged: dict[tuple[Any, ...], str] = {}
"""What is wrong with which curve: a study asks this of all its runs again and again, and long ones take a while."""


@dataclass(frozen=True, eq=False)
class Run(Job):
    """A job with its folder: what it was asked for, and what it has left.

    Attributes:
        path: the folder.
    """

    path: Path

    @property
    def status(self) -> Status:
        return read_status(self.path)

    @property
    def done(self) -> bool:
        """Whether there is nothing left to train."""
        return self.status["state"] == DONE and not self.broken_promise()

    def needs_training(self, retry: bool) -> bool:
        """Whether it is to be trained; one that diverged or was cancelled is not, unless somebody wants it to be."""
        return not self.done and (retry or (self.status["state"] != DIVERGED and not is_cancelled(self.path)))

    def broken_promise(self, upto: float = math.inf) -> str:
        """What is wrong with what a run that has come to a step has left, in words that follow "its"."""
        files = tuple(map(_look, (self.path / name for name in (CURVE_FILE, *self.kind.outputs))))
        judged = (self.path, repr(self.config), upto, files)
        if judged not in _judged:
            _judged[judged] = self.kind.wrong_with(self.path, self.config, upto)
        return _judged[judged]

    def update(self, **changes: Any) -> None:
        update_status(self.path, **changes)

    def forget(self) -> None:
        """Drop what was trained, so that the run begins anew, also in its mirror. The caller holds the study's lock."""
        for trained in (self.path / "curve.csv", *(self.path / "checkpoints").glob("*.ckpt")):
            trained.unlink(missing_ok=True)
        self.update(state=QUEUED, step=0, wall_s=0.0, error=None, wandb_id=None, mirrored_step=-1)


@dataclass(frozen=True, eq=False)
class Training(Run):
    """A training with its folder."""

    config: RunConfig


@dataclass(frozen=True, eq=False)
class Pretraining(Run):
    """A pretraining with its folder."""

    config: PretrainConfig


def _look(path: Path) -> tuple[int, int, int] | None:
    """What tells a file from the one that was there before; None where none is."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def fault_of(run: Run) -> str | None:
    """Why a run's curve cannot be believed, in a sentence; None where nothing speaks against it.

    It reads the config, the status and the curve; `lcd verify` looks at the rest. A run that was done before there were
    seals, or is not done yet, has none to compare the curve with.
    """
    try:
        own = run_id(run.config)
    except (TypeError, ValueError):
        own = None
    if own != run.path.name:
        return "its config.yaml is not the one that its folder is named after: put it back, or move the folder away"
    status = run.status
    if status["state"] != DONE or not status["seal"] or run.kind.promise is None:
        return None
    anew = f"put it back as it was, or move {run.path} away and the same command trains the run anew"
    curve = run.path / CURVE_FILE
    try:
        if sha256_of(curve) == status["seal"].get(CURVE_FILE):
            return None
    except OSError as error:
        return f"its {CURVE_FILE} cannot be read ({error.strerror}): {anew}"
    return f"its {CURVE_FILE} has been changed since the run was done: {anew}"


def missing(study: str | Path, jobs: Iterable[Job], retry: bool = False) -> list[Job]:
    """The jobs that are still to be done in a study's folder, which need not be there."""
    runs = Path(study) / "runs"
    return [job for job in jobs if Run(job.config, runs / job.id).needs_training(retry)]


def default_folder(name: str, asked: Mapping[str, Any]) -> Path:
    """Where a study goes that is given no folder: the same for the same request, another one for another."""
    return Path("studies") / f"{slug(name)}-{run_id(asked)[:6]}"


class Study:
    """A study's folder; made when it does not exist, extended when it does."""

    def __init__(self, path: str | Path, create: bool = False) -> None:
        """path: the folder of a study; with `create` also an empty or a missing one, which `lock` or `ask` fills."""
        self.path = Path(path)
        self._refuse(create)
        self.record: dict[str, Any] = self._read()

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def diagnosis_dir(self) -> Path:
        return self.path / "diagnosis"

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """The study's lock: one process at a time. What is refused under it leaves the folder as it was.

        What a killed process left half written is deleted, but in runs.
        """
        sentence = f"Another process is working on the study {self.path}: wait for it, stop it, or give another out=."
        with self._made(), locked(self.path / ".lock", sentence):
            self._remove_unfinished()
            self.record = self._read()
            before, runs = self._file_content(), {run.path for run in self.runs()}
            try:
                yield
            except InputError:
                self._take_back(before, runs)
                raise

    def _remove_unfinished(self) -> None:
        for path in self.path.glob(f".study.yaml.*{UNFINISHED}"):
            path.unlink(missing_ok=True)
        for folder in ("videos", "views"):
            remove_unfinished(self.path / folder)

    @contextlib.contextmanager
    def _made(self) -> Iterator[None]:
        """Make the study's folder; it goes again when nothing but its lock came into it."""
        missing = [path for path in (self.path, *self.path.parents) if not path.exists()]
        self._make()
        try:
            yield
        finally:
            if not (self.path / "study.yaml").exists() and _holds_nothing_yet(self.path):
                with contextlib.suppress(OSError):
                    (self.path / ".lock").unlink(missing_ok=True)
                    for path in (self.path / "runs", *missing):
                        path.rmdir()

    def _file_content(self) -> bytes | None:
        file = self.path / "study.yaml"
        return file.read_bytes() if file.exists() else None

    def _take_back(self, before: bytes | None, runs: set[Path]) -> None:
        """Remove the runs that a refused request added, as far as nothing was done for them, and the request."""
        new = [run.path for run in self.runs() if run.path not in runs]
        with contextlib.suppress(OSError):
            for path in new:
                if {entry.name for entry in path.iterdir()} <= {"config.yaml", "status.json"}:
                    # Without its config a folder is no run, whatever comes now.
                    (path / "config.yaml").unlink()
                    (path / "status.json").unlink(missing_ok=True)
                    path.rmdir()
            if all(run.path in runs for run in self.runs()) and self._file_content() != before:
                if before is None:
                    (self.path / "study.yaml").unlink()
                else:
                    write_atomic(self.path / "study.yaml", before)
                self.record = self._read()

    def note(self, **fields: Any) -> None:
        """Remember something about the study as a whole in study.yaml."""
        self.record |= fields
        self._write()

    def runs(self) -> list[Run]:
        """The runs that the study holds; folders without a readable config are none."""
        return [Run(config, path) for path, config in self._configs()]

    def trainings(self) -> list[Training]:
        """Those of them that are trainings."""
        return [Training(config, path) for path, config in self._configs() if is_training(config)]

    def pretrainings(self) -> list[Pretraining]:
        """Those of them that are pretrainings."""
        return [Pretraining(config, path) for path, config in self._configs() if is_pretraining(config)]

    def _configs(self) -> Iterator[tuple[Path, JobConfig]]:
        for folder in self._run_folders():
            with contextlib.suppress(Unreadable):
                config = read_yaml(folder / "config.yaml")
                if is_job_config(config):
                    yield folder, config

    def _run_folders(self) -> list[Path]:
        """What lies among the runs; an `OSError` where that may not be read, as a glob would not say."""
        folder = self.path / "runs"
        return sorted(folder / name for name in os.listdir(folder)) if folder.is_dir() else []

    def strangers(self) -> list[Path]:
        """What lies among the runs and is none: there is no readable config in it."""
        known = {path for path, _ in self._configs()}
        return [path for path in self._run_folders() if path not in known]

    def ask(self, request: Mapping[str, Any], jobs: Iterable[Job]) -> list[Run]:
        """Take a request in: remember it, and make the runs of those of its jobs that are new.

        The caller holds the lock. Nothing is changed when one of the jobs is refused. A folder is a study from before
        its first run on: one with runs and without study.yaml is nobody's.
        """
        known = {run.path: run for run in self.runs()}
        wanted = [Run(job.config, self.path / "runs" / job.id) for job in jobs]
        refuse_overlaps(self.path, (run for run in wanted if run.path not in known), [*known.values(), *wanted])
        if self._file_content() is None:
            self._write()
        for run in wanted:
            if run.path not in known:
                make_folder(run.path)
                run.update(steps=int(run.config["steps"]))
            # The same run may be asked for with its weights at another place.
            if run.path not in known or known[run.path].config != run.config:
                write_atomic(run.path / "config.yaml", yaml.safe_dump(run.config, sort_keys=False, allow_unicode=True))
        if dict(request) not in self.record["requests"]:
            self.note(requests=[*self.record["requests"], dict(request)])
        return wanted

    def _refuse(self, creating: bool) -> None:
        if (self.path / "study.yaml").is_file():
            return
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"out={self.path} is a file: give a folder.")
        if not creating:
            raise InputError(f"{self.path} is not a study's folder: there is no study.yaml in it.")
        if self.path.is_dir() and not _holds_nothing_yet(self.path):
            raise InputError(f"out={self.path} is not empty and not a study: give a new folder or a study's.")

    def _make(self) -> None:
        try:
            make_folder(self.path / "runs")
        except OSError as error:
            raise InputError(f"out={self.path} cannot be made ({error.strerror}): give a writable folder.") from None

    def _read(self) -> dict[str, Any]:
        file = self.path / "study.yaml"
        try:
            record = read_yaml(file) if file.exists() else {}
        except Unreadable as why:
            raise InputError(
                f"{file} cannot be read ({why}): mend it, or move it away and ask for the study again; its runs stay."
            ) from None
        if not isinstance(record, dict):
            record = {}
        requests = record["requests"] if isinstance(record.get("requests"), list) else []
        return {"created": time.strftime("%Y-%m-%dT%H:%M:%S%z")} | record | {"requests": requests}

    def _write(self) -> None:
        self._make()
        write_atomic(self.path / "study.yaml", yaml.safe_dump(self.record, sort_keys=False, allow_unicode=True))


def _holds_nothing_yet(folder: Path) -> bool:
    """Whether a folder holds nothing but what is left of a study that was killed while it was made."""
    return all(
        entry.name == ".lock"
        or entry.name.startswith(".study.yaml.")
        or (entry.name == "runs" and entry.is_dir() and not any(entry.iterdir()))
        for entry in folder.iterdir()
    )
