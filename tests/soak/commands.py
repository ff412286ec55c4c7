"""Several commands at one study, through several launchers, of which processes are killed at random by kill -9.

    python tests/soak/commands.py [--kills 100] [--launchers local local ray] [--runs 8] [--seed 0]

Killed are a command, one of its workers, or all that it started and itself at once. Whoever dies is followed by the
same command. In the end every curve must be that of a run that nothing happened to, each run done once, and nobody of
a command that was killed alone may be at work still. Runs count, slowly (`tests/pipelines/slow_counting.py`), so that a
thousand kills are an hour. `ray` starts a cluster of its own for all; its tasks are killed, too. Prints the figures as
JSON; exits with 1 where something was found.
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
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "pipelines"), str(HERE.parent / "shared")]

import slow_counting  # noqa: E402

ORPHANS_S = 20.0
MOST_S = 600.0
VICTIMS = ("command", "worker", "all")


def family(process):
    """A process and all that it started, which lives."""
    told = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = place.read_text().rpartition(")")[2].split()
            if fields[0] not in "ZX":
                told[int(place.parent.name)] = int(fields[1])
    found = [process] if process in told else []
    for each in found:
        found += [child for child, above in told.items() if above == each]
    return found


def lives(process, begun):
    """Whether a process is still the one that began then."""
    return began(process) == begun is not None


def began(process):
    """When a process began; None where it is no more."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


class Commands:
    """The commands at one study.

    Args:
        folder: the study's.
        asked: the arguments of the soak.
        rng: chooses moments and victims.
    """

    def __init__(self, folder, asked, rng):
        self.folder, self.asked, self.rng = folder, asked, rng
        self.seeds = list(range(asked.runs))
        self.kills, self.findings = Counter(), []
        self.running = {}

    def make(self, kills):
        """Begin all commands, and kill so many processes, or until all is done; how many."""
        for number in range(len(self.asked.launchers)):
            self._start(number)
        done, end = 0, time.monotonic() + MOST_S
        while any(process.poll() is None for process in self.running.values()):
            if time.monotonic() > end:
                self.findings.append("it hangs")
                break
            time.sleep(self.rng.uniform(0.2, 3.0) if done < kills else 0.2)
            if done < kills and self._kill():
                done += 1
            for number, process in list(self.running.items()):
                if process.poll() not in (None, 0):
                    self._start(number)
        self._compare()
        return done

    def _start(self, number):
        words = ["tracker=none", f"launcher={self.asked.launchers[number]}", "launcher.workers=2"]
        line = [sys.executable, "-c", slow_counting.COMMAND, str(self.folder), json.dumps(self.seeds), *words]
        self.running[number] = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _kill(self):
        """Kill something of a command; whether there was any."""
        number = self.rng.choice(list(self.running))
        process = self.running[number]
        members = family(process.pid) if process.poll() is None else []
        if not members:
            return False
        workers = [each for each in members[1:] if b"pipelines.launch.local" in command_line(each)]
        workers += tasks() if self.asked.launchers[number] == "ray" else []
        # Who is killed again and again before it has begun shows little.
        if not workers and self.rng.random() < 0.9:
            return False
        victim = self.rng.choice(VICTIMS)
        chosen = {"command": [process.pid], "all": members, "worker": workers and [self.rng.choice(workers)]}[victim]
        if not chosen:
            return False
        known = {each: began(each) for each in workers}
        for each in chosen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self.kills[f"{victim} ({self.asked.launchers[number]})"] += 1
        if victim == "command":
            process.wait()
            self._await_orphans(known)
        return True

    def _await_orphans(self, known):
        """Workers of a command that was killed alone have to end."""
        end = time.monotonic() + ORPHANS_S
        while (left := [each for each, begun in known.items() if lives(each, begun)]) and time.monotonic() < end:
            time.sleep(0.05)
        # Tasks of other commands are Ray's, too.
        if left and "ray" not in self.asked.launchers:
            self.findings.append(f"orphans: {left}")

    def _compare(self):
        try:
            slow_counting.starts_of(self.folder, self.seeds)
        except (AssertionError, OSError, ValueError) as wrong:
            self.findings.append(f"{type(wrong).__name__}: {wrong}")


def command_line(process):
    """What a process was started as."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def tasks():
    """The processes of Ray's tasks, and the workers that they started."""
    mine = f"PYTHONPATH={os.environ['PYTHONPATH']}".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        line = command_line(place.name)
        with contextlib.suppress(OSError):
            if line.startswith(b"ray::") and mine in (place / "environ").read_bytes().split(b"\0"):
                found.append(int(place.name))
    return found


def main() -> int:
    """Kill, compare, print figures; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--launchers", nargs="+", default=["local", "local", "ray"])
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    begun, done, studies, findings, kills = time.monotonic(), 0, 0, [], Counter()
    with tempfile.TemporaryDirectory(prefix="lcd-commands-") as folder:
        path = os.pathsep.join(sys.path[:2])
        os.environ.update({"PYTHONPATH": path, "OMP_NUM_THREADS": "1", slow_counting.PAUSE: "0.3"})
        with cluster() if "ray" in asked.launchers else contextlib.nullcontext():
            while done < asked.kills and not findings:
                commands = Commands(Path(folder) / "study", asked, rng)
                done += commands.make(asked.kills - done)
                findings += commands.findings
                kills += commands.kills
                studies += 1
                if not findings:
                    shutil.rmtree(Path(folder) / "study")
        for each in findings:
            print(each, flush=True)
    figures = {"kills": done, **dict(sorted(kills.items())), "studies": studies, "runs": studies * asked.runs}
    print(json.dumps(figures | {"seconds": round(time.monotonic() - begun), "findings": len(findings)}), flush=True)
    return int(bool(findings))


@contextlib.contextmanager
def cluster():
    """A Ray with a head and a node, for all commands."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": 80 << 20}
    made = Cluster(initialize_head=True, head_node_args={**small, "num_cpus": 0, "include_dashboard": False})
    made.add_node(num_cpus=4, **small)
    os.environ["RAY_ADDRESS"] = made.address
    try:
        yield
    finally:
        made.shutdown()


if __name__ == "__main__":
    sys.exit(main())
