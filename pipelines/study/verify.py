"""`lcd verify`: is a study what its runs have left? It writes nothing and imports nothing that the study names."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from lcd.config.schemas import VerifyConfig
from lcd.consoles import console_for_tables
from lcd.envs.errors import InputError, Unfinished
from lcd.files.atomic import sha256_of
from lcd.files.reading import read_bytes
from lcd.pipelines.study import quarantine, sources, store
from lcd.pipelines.study.configs import inputs_of, is_training
from lcd.pipelines.study.hands import is_at_work
from lcd.pipelines.study.members import checkpoint_of, members_of, trained_by
from lcd.scores.left_out import told_points

SCORES = ("diagnosis.json", "challenge.csv")
FAULT, NOTE = "wrong", "note"
Found = Iterator[tuple[str, str]]
"""What a check finds: `FAULT` or `NOTE`, and a sentence."""


def run(cfg: VerifyConfig) -> int:
    """Check a study and say what is wrong with it; returns the exit code, 1 where something is."""
    if cfg.path is None:
        raise InputError("path is missing: give a study's folder.")
    study, console = store.Study(Path(cfg.path).expanduser()), console_for_tables()
    made, found = study.runs(), []
    for each in made:
        found += [(kind, f"{_named(each)}: {said}") for kind, said in check_run(each)]
    found += [(FAULT, said) for said in _strangers(study)]
    found += check_diagnosis(study, made)
    for kind, said in sorted(found, key=lambda each: each[0] != FAULT):
        console.print(f"{kind:<5} {said}", highlight=False, soft_wrap=True, markup=False)
    console.print(_summary(made), highlight=False, soft_wrap=True, markup=False)
    faults = sum(kind == FAULT for kind, _ in found)
    told = f"{faults} thing{'s are' if faults > 1 else ' is'} wrong" if faults else "Nothing is wrong"
    console.print(f"{told} with {study.path}.", highlight=False, soft_wrap=True, markup=False)
    return int(faults > 0)


def _named(run: store.Run) -> str:
    try:
        return f"{run.path.name} ({run.label})"
    except (TypeError, ValueError):  # a stranger's config may hold anything
        return run.path.name


def check_run(run: store.Run) -> Found:
    """What is wrong with a run, and what is to be known of it."""
    fault = quarantine.fault_of(run)
    if fault is not None:
        yield FAULT, fault
    yield from _status(run, believed=fault is None)
    if run.status["state"] == store.DONE:
        yield from _sealed(run)
    for path in sorted(run.left.glob("checkpoints/*.ckpt")):
        yield from _checkpoint(run, path, believed=fault is None)
    yield from _sources(run)
    yield from _weights(run)
    yield from _inputs(run)


def _status(run: store.Run, believed: bool) -> Found:
    """Is the status one, and true? A curve that is not believed has been told of."""
    path, status = run.left / store.STATUS_FILE, run.status
    if not path.is_file():
        yield FAULT, "status.json is missing: the same command trains the run anew"
    elif status == store.STATUS:
        yield FAULT, "status.json is cut off or no status: the same command trains the run anew"
    elif status["state"] == store.RUNNING and (at_work := is_at_work(run.path)) is not True:
        if at_work is None:
            yield NOTE, "it is being trained on another machine, says its status: whether it is cannot be told here"
            return
        yield FAULT, "its status says that it is being trained, but no process does: the same command continues it"
    elif status["state"] == store.DONE and believed and not run.done:
        yield FAULT, f"its status says that it is done, but its {run.broken_promise()}"
    elif status["state"] == store.DONE and run.lost:
        yield NOTE, f"it went on without points that diverged: {told_points(run.lost)}"
    elif status["state"] == store.FAILED:
        yield NOTE, f"it failed ({status['error']})"
    elif status["state"] == store.DIVERGED:
        yield NOTE, f"it diverged ({status['error']})"


def _sealed(run: store.Run) -> Found:
    """Are the files of a finished run, but for its curve (`quarantine.fault_of`), those that it left?"""
    seal = run.status["seal"]
    if not seal:
        yield NOTE, "it is not sealed (trained by an earlier LCD): that its files are unchanged cannot be told"
        return
    for name, digest in seal.items():
        if name != store.CURVE_FILE and (fault := _wrong_with(run.path, name, digest)):
            yield FAULT, f"its {name} {fault}"


def _wrong_with(folder: Path, name: str, digest: object) -> str | None:
    """What is wrong with a sealed file, in words that follow its name."""
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts:
        return "is no file of a run, but its seal names it"
    try:
        found = sha256_of(folder / name)
    except (FileNotFoundError, NotADirectoryError):
        return "is gone since the run was done"
    except (OSError, ValueError) as error:  # a stranger's name may hold anything
        return f"cannot be read ({getattr(error, 'strerror', None) or error})"
    return None if found == digest else "has been changed since the run was done"


def _checkpoint(run: store.Run, path: Path, believed: bool) -> Found:
    """Does a checkpoint hold data only, and go with the run's status and, where that is believed, with its curve?"""
    import torch

    from lcd.pipelines.jobs.checkpoint import CURVE, STEP
    from lcd.pipelines.jobs.record import CurveFile

    name = f"checkpoints/{path.name}"
    if not path.is_file():
        yield FAULT, f"{name} is no regular file"
        return
    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        step, digest = content.get(STEP), content.get(CURVE)
    except Exception as error:  # a stranger's file may fail in any way
        yield FAULT, f"{name} cannot be loaded as data only ({type(error).__name__})"
        return
    if run.status["state"] == store.DONE and isinstance(step, int) and step != run.status["step"]:
        yield FAULT, f"{name} is of step {step}, but the run was done at step {run.status['step']}"
    if digest is None or not believed:
        return
    try:
        whose = _whose(run, path.name)
        rows = [row for row in _rows(run.left) if whose(row) and int(row["step"]) <= _last(step)]
        header = _header(run.left)
    except (OSError, ValueError, KeyError, TypeError, UnicodeDecodeError):
        yield FAULT, f"its {store.CURVE_FILE} cannot be read"
        return
    if CurveFile(run.left / store.CURVE_FILE, header).digest_of(rows) != digest:
        yield FAULT, f"{name} goes with other rows than those in {store.CURVE_FILE}"


