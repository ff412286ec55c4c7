"""Kills the commands of a small study at random moments, and sees whether the same commands end as if nothing had been.

    python tests/soak/kills.py [--kills 100] [--seed 0] [--forked] [--commands pretrain ...]

The study is a pretraining, a study that uses it, one with PPG, a learner, and a report. Killed are
the command, one of its workers, or all of its processes at once, by SIGKILL, SIGTERM, SIGHUP or SIGINT. The same
command follows until it ends well. Then all curves (but for the column of seconds) and scores must be those of a
study that nothing happened to, every status says done, no process is left and no temporary file.

--forked forks commands and workers off one process, which spares their imports: many kills in a short time. Without
it commands are started as users start them, and train for longer. Prints findings and figures; exits with 1 if there
was a finding.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import forks
import studies

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
VICTIMS = ("command", "worker", "all")
MOST_S = 900
"""Longer than this no command takes: it hangs."""
ORPHANS_S = 20.0
"""Processes of a command that is over end within this time."""
WORK = 24
"""How much more than a forked command one trains that is started as users start it."""


class Kills:
    """A study that nothing happens to, and others that are killed.

    Args:
        folder: where they live.
        rng: chooses moments, victims and signals.
        forked: fork commands, do not start them anew.
        names: the commands, in their order.
    """

    def __init__(self, folder: Path, rng: random.Random, forked: bool, names: Sequence[str]):
        self.folder, self.rng, self.forked, self.names = folder, rng, forked, names
        self.seconds: dict[str, float] = {}
        self.findings: list[str] = []
        self.sent: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.finished = 0
        whole = folder / "whole"
        whole.mkdir()
        for name in names:
            begun = time.monotonic()
            code, told = self._wait(self._start(whole, name))
            self.seconds[name] = time.monotonic() - begun
            if code:
                raise RuntimeError(f"{name} ends with {code} of itself: {told}")
        self.curves, self.scores = studies.curves(whole), studies.scores(whole)

    def make(self, count: int) -> None:
        """Kill so many times."""
        while sum(self.sent.values()) < count:
            root = self.folder / "disturbed"
            shutil.rmtree(root, ignore_errors=True)
            root.mkdir()
            for name in self.names:
                while not self._attempt(root, name, sum(self.sent.values()) < count):
                    pass
            self._compare(root)
            self.finished += 1

    def _attempt(self, root: Path, name: str, killing: bool) -> bool:
        """Make a command, kill something of it if it lasts that long; whether it ended well."""
        session = self._start(root, name)
        how = f"{name} left alone"
        if killing:
            number, victim = self.rng.choice(SIGNALS), self.rng.choice(VICTIMS)
            moment = self.rng.uniform(0, self.seconds[name])
            if victim := self._kill(session, number, victim, moment):
                how = f"{name}: {number.name} to {victim} after {moment:.2f} s"
                self.sent[f"{number.name} {victim}"] += 1
        code, told = self._wait(session)
        self.codes[str(code)] += 1
        if killing and how.endswith("alone") and code == 0:
            return True
        self._look(root, how, code, told)
        return code == 0

    def _kill(self, session: int, number: signal.Signals, victim: str, moment: float) -> str | None:
        """Send the signal at the moment; who got it: the command, where there is no worker; None: nobody was left."""
        end = time.monotonic() + moment
        while time.monotonic() < end:
            if _over(session):
                return None
            time.sleep(0.002)
        if _over(session):
            return None
        processes = forks.members(session)
        chosen = {"command": [session], "worker": [each for each in processes if each != session], "all": processes}
        victim = victim if chosen[victim] else "command"
        for process in chosen[victim]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        return victim

    def _look(self, root: Path, how: str, code: int | None, told: str) -> None:
        """What is wrong after a kill?"""
        found = [f"not whole: {each}" for each in studies.broken(root)]
        if code is None:
            found.append("it hangs")
        if "Traceback" in told and code not in (-signal.SIGINT, 1):
            found.append(f"a stack trace, exit code {code}: {told.strip()[-400:]}")
        if "SIGKILL" not in how and code is not None and code >= 0:
            running = [run for run, state in studies.states(root).items() if state == "running"]
            found += [f"nobody works on {run}, which says that it is running" for run in running]
        if how.endswith("alone") and code != 0:
            found.append(f"exit code {code}: {told.strip()[-400:]}")
        self._note(how, found)

    def _compare(self, root: Path) -> None:
        found = [] if studies.curves(root) == self.curves else ["curves differ"]
        found += [] if studies.scores(root) == self.scores else ["scores differ"]
        found += [f"{run} is {state}" for run, state in studies.states(root).items() if state != "done"]
        found += [f"left over: {path}" for path in studies.left_over(root)]
        self._note("in the end", found)

    def _note(self, how: str, found: list[str]) -> None:
        for each in found:
            self.findings.append(f"{how}: {each}")
            print(self.findings[-1], flush=True)

    def _start(self, root: Path, name: str) -> int:
        """Start a command; its process id is that of its session."""
        told = self.folder / "told.txt"
        if self.forked:
            return forks.start(studies.command(root, name), told)
        with told.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "lcd.cli", *studies.command(root, name, WORK)],
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )
        # Waited for by its id, as a forked command is.
        process.returncode = 0
        return process.pid

    def _wait(self, session: int) -> tuple[int | None, str]:
        """The exit code of a command and what it said, once all of its processes are gone."""
        code = forks.ended(session, MOST_S)
        end = time.monotonic() + ORPHANS_S
        while (left := forks.members(session)) and time.monotonic() < end:
            time.sleep(0.01)
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        if code is None:
            forks.ended(session, 10)
        elif left:
            self._note("after the end", [f"processes {left} went on"])
        return code, (self.folder / "told.txt").read_text(errors="replace")


def _over(session: int) -> bool:
    """Is a command at its end? It is not waited for."""
    return os.waitid(os.P_PID, session, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def main() -> int:
    """Read the arguments, kill, print figures; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--forked", action="store_true")
    parser.add_argument("--commands", nargs="+", default=list(studies.ORDER), choices=studies.ORDER)
    arguments = parser.parse_args()
    names = [name for name in studies.ORDER if name in arguments.commands]
    os.environ["OMP_NUM_THREADS"] = "1"
    if arguments.forked:
        forks.prepare()
    with tempfile.TemporaryDirectory(prefix="lcd-kills-") as folder:
        kills = Kills(Path(folder), random.Random(arguments.seed), arguments.forked, names)
        kills.make(arguments.kills)
    figures = {
        "kills": sum(kills.sent.values()),
        "by": dict(sorted(kills.sent.items())),
        "exit codes": dict(sorted(kills.codes.items())),
        "studies finished": kills.finished,
        "curves compared": kills.finished * len(kills.curves),
        "findings": len(kills.findings),
    }
    print(json.dumps(figures), flush=True)
    return int(bool(kills.findings))


if __name__ == "__main__":
    sys.exit(main())
