"""A thousand hands at one study, on a disk that is slow and fails: nothing is lost, nothing is done twice.

    python tests/soak/hands.py [--hands 1000] [--runs 300] [--steps 4] [--delay 0.002] [--failure 0.001] [--seed 0]

Hands are threads, each as if on a machine of its own: of the others it sees only whether they beat. Every operation on
the disk takes a random time, sometimes much longer than a lease lasts, and some fail, after which that hand is dead and
another one comes in its place. Curves are counted in the end. Prints the figures as JSON; exits with 1 where something
was found.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from lcd.files.ledger import Disk
from lcd.pipelines.study import hands
from lcd.pipelines.study.lease import LEASES, STATUS_FILE, settle, take

CURVE, CHECKPOINT = "curve.csv", "checkpoints/last.ckpt"
LEASE_S = 2.0
LONG = 3e-4
"""How often an operation takes longer than a lease lasts."""


class Dead(Exception):
    """A hand whose disk failed."""


class Slow(Disk):
    """A disk that takes its time and fails.

    Args:
        rng: of one hand.
        delay: mean seconds of an operation.
        failure: how often one fails, before it does anything or after it did.
        counts: what was done, of all hands together.
    """

    def __init__(self, rng: random.Random, delay: float, failure: float, counts: Counter[str]):
        self.rng, self.delay, self.failure, self.counts = rng, delay, failure, counts
        for name in ("read", "names", "make", "create", "replace", "rename", "copy", "touch", "stamp", "remove"):
            setattr(self, name, self._disturbed(getattr(super(), name)))

    def _disturbed(self, operation):
        def disturbed(*arguments, **how):
            self.counts["operations"] += 1
            time.sleep(self.rng.expovariate(1 / self.delay) if self.delay else 0)
            if self.rng.random() < LONG:
                self.counts["pauses longer than a lease"] += 1
                time.sleep(LEASE_S * 1.5)
            if self.rng.random() < self.failure / 2:
                raise Dead
            found = operation(*arguments, **how)
            if self.rng.random() < self.failure / 2:
                raise Dead
            return found

        return disturbed

    def append(self, path, content):
        """Add to a file that is there."""
        self.counts["operations"] += 1
        handle = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(handle, content)
        finally:
            os.close(handle)


def work(disk, lease, steps):
    """Rows and checkpoints up to the end; whether it was reached."""
    folder = lease.folder
    step = int(disk.read(folder / CHECKPOINT) or 0)
    rows = [row for row in (disk.read(folder / CURVE) or b"").splitlines(keepends=True) if int(row.split()[0]) <= step]
    disk.replace(folder / CURVE, b"".join(rows))
    disk.make(folder / "checkpoints")
    while step < steps:
        step += 1
        if lease.lost:
            return False
        disk.append(folder / CURVE, f"{step} {lease.number}\n".encode())
        if lease.lost:
            return False
        disk.replace(folder / CHECKPOINT, str(step).encode())
        lease.beat()
    disk.replace(folder / STATUS_FILE, b"done")
    return True


def attempt(disk, run, watch, steps, me, counts):
    """One look at a run, and work where nobody is at it; whether the run is done."""
    state, entry = watch.look()
    settle(disk, run)
    if disk.read(run / STATUS_FILE) == b"done":
        return True
    if state == hands.HELD:
        return False
    lease = take(disk, run, entry, me)
    if lease is None:
        counts["others were quicker"] += 1
        return False
    counts["leases"] += 1
    counts["taken over"] += state == hands.SILENT
    try:
        ready = lease.prepare()
        if not ready or (disk.read(lease.folder / STATUS_FILE) != b"done" and not work(disk, lease, steps)):
            counts["stragglers that stopped"] += 1
            return False
    except (OSError, ValueError, IndexError):
        if not Path(lease.ledger.place(lease.number + 1)).exists():
            raise
        counts["stragglers that stopped"] += 1
        return False
    if not lease.end(done=True):
        counts["stragglers that came to the end"] += 1
    return False


def hand(number, runs, asked, counts, findings):
    """One thread's life; each death is followed by a new hand."""
    rng, life = random.Random(asked.seed * 100_003 + number), 0
    left = list(runs)
    rng.shuffle(left)
    while left:
        life += 1
        disk = Slow(rng, asked.delay, asked.failure, counts)
        me = {"host": f"node{number}", "pid": life, "started": str(life), "machine": f"{number}-{life}"}
        watches = {run: hands.Watch(run, disk=disk) for run in left}
        try:
            while left:
                left = [run for run in left if not attempt(disk, run, watches[run], asked.steps, me, counts)]
                time.sleep(0.05 * rng.random())
        except Dead:
            counts["deaths"] += 1
        except Exception as error:
            findings.append(f"hand {number}: {type(error).__name__}: {error}")
            return


def faults(run, steps):
    """What is wrong with a run in the end."""
    rows = [row.split() for row in (run / CURVE).read_text().splitlines()]
    if [int(row[0]) for row in rows] != list(range(1, steps + 1)):
        yield f"{run.name}: rows {rows}"
    if sorted(rows, key=lambda row: int(row[1])) != rows:
        yield f"{run.name}: a hand wrote after the one that came after it: {rows}"
    told = [json.loads(path.read_text())["what"] for path in sorted((run / LEASES).glob("0*"))]
    if told.count("done") != 1:
        yield f"{run.name}: done {told.count('done')} times"


def main() -> int:
    """Let them work, count, print figures; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in {"hands": 1000, "runs": 300, "steps": 4, "delay": 0.002, "failure": 0.001, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=type(usual), default=usual)
    asked = parser.parse_args()
    os.environ[hands.LEASE_VARIABLE] = str(LEASE_S)
    counts: Counter[str] = Counter()
    findings: list[str] = []
    # What is simulated is the order of operations, not a power cut.
    os.fsync = lambda handle: None
    with tempfile.TemporaryDirectory(prefix="lcd-hands-") as folder:
        runs = [Path(folder) / "runs" / f"{number:04d}" for number in range(asked.runs)]
        for run in runs:
            run.mkdir(parents=True)
            (run / STATUS_FILE).write_text("queued")
        begun = time.monotonic()
        threads = [
            threading.Thread(target=hand, args=(number, runs, asked, counts, findings)) for number in range(asked.hands)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        findings += [each for run in runs for each in faults(run, asked.steps)]
        seconds = round(time.monotonic() - begun, 1)
    for each in findings[:20]:
        print(each, flush=True)
    figures = {"hands": asked.hands, "runs": asked.runs, **dict(sorted(counts.items())), "seconds": seconds}
    print(json.dumps(figures | {"findings": len(findings)}), flush=True)
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
