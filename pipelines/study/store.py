"""A study's folder: what was asked for, and its runs. It is the only source of truth.

study/
  study.yaml                 what was asked for
  runs/<run id>/             id = content hash of the run's config: the same request is the same run
    config.yaml  status.json  curve.csv  checkpoints/  wandb/
  diagnosis/

Any number of commands may work on it at once (`lcd.pipelines.study.lease`); as long as a run is not done, what was
trained of it lies in the folder of its last hand.

A run that is done is sealed: its status holds the hashes of its curve and checkpoints (`lcd.pipelines.study.seals`).
"""

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from lcd.envs.errors import InputError
from lcd.files.atomic import make_folder, remove_unfinished, write_atomic
from lcd.files.reading import Unreadable, read_json, read_yaml
from lcd.files.slugs import slug
from lcd.pipelines.kinds.kind import CURVE_FILE, Job, is_job_config
from lcd.pipelines.study import longer
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
from lcd.pipelines.study.hands import DISK, Sight, acquire, is_held, require, where
from lcd.pipelines.study.lease import STATUS_FILE
from lcd.pipelines.study.overlaps import refuse_overlaps
from lcd.pipelines.study.remembered import REVISIONS, Remembered
from lcd.pipelines.study.seals import seal_of

QUEUED, RUNNING, DONE, FAILED, DIVERGED = STATES = ("queued", "running", "done", "failed", "diverged")
"""What a run can be; of one that diverged (its numbers are not finite any more) `error` says which, where and when."""


