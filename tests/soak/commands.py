"""Several commands at one study, through several launchers, of which processes are killed at random by kill -9.

    python tests/soak/commands.py [--kills 100] [--launchers local local ray] [--runs 8] [--pause 0.3] [--forked]

Killed are a command, one of the processes that train, the process that such a one was started by (a command, a task of
Ray, a job of Slurm) alone, or all that a command or job started and itself at once; of Slurm also the node's daemon,
the node with all that runs there, and the controller. What was killed least is killed next, of what is there. Whoever
dies is followed by the same command, and a node that Slurm drains because its controller forgot what runs there is put
back, as an administrator would. In the end every curve must be that of a run that nothing happened to, each run done
once, and nobody may be at work still whose parent was killed alone. Runs count, slowly
(`tests/pipelines/slow_counting.py`). `ray` and `slurm` start a cluster of their own for all. --forked forks commands
and local workers off one process, which spares their imports. Prints the figures as JSON; exits with 1 where something
was found.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
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
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "pipelines"), str(HERE.parent / "shared")]

import slow_counting  # noqa: E402

ORPHANS_S = 20.0
MOST_S = 1800.0
VICTIMS = {
    "local": ("command", "worker", "all"),
    "ray": ("command", "worker", "parent", "all"),
    "slurm": ("command", "worker", "parent", "job", "slurmd", "node", "controller"),
}
WORDS = {
    "local": ("launcher.workers=2",),
    "ray": ("launcher.workers=2", "launcher.grace=15"),
    "slurm": ("launcher.workers=3", "launcher.pack=2", "launcher.poll=0.5", "launcher.time=60", "launcher.grace=15"),
}


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


@dataclass
class Seen:
    """The processes of a command.

    Attributes:
        members: itself and all that it started on this machine.
        jobs: those of jobs of Slurm.
        workers: of all these the ones that train, or are about to.
    """

    members: list[int]
    jobs: list[list[int]]
    workers: list[int]


class Commands:
    """The commands at one study.

    Args:
        folder: the study's.
        asked: the arguments of the soak.
        rng: chooses moments and victims.
        kills: how many of what there were, over all studies.
        slurm: the cluster, where there is one.
    """

    def __init__(self, folder, asked, rng, kills, slurm=None):
        self.folder, self.asked, self.rng, self.kills, self.slurm = folder, asked, rng, kills, slurm
        self.seeds, self.findings = list(range(asked.runs)), []
        self.running = {}

    def make(self, kills):
        """Begin all commands, and kill so many processes, or until all is done; how many."""
        for number in range(len(self.asked.launchers)):
            self._start(number)
        try:
            done = self._kill_until(kills, time.monotonic() + MOST_S)
        finally:
            for process in self.running.values():
                for each in family(process.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(each, signal.SIGKILL)
        self._compare()
        return done

    def _kill_until(self, kills, end):
        """Kill so many processes, or until all commands have ended well; how many."""
        done = 0
        while any(process.poll() is None for process in self.running.values()):
            if time.monotonic() > end:
                self.findings.append("it hangs")
                break
            time.sleep(self.rng.uniform(0.2, 3.0) if done < kills else 0.2)
            if self.slurm is not None:
                self.slurm.mend()
            if done < kills and self._kill():
                done += 1
            for number, process in list(self.running.items()):
                if process.poll() not in (None, 0):
                    self._start(number)
        return done

    def _start(self, number):
        launcher = self.asked.launchers[number]
        words = ["tracker=none", f"launcher={launcher}", *WORDS[launcher]]
        asked = (slow_counting.COMMAND, str(self.folder), json.dumps(self.seeds), *words)
        if self.asked.forked:
            from fork_server import interpret

            self.running[number] = interpret(*asked)
            return
        line = [sys.executable, "-c", *asked]
        self.running[number] = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _kill(self):
        """Kill something; whether there was anything."""
        number, victim, seen = self._chosen()
        if victim is None:
            return False
        process, launcher = self.running[number], self.asked.launchers[number]
        if victim in ("slurmd", "node", "controller"):
            self._kill_daemon(victim)
            return True
        worker = self.rng.choice(seen.workers) if seen.workers else 0
        chosen = {
            "command": lambda: [process.pid],
            "all": lambda: seen.members,
            "worker": lambda: [worker],
            "parent": lambda: [above(worker)],
            "job": lambda: next((job for job in seen.jobs if worker in job), []),
        }[victim]()
        # Of a worker that has just ended there is no parent, and kill(0) would end the soak itself.
        if min(chosen, default=0) <= 1:
            return False
        known = {each: began(each) for each in self._ended_by(chosen, seen.workers, victim, launcher)}
        for each in chosen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self.kills[f"{victim} ({launcher})"] += 1
        if victim == "command":
            process.wait()
        self._await_orphans(known)
        return True

    def _chosen(self):
        """A command by its number, what of it is killed, and its processes: what was killed least, of what is there.

        Workers are there for a small part of the time, so that who chooses blindly hardly ever hits one alone.
        """
        there = []
        for number, process in self.running.items():
            launcher, seen = self.asked.launchers[number], self._seen(number)
            # Who is killed again and again before it has begun shows little.
            if process.poll() is None and (seen.workers or self.rng.random() < 0.02):
                needed = () if seen.workers else ("worker", "parent", "job")
                there += [(number, victim, seen) for victim in VICTIMS[launcher] if victim not in needed]
        self.rng.shuffle(there)
        of = self.asked.launchers
        return min(there, key=lambda each: self.kills[f"{each[1]} ({of[each[0]]})"], default=(None, None, None))

    def _seen(self, number):
        """The processes of a command, wherever they are."""
        launcher, members = self.asked.launchers[number], family(self.running[number].pid)
        jobs = list(self.slurm.processes_of_jobs().values()) if launcher == "slurm" else []
        elsewhere = tasks() if launcher == "ray" else list(itertools.chain(*jobs))
        return Seen(members, jobs, self._workers([*members[1:], *elsewhere]))

    def _workers(self, found):
        """Of some processes those that train, or are about to."""
        hands = set()
        with contextlib.suppress(OSError, ValueError, KeyError):
            hands = set(slow_counting.hands(self.folder))
        return [each for each in found if each in hands or b"pipelines.launch.local" in command_line(each)]

    def _ended_by(self, chosen, workers, victim, launcher):
        """The workers that have to end because of a kill: those of a parent, which was killed alone.

        Jobs of Slurm outlive the command. Which tasks of Ray are a command's is known where there is one command.
        """
        if victim == "command" and launcher == "ray":
            return workers if self.asked.launchers.count("ray") == 1 else []
        return [each for each in workers if above(each) in chosen] if victim in ("command", "parent") else []

    def _kill_daemon(self, victim):
        """Take a part of Slurm away, and bring it back."""
        self.kills[f"{victim} (slurm)"] += 1
        if victim == "node":
            self.slurm.kill_node()
            return
        name = {"controller": "slurmctld"}.get(victim, victim)
        self.slurm.kill(name)
        time.sleep(self.rng.uniform(0, 3))
        self.slurm.start(name)

    def _await_orphans(self, known):
        """Workers whose parent was killed alone have to end."""
        end = time.monotonic() + ORPHANS_S
        while (left := [each for each, begun in known.items() if lives(each, begun)]) and time.monotonic() < end:
            time.sleep(0.05)
        self.kills["left without a parent"] += len(known)
        if left:
            self.findings.append(f"orphans: {[command_line(each) for each in left]}")

    def _compare(self):
        try:
            slow_counting.starts_of(self.folder, self.seeds)
        except (AssertionError, OSError, ValueError) as wrong:
            self.findings.append(f"{type(wrong).__name__}: {wrong}")
            self.findings += [f"  {line}" for line in told_of(self.folder)]


def above(process):
    """The process that started one; 0 where it is no more."""
    try:
        return slow_counting.parent(process)
    except OSError:
        return 0


def told_of(study):
    """What lies in a study's runs: of each its files, its status, and its ledger."""
    for run in sorted((study / "runs").iterdir()):
        yield f"{run.name}: {sorted(str(path.relative_to(run)) for path in run.rglob('*') if path.is_file())}"
        for path in sorted([*run.glob("leases/*"), *run.rglob("status.json"), *run.rglob("count.json")]):
            with contextlib.suppress(OSError):
                yield f"  {path.relative_to(run)}: {' '.join(path.read_text().split())}"


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
    parser.add_argument("--pause", type=float, default=0.3, help="seconds of each of a count's twelve steps")
    parser.add_argument("--forked", action="store_true")
    asked = parser.parse_args()
    rng = random.Random(asked.seed)
    begun, done, studies, findings, kills = time.monotonic(), 0, 0, [], Counter()
    with tempfile.TemporaryDirectory(prefix="lcd-commands-") as folder:
        path = os.pathsep.join(sys.path[:2])
        os.environ.update({"PYTHONPATH": path, "OMP_NUM_THREADS": "1", slow_counting.PAUSE: str(asked.pause)})
        with contextlib.ExitStack() as clusters:
            if "ray" in asked.launchers:
                clusters.enter_context(ray_cluster())
            slurm = clusters.enter_context(slurm_cluster()) if "slurm" in asked.launchers else None
            while done < asked.kills and not findings:
                commands = Commands(Path(folder) / "study", asked, rng, kills, slurm)
                done += commands.make(asked.kills - done)
                findings += commands.findings
                studies += 1
                told = f"{done} kills {dict(kills)}, {studies} studies"
                print(f"{told}, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
                if slurm is not None:
                    slurm.clear()
                if not findings:
                    shutil.rmtree(Path(folder) / "study")
        for each in findings:
            print(each, flush=True)
    figures = {"kills": done, **dict(sorted(kills.items())), "studies": studies, "runs": studies * asked.runs}
    print(json.dumps(figures | {"seconds": round(time.monotonic() - begun), "findings": len(findings)}), flush=True)
    return int(bool(findings))


@contextlib.contextmanager
def ray_cluster():
    """A Ray with a head and a node, for all commands."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "200"}
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": 80 << 20}
    made = Cluster(initialize_head=True, head_node_args={**small, "num_cpus": 0, "include_dashboard": False})
    made.add_node(num_cpus=4, **small)
    os.environ["RAY_ADDRESS"] = made.address
    try:
        yield
    finally:
        made.shutdown()


@contextlib.contextmanager
def slurm_cluster():
    """A Slurm of one node, for all commands."""
    from slurm_cluster import Cluster

    with tempfile.TemporaryDirectory(prefix="lcd-slurm-", ignore_cleanup_errors=True) as folder:
        made = Cluster(Path(folder))
        os.environ.update(made.environment)
        try:
            yield made
        finally:
            made.stop()


if __name__ == "__main__":
    sys.exit(main())
