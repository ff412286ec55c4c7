"""A study's folder: what was asked for, its runs, its locks. It is the only source of truth.

study/
  study.yaml                 what was asked for
  runs/<run id>/             id = content hash of the run's config: the same request is the same run
    config.yaml  status.json  curve.csv  checkpoints/  wandb/
  diagnosis/
"""

import contextlib
import fcntl
import hashlib
import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from lcd.envs.errors import InputError
from lcd.files import write_atomic
from lcd.pipelines.promise import broken_promise

QUEUED, RUNNING, DONE, FAILED, DIVERGED = STATES = ("queued", "running", "done", "failed", "diverged")
"""What a run can be; of one that diverged (its numbers are not finite any more) `error` says which, where and when."""
STATUS = {
    "state": QUEUED,
    "step": 0,
    "steps": 0,
    "steps_per_s": 0.0,
    "wall_s": 0.0,
    "threads": 1,
    "device": None,
    "wandb_id": None,
    "mirrored_step": -1,
    "error": None,
    "updated": 0.0,
}


def canonical(value: Any) -> str:
    """JSON that is the same for equal configs."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def run_id(run_config: Mapping[str, Any]) -> str:
    """The name of a run's folder: the hash of its condition, protocol and seeds.

    A file of weights counts by its content, wherever it lies.
    """
    frontend = run_config.get("frontend", {})
    if isinstance(frontend.get("weights"), Mapping):
        run_config = {**run_config, "frontend": {**frontend, "weights": frontend["weights"].get("sha256")}}
    return hashlib.sha256(canonical(run_config).encode()).hexdigest()[:12]


def condition(run_config: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that tells two curves of one seed apart in `curve.csv`: task, view, front-end, p, shaping, agent."""
    named = {"frontend": frontend_name(run_config), "agent": run_config["agent"]["name"]}
    plain = {key: run_config[key] for key in ("benchmark", "view", "reward_p", "shaping")}
    return {"task": task_name(run_config)} | plain | named


def frontend_name(run_config: Mapping[str, Any]) -> str:
    """What curves call a run's front-end: its name, or the label of one that may be many (any backbone, say)."""
    return run_config["frontend"].get("label") or run_config["frontend"]["name"]


def task_name(run_config: Mapping[str, Any]) -> str:
    """What curves call a run's task: its name, and the knobs that make it another task than the benchmark's."""
    knobs = ",".join(f"{key}={value}" for key, value in sorted(run_config["knobs"].items()))
    return f"{run_config['task']}[{knobs}]" if knobs else run_config["task"]


