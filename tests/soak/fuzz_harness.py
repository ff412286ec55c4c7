"""What both fuzzers share: a sandbox, one case run in this process, and the report on many.

Nothing is trained: a command that would start workers is stopped there, which counts as accepted.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import multiprocessing
import os
import random
import resource
import shutil
import signal
import stat
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from lcd import cli

DEADLINE_S = 20.0
"""Processor seconds, so that a machine that is busy with something else makes no hang."""
MEMORY = 12 << 30
FINE, REFUSED, FAILED, STARTED = "fine", "refused", "failed", "started"
TRACE, HANG, SIDE_EFFECT, NO_SENTENCE = "trace", "hang", "side effect", "no sentence"
FAULTS = (TRACE, HANG, SIDE_EFFECT, NO_SENTENCE)


class Started(BaseException):
    """The command has come to where workers would start."""


class Late(BaseException):
    """The case has passed its deadline."""


@dataclass(frozen=True)
class Outcome:
    """How a case ended: its kind (`FINE` …), the exit code if there is one, what it told, how to get it again."""

    kind: str
    code: int | None
    told: str
    line: str


class Sandbox:
    """A folder to work in and a home, which are put back as they were when a case has changed them."""

    def __init__(self, root: Path, fill: Callable[[Path], None]):
        self.root, self.origin = root / "box", root / "origin"
        self.work, self.home = self.root / "work", self.root / "home"
        for folder in ("work", "home"):
            (self.origin / folder).mkdir(parents=True)
        fill(self.origin / "work")
        self.restore()

    def restore(self) -> None:
        """Put everything back."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.origin, self.root, symlinks=True)
        os.chdir(self.work)

    def snapshot(self) -> dict[str, tuple[Any, ...]]:
        """What lies in the sandbox: kinds, permissions, contents."""
        found = {}
        for folder, folders, files in os.walk(self.root):
            for name in (*folders, *files):
                path = os.path.join(folder, name)
                about = os.lstat(path)
                content: str | bytes = ""
                if stat.S_ISLNK(about.st_mode):
                    content = os.readlink(path)
                elif stat.S_ISREG(about.st_mode):
                    content = hashlib.sha256(Path(path).read_bytes()).digest()
                found[path] = (about.st_mode, content)
        return found


@contextlib.contextmanager
def stubs() -> Iterator[None]:
    """Nothing is trained, filmed or measured at length; the network is out of reach."""
    from lcd.horizon import command
    from lcd.pipelines.jobs import measure, train
    from lcd.pipelines.publish import sheets, view
    from lcd.pipelines.study import attempts, determinism, dynamics, probe

    def start(*_: Any, **__: Any) -> Any:
        raise Started

    def shorter(function: Callable[..., Any], **most: int) -> Callable[..., Any]:
        def cut(*arguments: Any, **named: Any) -> Any:
            return function(*(_cut(each, most) for each in arguments), **named)

        return cut

    short = {"steps": 3, "levels": 2, "frames": 3, "episodes": 4, "copies": 4, "videos": 2}
    with contextlib.ExitStack() as stack:
        for module in (attempts, determinism, dynamics, probe, train):
            stack.enter_context(mock.patch.object(module, "launch", start))
        stack.enter_context(mock.patch.object(measure, "measure_frontend", start))
        stack.enter_context(mock.patch.object(command, "analyse", start))
        for module, name in ((view, "frames"), (sheets, "write_sheets"), (measure, "random_returns")):
            stack.enter_context(mock.patch.object(module, name, shorter(getattr(module, name), **short)))
        stack.enter_context(mock.patch("socket.create_connection", side_effect=OSError("out of reach")))
        yield


def _cut(given: Any, most: dict[str, int]) -> Any:
    """A config whose counts are small."""
    if not hasattr(given, "benchmark"):
        return given
    return replace(
        given, **{key: min(getattr(given, key), least) for key, least in most.items() if hasattr(given, key)}
    )


def run_words(words: Sequence[str], box: Sandbox, line: str, deadline: float = DEADLINE_S) -> Outcome:
    """Give a command line to `lcd` and judge what comes of it."""
    return run_call(lambda: cli.main(list(words)), box, line, deadline)


