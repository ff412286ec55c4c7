"""Operations of a worker on the shared folder, counted by strace, and what those of a thousand make together.

`make bench ONLY=operations`. What does not name a file of the study, nor one that is open, is not counted.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

MARK = "/lcd-mark"
ASKS = {"stat", "lstat", "newfstatat", "statx", "access", "faccessat2", "readlink", "open", "openat", "getdents64"}
CHANGES = {
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "rename",
    "renameat2",
    "mkdir",
    "rmdir",
    "utimensat",
    "chmod",
    "fchmod",
}
WAITS = {"fsync"}
MOVES = {"read", "pread64", "write"}
SECONDS = {"beat": 15.0, "status": 0.5, "look for a mark": 2.0, "checkpoint": 5.0, "row": 60.0, "scalars": 5.0}
"""How often each comes at most, in seconds; a row comes with an evaluation."""
OPERATIONS = ("begin", "beat", "status", "look for a mark", "checkpoint", "row", "scalars", "end")


def mark(name: str) -> None:
    """Leave a trace that one operation ends here."""
    os.access(f"{MARK}/{name}", os.F_OK)


def act(folder: Path) -> None:
    """Each operation of a worker's loop once, after one that warms up what is imported and cached."""
    from lcd.pipelines.jobs.checkpoint import save
    from lcd.pipelines.jobs.record import CurveFile
    from lcd.pipelines.jobs.scalar_file import ScalarFile
    from lcd.pipelines.study import hands, store
    from lcd.pipelines.study.cancelling import is_cancelled

    for run in (folder / "warm", folder / "run"):
        (run / "checkpoints").mkdir(parents=True)
        store.update_status(run, state="queued")
        mark("warm")
        acquired = hands.acquire(run)
        assert acquired is not None
        lease, still = acquired
        lease.prepare(still=still)
        (lease.folder / "checkpoints").mkdir()
        hands._held = lease
        mark("begin")
        curve, scalars = CurveFile(lease.folder / "curve.csv", ["step"]), ScalarFile(lease.folder / "train.csv")
        curve.append([{"step": 0}])
        scalars.append([{"step": 0}])
        mark("warm")
        lease.beat()
        mark("beat")
        store.update_status(lease.folder, step=1)
        mark("status")
        is_cancelled(run)
        mark("look for a mark")
        save({"step": 1}, lease.folder / "checkpoints" / "last.ckpt")
        mark("checkpoint")
        curve.append([{"step": 1}])
        mark("row")
        scalars.append([{"step": 1}])
        mark("scalars")
        lease.end(done=True)
        hands._held = None
        mark("end")


def counted(trace: str, folder: Path) -> dict[str, Counter[str]]:
    """System calls on what lies in a folder, by the mark that came next; of a name that came twice the second."""
    found, now = {}, Counter()
    for line in trace.splitlines():
        call = re.match(r"(?:\[pid\s+\d+\] |\d+\s+)?(\w+)\(", line)
        if call is None:
            continue
        if MARK in line:
            name = line.split(f"{MARK}/")[1].split('"')[0]
            found[name], now = now, Counter()
        elif str(folder) in line:
            now[call[1]] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--act", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.act:
        act(options.act)
        return
    if shutil.which("strace") is None:
        sys.exit("strace is not installed.")
    with tempfile.TemporaryDirectory() as temporary:
        folder, trace = Path(temporary) / "runs", Path(temporary) / "trace"
        command = ["strace", "-f", "-y", "-e", "trace=%file,%desc", "-o", str(trace), sys.executable, __file__, "--act"]
        subprocess.run([*command, str(folder)], check=True)
        found = counted(trace.read_text(), folder)
    kinds = {"asks": ASKS, "changes": CHANGES, "waits for the disk": WAITS, "reads, writes": MOVES}
    print(f"{'':<18}" + "".join(f"{name:>20}" for name in (*kinds, "a second")))
    total: Counter[str] = Counter()
    for name in OPERATIONS:
        counts = {kind: sum(found[name][call] for call in calls) for kind, calls in kinds.items()}
        rate = options.workers / SECONDS[name] if name in SECONDS else 0.0
        total.update({kind: count * rate for kind, count in counts.items()})
        each = "".join(f"{count:>20}" for count in counts.values())
        print(f"{name:<18}{each}{f'{rate * sum(counts.values()):,.0f}' if rate else '':>20}")
    print(
        f"{options.workers:,} workers: "
        + ", ".join(f"{count:,.0f} {kind}" for kind, count in total.items())
        + " a second"
    )


if __name__ == "__main__":
    main()