@contextlib.contextmanager
def locked(path: str | Path, sentence: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold an exclusive lock on a file; the system releases it when the process ends, however it ends.

    sentence: the `InputError` when another process holds it for longer than `wait_s`.
    """
    with open(path, "a") as file:
        end = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise InputError(sentence) from None
                time.sleep(0.05)
        yield


def run_lock(run_dir: str | Path, wait_s: float = 10.0) -> contextlib.AbstractContextManager[None]:
    """The lock of one run; a worker whose parent was killed holds it for a moment longer."""
    path = Path(run_dir)
    return locked(path / ".lock", f"Another process is training the run {path.name}: wait for it, or stop it.", wait_s)


def read_status(run_dir: str | Path) -> dict[str, Any]:
    """A run's status; that of a new run when the file is missing, cut off or not a status."""
    try:
        found = json.loads((Path(run_dir) / "status.json").read_text("utf-8"))
        good = isinstance(found, dict) and found.get("state") in STATES
        good = good and all(_same_kind(found[key], value) for key, value in STATUS.items() if key in found)
    except (OSError, ValueError):
        good = False
    return STATUS | found if good else dict(STATUS)


def _same_kind(value: Any, example: Any) -> bool:
    """Whether a value read from a status may stand where the example does; the optional fields are texts."""
    if example is None:
        return value is None or isinstance(value, str)
    kind = int | float if isinstance(example, int | float) else type(example)
    return isinstance(value, kind) and not isinstance(value, bool)


def update_status(run_dir: str | Path, **changes: Any) -> dict[str, Any]:
    """Change some fields of a run's status, atomically; the only way to write it.

    Whoever calls this holds the run's lock. Returns the new status.
    """
    status = read_status(run_dir) | changes | {"updated": time.time()}
    write_atomic(Path(run_dir) / "status.json", json.dumps(status, indent=1))
    return status


_judged: dict[tuple[Any, ...], str] = {}
"""What is wrong with which curve: a study asks this of all its runs again and again, and long ones take a while."""


class Run:
    """One run's folder."""

    def __init__(self, path: str | Path, config: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.config = dict(config)

    @property
    def status(self) -> dict[str, Any]:
        return read_status(self.path)

    @property
    def done(self) -> bool:
        """Whether there is nothing left to train."""
        return self.status["state"] == DONE and not self.broken_promise()

    def wanting(self, retry: bool) -> bool:
        """Whether it is to be trained; one that diverged would do so again, unless somebody wants it to be tried."""
        return not self.done and (retry or self.status["state"] != DIVERGED)

    def broken_promise(self, upto: float = math.inf) -> str:
        """What is wrong with the curve of a run that has come to a step, in words that follow "its curve"."""
        path = self.path / "curve.csv"
        try:
            found = path.stat()
        except OSError:
            return "is missing"
        judged = (path, repr(self.config), upto, found.st_ino, found.st_mtime_ns, found.st_size)
        if judged not in _judged:
            _judged[judged] = broken_promise(path, self.config, condition(self.config), upto)
        return _judged[judged]

    def update(self, **changes: Any) -> None:
        update_status(self.path, **changes)

    def forget(self) -> None:
        """Drop what was trained, so that the run begins anew, also in its mirror. The caller holds the study's lock."""
        for trained in (self.path / "curve.csv", *(self.path / "checkpoints").glob("*.ckpt")):
            trained.unlink(missing_ok=True)
        self.update(state=QUEUED, step=0, wall_s=0.0, error=None, wandb_id=None, mirrored_step=-1)


class Study:
    """A study's folder; made when it does not exist, extended when it does."""

    def __init__(self, path: str | Path, create: bool = False) -> None:
        """path: the folder of a study; with `create` also an empty or a missing one."""
        self.path = Path(path)
        self._open(create)
        self.record: dict[str, Any] = self._read()
        if not (self.path / "study.yaml").is_file():
            self._write()

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def diagnosis_dir(self) -> Path:
        return self.path / "diagnosis"

    def lock(self) -> contextlib.AbstractContextManager[None]:
        """The study's lock: one process at a time."""
        sentence = f"Another process is working on the study {self.path}: wait for it, stop it, or give another out=."
        return locked(self.path / ".lock", sentence)

    def note(self, **fields: Any) -> None:
        """Remember something about the study as a whole in study.yaml."""
        self.record |= fields
        self._write()

    def runs(self) -> list[Run]:
        """The runs that the study holds; folders without a readable config are none."""
        found = []
        for path in sorted((self.path / "runs").glob("*/config.yaml")):
            config = _yaml(path)
            if _is_run_config(config):
                found.append(Run(path.parent, config))
        return found

    def ask(self, request: Mapping[str, Any], run_configs: Iterable[Mapping[str, Any]]) -> list[Run]:
        """Take a request in: remember it, and make those of its runs that are new. The caller holds the lock.

        Nothing is changed when one of the runs is refused.
        """
        known = {run.path: run for run in self.runs()}
        wanted = [Run(self.path / "runs" / run_id(config), config) for config in run_configs]
        for run in wanted:
            if run.path not in known:
                self._refuse_overlap(run, [*known.values(), *wanted])
        for run in wanted:
            if run.path not in known:
                run.path.mkdir(parents=True, exist_ok=True)
                run.update(steps=int(run.config["steps"]))
            # The same run may be asked for with its weights at another place.
            if run.path not in known or known[run.path].config != run.config:
                write_atomic(run.path / "config.yaml", yaml.safe_dump(run.config, sort_keys=False, allow_unicode=True))
        if dict(request) not in self.record["requests"]:
            self.note(requests=[*self.record["requests"], dict(request)])
        return wanted

    def _refuse_overlap(self, run: Run, others: Iterable[Run]) -> None:
        """The same (condition, seed) twice would be counted as two seeds, or mix two protocols in one curve."""
        for other in others:
            shared = sorted(set(other.config["seeds"]) & set(run.config["seeds"]))
            if other.path != run.path and shared and condition(other.config) == condition(run.config):
                where = f"{run.config['task']}, {run.config['view']}, p={run.config['reward_p']:g}"
                raise InputError(
                    f"The study {self.path} already has seeds {shared} of ({where}), trained by another protocol or "
                    f"with other seeds (run {other.path.name}): give other seeds, or another folder with out=."
                )

    def _open(self, creating: bool) -> None:
        if (self.path / "study.yaml").is_file():
            return
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"out={self.path} is a file: give a folder.")
        if not creating:
            raise InputError(f"{self.path} is not a study's folder: there is no study.yaml in it.")
        if self.path.is_dir() and not _pristine(self.path):
            raise InputError(f"out={self.path} is not empty and not a study: give a new folder or a study's.")
        try:
            (self.path / "runs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"out={self.path} cannot be made ({error.strerror}): give a writable folder.") from None

    def _read(self) -> dict[str, Any]:
        record = _yaml(self.path / "study.yaml")
        if not isinstance(record, dict):
            record = {}
        requests = record.get("requests")
        requests = requests if isinstance(requests, list) else []
        return {"created": time.strftime("%Y-%m-%dT%H:%M:%S%z")} | record | {"requests": requests}

    def _write(self) -> None:
        write_atomic(self.path / "study.yaml", yaml.safe_dump(self.record, sort_keys=False, allow_unicode=True))


def _pristine(folder: Path) -> bool:
    """Whether a folder holds nothing but what is left of a study that was killed while it was made."""
    return all(
        entry.name == ".lock"
        or entry.name.startswith(".study.yaml.")
        or (entry.name == "runs" and entry.is_dir() and not any(entry.iterdir()))
        for entry in folder.iterdir()
    )


def _is_run_config(config: Any) -> bool:
    """Whether what a run's config.yaml holds can be a run's config; a stranger's study may hold anything."""
    kinds: dict[str, type] = {"task": str, "knobs": dict, "seeds": list, "steps": int, "frontend": dict, "agent": dict}
    return (
        isinstance(config, dict)
        and all(isinstance(config.get(key), kind) for key, kind in kinds.items())
        and {"benchmark", "view", "reward_p", "shaping", "evaluation"} <= set(config)
        and all(isinstance(seed, int) for seed in config["seeds"])
        and all("name" in config[part] for part in ("frontend", "agent"))
    )


def _yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text("utf-8"))
    except (OSError, yaml.YAMLError):
        return None