def _whose(run: store.Run, checkpoint: str) -> Callable[[Mapping[str, str]], bool]:
    """Whether a row of the curve goes with a checkpoint: all do, or those of the one member that it is of."""
    if is_training(run.config):
        for member in members_of(run.config):
            if checkpoint == checkpoint_of(run.config, member):
                named = (trained_by(run.config, member), str(member.seed))
                return lambda row: (row["trained_on"], row["seed"]) == named
    return lambda row: True


def _last(step: Any) -> float:
    """The step up to which a checkpoint's rows go: that of an agent that trains itself says none, and means all."""
    return step if isinstance(step, int) else float("inf")


def _rows(folder: Path) -> list[dict[str, str]]:
    text = read_bytes(folder / store.CURVE_FILE).decode("utf-8")
    return list(csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1])))


def _header(folder: Path) -> list[str]:
    with (folder / store.CURVE_FILE).open(newline="", encoding="utf-8") as file:
        return next(csv.reader(file), [])


def _sources(run: store.Run) -> Found:
    """Is the code that the run names what it was?"""
    config: Mapping[str, Any] = run.config
    kept = config.get(sources.SOURCE, {})
    named = [("launcher", target, before) for target, before in run.status["launcher"].items()]
    for part, name in sources.named_parts(run.config).items() if isinstance(kept, dict) else ():
        named.append((part, name, kept.get(part)))
    for part, target, before in named:
        if not isinstance(before, dict) or not isinstance(target, str):
            continue
        now = sources.hashes_of(target, [os.getcwd()])
        if not now:
            yield NOTE, f"the source of {part}={target} is not here: it cannot be compared"
        elif changed := sources.changed_modules(before, now):
            yield FAULT, f"the source of {part}={target} has changed since (modules: {', '.join(changed)})"