def run_call(call: Callable[[], int], box: Sandbox, line: str, deadline: float = DEADLINE_S) -> Outcome:
    """Make a call that returns an exit code and judge what comes of it."""
    before, path, here = box.snapshot(), list(sys.path), os.getcwd()
    code, kind, told = None, FINE, ""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors=how) for how in ("strict", "backslashreplace"))
    try:
        with _deadline(deadline), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = call()
    except Started:
        kind = STARTED
    except Late:
        kind, told = HANG, traceback.format_exc(limit=-4)
    except BaseException:
        kind, told = TRACE, traceback.format_exc(limit=-4)
    err.flush()
    said = err.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]
    if kind == FINE and code:
        kind, told = _judged(code, said)
    moved = os.getcwd() != here
    sys.path[:] = path
    if (after := box.snapshot()) != before:
        if kind == REFUSED:
            changed = sorted({*before.items()} ^ {*after.items()})
            kind, told = (
                SIDE_EFFECT,
                f"{told.strip()} | {', '.join({os.path.relpath(p, box.root) for p, _ in changed})}",
            )
        box.restore()
    elif moved:
        kind, told = SIDE_EFFECT, f"the working directory is now {os.getcwd()}"
    os.chdir(here)
    return Outcome(kind, code, told, line)


def _judged(code: int, said: str) -> tuple[str, str]:
    sentences = [each for each in said.split("\n") if each.startswith("lcd: ")]
    if code == getattr(cli, "OURS", 70) or "Traceback (most recent" in said:
        return TRACE, said
    if code == cli.MISTAKE and (len(sentences) != 1 or said != f"{said[: said.find('lcd: ')]}{sentences[0]}\n"):
        return NO_SENTENCE, said
    return (REFUSED if code == cli.MISTAKE else FAILED), said


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    def late(*_: Any) -> None:
        raise Late

    before = signal.signal(signal.SIGPROF, late)
    # What waits takes no processor time, so there is a longer deadline by the clock as well.
    alarm = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 6 * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGPROF, before)
        signal.signal(signal.SIGALRM, alarm)


@contextlib.contextmanager
def sandboxed(fill: Callable[[Path], None]) -> Iterator[Sandbox]:
    """A sandbox with this process inside; the process is as it was afterwards."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    here, handlers = os.getcwd(), {number: signal.getsignal(number) for number in cli.signals.SIGNALS}
    with tempfile.TemporaryDirectory(prefix="lcd-fuzz-") as folder:
        cache = Path(tempfile.gettempdir()) / "lcd-fuzz-cache"
        box = Sandbox(Path(folder), fill)
        places = {"HOME": str(box.home), "LCD_CACHE": str(cache), "MPLCONFIGDIR": str(cache), "COLUMNS": "120"}
        # What asks for all memory must not take it from others.
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, limits[1]))
        try:
            with (
                mock.patch.dict(os.environ, places),
                mock.patch.object(sys, "argv", ["lcd"]),
                stubs(),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("ignore")
                yield box
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
            os.chdir(here)
            for number, handler in handlers.items():
                signal.signal(number, handler)


Run = Callable[[Sandbox, int, int], Outcome]
"""A fuzzer's case: sandbox, seed, number of the case → outcome."""


def run_cases(run: Run, fill: Callable[[Path], None], seed: int, numbers: Sequence[int]) -> list[Outcome]:
    """The outcomes of some of a fuzzer's cases."""
    with sandboxed(fill) as box:
        return [run(box, seed, number) for number in numbers]


def main(run: Run, fill: Callable[[Path], None], cases: int) -> int:
    """The command line of a fuzzer; returns 1 when it found a fault."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=cases)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    begun, numbers = time.monotonic(), range(given.first, given.first + given.cases)
    parts = [numbers[start :: given.processes] for start in range(given.processes)]
    with multiprocessing.get_context("fork").Pool(given.processes) as pool:
        counts: Counter[str] = Counter()
        slices = [part[at : at + 25] for at in range(0, len(parts[0]), 25) for part in parts]
        for outcomes in pool.imap_unordered(_Part(run, fill, given.seed), slices):
            counts.update(outcome.kind for outcome in outcomes)
            for outcome in outcomes:
                if outcome.kind in FAULTS:
                    print(f"{outcome.kind.upper()}  {outcome.line}\n    {_brief(outcome.told)}", flush=True)
    seconds = time.monotonic() - begun
    told = ", ".join(f"{counts[kind]} {kind}" for kind in (FINE, STARTED, REFUSED, FAILED, *FAULTS))
    print(f"seed {given.seed}: {sum(counts.values())} cases in {seconds:.0f} s: {told}")
    return int(any(counts[kind] for kind in FAULTS))


@dataclass(frozen=True)
class _Part:
    run: Run
    fill: Callable[[Path], None]
    seed: int

    def __call__(self, numbers: Sequence[int]) -> list[Outcome]:
        return run_cases(self.run, self.fill, self.seed, numbers)


def _brief(told: str) -> str:
    return " / ".join(line.strip() for line in told.strip().splitlines()[-5:])[:900]


def source(seed: int, number: int) -> random.Random:
    """The random numbers of one case, which do not depend on the cases before it."""
    return random.Random(f"{seed}-{number}")