def read_status(run_dir: str | Path) -> Status:
    """A run's status; that of a new run when the file is missing, cut off or not a status.

    One whose hand has not said yet that it is done, and might be killed before it does, is at work.
    """
    try:
        place = where(Path(run_dir))
        found = read_json(place / STATUS_FILE)
        if place != Path(run_dir) and isinstance(found, dict) and found.get("state") == DONE:
            found["state"] = RUNNING
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

    Whoever calls this holds the run's lease, and it is the folder of that. Returns the new status.
    """
    require(run_dir)
    status = cast(Status, read_status(run_dir) | changes | {"updated": time.time()})
    write_atomic(Path(run_dir) / STATUS_FILE, json.dumps(status, indent=1))
    return status


def finish(run_dir: str | Path, **changes: Any) -> None:
    """Say that a run is done, and seal what it has left, in one write: who calls this writes nothing after it."""
    update_status(run_dir, state=DONE, seal=seal_of(run_dir), **changes)


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

    @property
    def lost(self) -> dict[str, str]:
        """The points that it went on without because members of theirs diverged, by what they are trained as."""
        # A stranger's status may hold anything.
        return {point: why for point, why in self.status["diverged"].items() if isinstance(why, str)}

    @property
    def whole(self) -> bool:
        """Whether it is done, with all that it was asked for."""
        return self.done and not self.lost

    def needs_training(self, retry: bool) -> bool:
        """Whether it is to be trained; one that diverged or was cancelled is not, unless somebody wants it to be."""
        given_up = self.status["state"] == DIVERGED or is_cancelled(self.path)
        return not self.whole if retry else not (self.done or given_up)

    def broken_promise(self, upto: float = math.inf) -> str:
        """What is wrong with what a run that has come to a step has left, in words that follow "its"."""
        files = tuple(map(_look, (self.path / name for name in (CURVE_FILE, *self.kind.outputs))))
        lost = tuple(self.lost)
        judged = (self.path, repr(self.config), upto, lost, files)
        if judged not in _judged:
            _judged[judged] = self.kind.wrong_with(self.path, self.config, upto, lost)
        return _judged[judged]

    @property
    def left(self) -> Path:
        """Where what was trained of it is: its folder once it is done, before that the one of its last hand."""
        return where(self.path)

    def update(self, **changes: Any) -> None:
        update_status(self.path, **changes)

    def mark(self, anew: bool = False, silent: Sight | None = None, **changes: Any) -> bool:
        """Change its status if nobody trains it, and drop what was trained if it is to begin `anew`; whether so.

        One that somebody brought to its end meanwhile stays done, unless it is to begin anew.

        Args:
            anew: begin at step 0.
            silent: the lease of another hand that was seen to be silent for long enough.
            **changes: what its status says from now on.
        """
        if silent is None and is_held(self.path):
            return False
        acquired = acquire(self.path, silent, needed=lambda: anew or self.status["state"] != DONE)
        if acquired is None:
            return False
        lease, still = acquired
        if not lease.prepare(anew=anew, still=still):
            return False
        update_status(lease.folder, **changes)
        return lease.end()


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
        """path: the folder of a study; with `create` also an empty or a missing one, which `at_work` or `ask` fills."""
        self.path = Path(path)
        self._refuse(create)
        self.remembered = Remembered(DISK, self.path)
        self.record: dict[str, Any] = self.remembered.parse(self.remembered.content()[1])
        self._made: list[Path] = []

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def diagnosis_dir(self) -> Path:
        return self.path / "diagnosis"

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """While this lasts a command works on the study, maybe beside others: what is refused it is taken back.

        What a killed process left half written is deleted, but in runs.
        """
        missing = [path for path in (self.path, *self.path.parents) if not path.exists()]
        self._make()
        try:
            self._remove_unfinished()
            last, before = self.remembered.content()
            self.record, self._made = self.remembered.parse(before), []
            try:
                yield
            except InputError:
                self._take_back(last, before)
                raise
        finally:
            self._remove_if_nothing(missing)

    def _remove_unfinished(self) -> None:
        remove_unfinished(self.path, deep=False)
        for folder in ("videos", "views", REVISIONS):
            remove_unfinished(self.path / folder)

    def _remove_if_nothing(self, missing: list[Path]) -> None:
        """Remove the study's folder, and those that were made for it, where it remembers nothing and has no runs."""
        if not self.remembered.file.exists() and _holds_nothing_yet(self.path):
            with contextlib.suppress(OSError):
                for path in (self.path / REVISIONS, self.path / "runs"):
                    DISK.remove(path)
                for path in missing:
                    path.rmdir()

    def _take_back(self, last: int, before: bytes | None) -> None:
        """Remove the runs that a refused request added, as far as nothing was done for them, and the request.

        Args:
            last: the last entry of what the study remembers, before.
            before: what that was.
        """
        with contextlib.suppress(OSError):
            for path in self._made:
                if {entry.name for entry in path.iterdir()} <= {"config.yaml", STATUS_FILE}:
                    # Without its config a folder is no run, whatever comes now.
                    (path / "config.yaml").unlink()
                    (path / STATUS_FILE).unlink(missing_ok=True)
                    path.rmdir()
            now, content = self.remembered.content()
            # What another command was asked meanwhile stays, and so does what this one trained.
            alone = self.remembered.is_mine(after=last) and not any(path.exists() for path in self._made)
            if alone and content != before:
                self.remembered.write(now, before)
            self.record = self.remembered.parse(self.remembered.content()[1])

    def note(self, **fields: Any) -> None:
        """Remember something about the study as a whole in study.yaml."""
        self._remember(lambda record: record | fields)

    def _remember(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._make()
        self.record = self.remembered.change(change)

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

        Nothing is changed when one of the jobs is refused. A folder is a study from before its first run on: one with
        runs and without study.yaml is nobody's.
        """
        wanted = [Run(job.config, self.path / "runs" / job.id) for job in jobs]
        self._refuse_overlaps(wanted)
        if not self.remembered.file.exists():
            self._remember(dict)
        known = {run.path: run for run in self.runs()}
        new = [run for run in wanted if run.path not in known]
        shorter = longer.by_all_but_steps(known.values()) if new else {}
        for run in new:
            self._made.append(run.path)
            make_folder(run.path)
            begun = _begun(run, shorter.get(longer.but_for_steps(run.config), ()))
            first = {**STATUS, "steps": int(run.config["steps"]), **begun, "updated": time.time()}
            # Another command may have asked for it since, and its hands may be at it, or have done it.
            DISK.create(run.path / STATUS_FILE, json.dumps(first, indent=1).encode())
        for run in wanted:
            # The same run may be asked for with its weights at another place.
            if run.path not in known or known[run.path].config != run.config:
                write_atomic(run.path / "config.yaml", yaml.safe_dump(run.config, sort_keys=False, allow_unicode=True))
        asked = dict(request)
        self._remember(lambda record: record | {"requests": _with(record["requests"], asked)})
        # Another command may have asked for something else at the same time: of two such, both may be refused here.
        self._refuse_overlaps(new)
        return wanted

    def _refuse_overlaps(self, wanted: list[Run]) -> None:
        known = {run.path: run for run in self.runs()} | {run.path: run for run in wanted}
        held = {run.path for run in self.runs()} - set(self._made)
        refuse_overlaps(self.path, (run for run in wanted if run.path not in held), known.values())

    def _refuse(self, creating: bool) -> None:
        if (path := self.path / REVISIONS).is_symlink():
            raise InputError(f"{path} is a link, and nothing outside of a study is written to: remove it.")
        if (self.path / "study.yaml").is_file():
            return
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{'out' if creating else 'path'}={self.path} is a file: give a folder.")
        if not creating:
            raise InputError(f"{self.path} is not a study's folder: there is no study.yaml in it.")
        if self.path.is_dir() and not _holds_nothing_yet(self.path):
            raise InputError(f"out={self.path} is not empty and not a study: give a new folder or a study's.")

    def _make(self) -> None:
        try:
            make_folder(self.path / "runs")
        except OSError as error:
            raise InputError(f"out={self.path} cannot be made ({error.strerror}): give a writable folder.") from None


def _begun(run: Run, alike: Iterable[Run]) -> dict[str, Any]:
    """What the status of a new run says of the same one for fewer steps: what that has done need not be done again."""
    done = [other for other in alike if longer.is_longer(run.config, other.config) and other.whole]
    if not done:
        return {}
    last = max(done, key=lambda other: int(other.config["steps"]))
    begun: dict[str, Any] = {"continues": last.config["steps"]}
    if not longer.why_anew(cast(RunConfig, run.config), last.config["steps"]):
        status = last.status
        begun |= {"step": status["step"], "wall_s": status["wall_s"]}
        begun |= {"threads": status["threads"], "device": status["device"], "precision": status["precision"]}
    return begun


def _with(requests: list[Any], asked: dict[str, Any]) -> list[Any]:
    return requests if asked in requests else [*requests, asked]


def _holds_nothing_yet(folder: Path) -> bool:
    """Whether a folder holds nothing but what is left of a study that was killed while it was made."""
    return all(
        entry.name in (".lock", REVISIONS)
        or entry.name.startswith(".study.yaml.")
        or (entry.name == "runs" and entry.is_dir() and not any(entry.iterdir()))
        for entry in folder.iterdir()
    )
