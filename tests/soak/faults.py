"""Makes every write of a small study fail, one after the other, and sees what the command says and leaves.

    python tests/soak/faults.py [--kinds ENOSPC EIO EROFS SHORT] [--commands diagnose ...] [--every 1] [--first 1]
                                [--in-turn K]

--in-turn K: the kinds in turn instead of all of them at every call; the first call has the K-th kind.

ENOSPC, EROFS: from that call on nothing can be written (without room, files can still be deleted and renamed).
EIO: that call alone fails. SHORT: that write takes half and says so, as a system may; where a call writes nothing,
it is left out (in turn: EIO takes its place).

After each fault the command must have ended with a sentence, every file must be whole, and the same command without
the fault must finish with the curves and scores of a study that nothing happened to, and leave no temporary file.
Prints one line a finding and the figures as JSON; exits with 1 if there was a finding.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import forks
import studies

ENVIRONMENT = "LCD_FAULTS"
KINDS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EROFS": errno.EROFS, "SHORT": 0}
FROM_THEN_ON = ("ENOSPC", "EROFS")
REASONS = ("make room", *(os.strerror(number) for number in KINDS.values() if number))
"""What a sentence about a fault must hold one of."""
NEVER, FOREVER = 0, 2**63
MOST_S = 300
"""Longer than this no command takes: it hangs."""
WELL, ILL = 0, (1, 2)
"""Exit codes: as if nothing had been, and a sentence of what was."""


class Control(ctypes.Structure):
    """What faults.c reads and counts."""

    _fields_ = (
        ("count", ctypes.c_uint64),
        ("first", ctypes.c_uint64),
        ("last", ctypes.c_uint64),
        ("code", ctypes.c_uint64),
        ("failed", ctypes.c_uint64),
        ("root", ctypes.c_char * 1024),
        ("what", ctypes.c_char * 1024),
        ("writes", ctypes.c_char * 65536),
    )


def compiler() -> str | None:
    """The C compiler, None without one."""
    return shutil.which("cc") or shutil.which("gcc")


def preloaded(folder: Path) -> dict[str, str]:
    """The environment in which a process's writes can be made to fail; builds what does it."""
    library, block = folder / "faults.so", folder / "control"
    source = Path(__file__).with_name("faults.c")
    subprocess.run([compiler() or "cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    block.write_bytes(bytes(ctypes.sizeof(Control)))
    return {"LD_PRELOAD": str(library), ENVIRONMENT: str(block)}


def control() -> Control:
    """The block that all processes share."""
    with open(os.environ[ENVIRONMENT], "r+b") as file:
        return Control.from_buffer(mmap.mmap(file.fileno(), 0))


@contextlib.contextmanager
def faulty(block: Control, root: Path, kind: str | None, number: int) -> Iterator[None]:
    """Let a call below a folder fail, while this lasts; `kind` None only counts."""
    block.count = block.failed = 0
    block.what = b""
    block.code = KINDS[kind] if kind else 0
    block.last = FOREVER if kind in FROM_THEN_ON else number
    block.first = number if kind else NEVER
    block.root = os.fsencode(root)
    try:
        yield
    finally:
        block.root, block.first = b"", NEVER


class Trials:
    """A study that nothing happens to, and others to which one thing does."""

    def __init__(self, folder: Path, block: Control, names: list[str]):
        self.folder, self.block, self.whole = folder, block, folder / "whole"
        self.calls: dict[str, int] = {}
        self.writes: dict[str, bytes] = {}
        self.whole.mkdir()
        for name in [name for name in studies.ORDER if name in self._with_needed(names)]:
            with faulty(block, self.whole, None, 0):
                code, told, _ = self.run(self.whole, name)
                self.calls[name] = block.count
                self.writes[name] = ctypes.string_at(ctypes.addressof(block) + Control.writes.offset, block.count + 1)
            if code != WELL:
                raise RuntimeError(f"{name} ends with {code} of itself: {told}")
        self.curves, self.scores = studies.curves(self.whole), studies.scores(self.whole)

    @staticmethod
    def _with_needed(names: list[str]) -> set[str]:
        """Commands, and those that make what they need."""
        needed = {folder for name in names for folder in studies.NEEDS[name]}
        earlier = {name for name, folder in studies.MAKES.items() if folder in needed and name != "report"}
        return set(names) if earlier <= set(names) else Trials._with_needed([*names, *earlier])

    def run(self, root: Path, name: str) -> tuple[int | None, str, list[int]]:
        """Make a command: its exit code, what it said, and the processes that it left."""
        told = self.folder / "told.txt"
        session = forks.start(studies.command(root, name), told)
        code = forks.ended(session, MOST_S)
        end = time.monotonic() + 10
        while (left := forks.members(session)) and time.monotonic() < end:
            time.sleep(0.01)
        for process in left:
            os.kill(process, signal.SIGKILL)
        if code is None:
            forks.ended(session, 10)
        return code, told.read_text(errors="replace"), left

    def trial(self, name: str, kind: str, number: int) -> tuple[list[str], bool]:
        """What is wrong after a fault, and whether there was one."""
        root = self.folder / "disturbed"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        for needed in studies.NEEDS[name]:
            shutil.copytree(self.whole / needed, root / needed)
        with faulty(self.block, root, kind, number):
            code, told, left = self.run(root, name)
            failed, what = self.block.failed > 0, self.block.what.decode(errors="replace")
        found = self._after_fault(root, name, code, told)
        found += [f"processes {left} went on"] if left else []
        again, told_again, left = self.run(root, name)
        if again != WELL or left:
            found.append(f"the same command then ended with {again}, leaving {left}: {_end(told_again)}")
        found += self._differences(root, name)
        found += [f"left over: {path}" for path in studies.left_over(root)]
        found += [f"not whole in the end: {each}" for each in studies.broken(root)]
        return [f"{name} {kind} {what.replace(str(root), '…')}: {each}" for each in found], failed

    def _after_fault(self, root: Path, name: str, code: int | None, told: str) -> list[str]:
        found = [f"not whole: {each}" for each in studies.broken(root)]
        if code is None:
            found.append("it hangs")
        elif code == WELL:
            found += [f"it ended well, but {each}" for each in self._differences(root, name)]
        elif code not in ILL:
            found.append(f"exit code {code}: {_end(told)}")
        elif not any(reason in told for reason in REASONS):
            found.append(f"exit code {code} without a reason: {_end(told)}")
        if "Traceback" in told:
            found.append(f"a stack trace: {_end(told)}")
        return found

    def _differences(self, root: Path, name: str) -> list[str]:
        """In what a study differs from the one that nothing happened to."""
        mine = {studies.MAKES[name], *studies.NEEDS[name]}
        curves = {run: rows for run, rows in self.curves.items() if run.split("/")[0] in mine}
        scores = {path: text for path, text in self.scores.items() if path.split("/")[0] in mine}
        found = [] if studies.curves(root) == curves else ["curves differ"]
        found += [] if studies.scores(root) == scores else ["scores differ"]
        return found + [f"{run} is {state}" for run, state in studies.states(root).items() if state != "done"]


def _end(told: str) -> str:
    return " | ".join(told.strip().splitlines()[-3:])[-600:]


def serve(arguments: argparse.Namespace, folder: Path) -> int:
    """Make all trials; returns the exit code."""
    forks.prepare()
    trials = Trials(folder, control(), arguments.commands)
    figures = {"calls": {name: trials.calls[name] for name in arguments.commands}, "faults": {}, "findings": 0}
    for name in arguments.commands:
        made = Counter(dict.fromkeys(arguments.kinds, 0))
        for number in range(arguments.first, trials.calls[name] + 1, arguments.every):
            for kind in _kinds_at(number, arguments, trials.writes[name][number] != 0):
                found, failed = trials.trial(name, kind, number)
                made[kind] += failed
                figures["findings"] += len(found)
                for line in found:
                    print(line, flush=True)
        figures["faults"] |= {f"{name} {kind}": count for kind, count in made.items()}
        print(f"{name}: {dict(made)}, {figures['findings']} findings so far", file=sys.stderr, flush=True)
    print(json.dumps(figures), flush=True)
    return int(figures["findings"] > 0)


def _kinds_at(number: int, arguments: argparse.Namespace, writes: bool) -> list[str]:
    """With which kinds a call is failed."""
    if arguments.in_turn is None:
        return [kind for kind in arguments.kinds if writes or kind != "SHORT"]
    kind = arguments.kinds[(number - 1 + arguments.in_turn) % len(arguments.kinds)]
    return [kind if writes or kind != "SHORT" else "EIO"]


def main() -> int:
    """Read the arguments, and go on in a process whose writes can fail."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--commands", nargs="+", default=list(studies.ORDER), choices=studies.ORDER)
    parser.add_argument("--every", type=int, default=1, help="fail every so many-th write, not each")
    parser.add_argument("--first", type=int, default=1, help="the first write to fail")
    parser.add_argument("--in-turn", type=int, help="the kinds in turn, the first call with this one (0, 1, …)")
    arguments = parser.parse_args()
    if ENVIRONMENT in os.environ:
        return serve(arguments, Path(os.environ[ENVIRONMENT]).parent)
    with tempfile.TemporaryDirectory(prefix="lcd-faults-") as folder:
        environment = os.environ | {"OMP_NUM_THREADS": "1"} | preloaded(Path(folder))
        return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