def _weights(run: store.Run) -> Found:
    """Are the front-end's weights what they were?"""
    config: Mapping[str, Any] = run.config
    weights = config.get("frontend", {}).get("weights")
    if not isinstance(weights, dict) or not isinstance(weights.get("file"), str):
        return
    try:
        if sha256_of(weights["file"]) != weights.get("sha256"):
            yield FAULT, f"frontend.weights={weights['file']} has changed since the run was asked for"
    except (OSError, ValueError):
        yield NOTE, f"frontend.weights={weights['file']} is not here: it cannot be compared"


def _inputs(run: store.Run) -> Found:
    """Are the files that the run took of others those that these left?"""
    took = run.status["inputs"]
    for each in inputs_of(run.config):
        name, maker = f"{each['job']}/{each['file']}", run.path.parent / each["job"]
        if not (maker / "config.yaml").is_file():
            yield FAULT, f"it takes {each['file']} of the run {each['job']}, which is not here"
        elif run.status["state"] == store.DONE and took.get(name) != store.read_status(maker)["seal"].get(each["file"]):
            yield FAULT, f"it was trained with another {each['file']} than the one that the run {each['job']} sealed"


def _strangers(study: store.Study) -> Iterator[str]:
    """Folders among the runs that are none."""
    for path in study.strangers():
        yield f"{path.name}: there is no readable config.yaml of an installed kind in runs/{path.name}"


def check_diagnosis(study: store.Study, made: list[store.Run]) -> list[tuple[str, str]]:
    """Are the scores in the study's folder those that its curves give now?"""
    folder = study.diagnosis_dir
    try:
        there = [name for name in SCORES if (folder / name).is_file()]
    except OSError as error:
        return [(FAULT, f"diagnosis: it cannot be read ({error.strerror})")]
    if not there:
        return [(NOTE, "diagnosis: there is none")] if made else []
    from lcd.pipelines.publish.telling import contrasts_of

    if unknown := contrasts_of(study)[1]:
        return [(NOTE, f"diagnosis: the contrast {unknown[0]} is not to be had here: its scores cannot be compared")]
    try:
        now = _rediagnosed(study, folder)
    except (InputError, Unfinished) as mistake:
        return [(FAULT, f"diagnosis: the curves give none now ({mistake})")]
    stale = [name for name in SCORES if _scores(folder / name) != now[name]]
    return [(FAULT, f"diagnosis/{name} is not what the curves give now: 'lcd report' makes it anew") for name in stale]


def _rediagnosed(study: store.Study, folder: Path) -> dict[str, Any]:
    """What the files of scores would say now, under the definition that they were made with."""
    from lcd.pipelines.publish.telling import ReportOptions, diagnosed
    from lcd.pipelines.study.quarantine import read_finished
    from lcd.scores.contrasts import DEFINITIONS

    told = _scores(folder / "diagnosis.json")
    definition = told.get("definition") if isinstance(told, dict) else None
    how = ReportOptions(definition if definition in DEFINITIONS else None)
    finished = read_finished(study.path, study)
    diagnosis = diagnosed(finished, study, how)
    with tempfile.TemporaryDirectory(prefix="lcd-verify-") as scratch:
        return {file.name: _scores(file) for file in diagnosis.save(scratch).values()}


def _scores(path: Path) -> Any:
    """What a file says of scores: not the notes and cautions, which are about more, nor the cost."""
    try:
        text = read_bytes(path).decode("utf-8")
        return text if path.suffix == ".csv" else json.loads(text) | dict.fromkeys(("cautions", "notes", "cost"))
    except (OSError, ValueError, TypeError):
        return None


def _summary(made: list[store.Run]) -> str:
    states = [run.status["state"] for run in made]
    done = states.count(store.DONE)
    sealed = sum(run.status["state"] == store.DONE and bool(run.status["seal"]) for run in made)
    others = [f"{states.count(state)} {state}" for state in (store.FAILED, store.DIVERGED, store.RUNNING, store.QUEUED)]
    told = [f"{done} done, {sealed} of them sealed", *(other for other in others if not other.startswith("0 "))]
    return f"{len(made)} runs: {', '.join(told)}."
