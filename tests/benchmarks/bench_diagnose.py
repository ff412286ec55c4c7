"""Time and peak memory of `lcd diagnose benchmark=toy`, the job of `make diagnose`, workers included."""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path


def children(parent: int) -> list[int]:
    """A process and all that descend from it."""
    family, parents = [parent], {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    for process in family:
        family += parents.get(process, [])
    return family


def memory(process: int) -> int:
    """Bytes of memory that a process holds; what it shares is divided among those that share it."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def measured(command: list[str]) -> tuple[float, float]:
    """Seconds that a command takes, and the most GiB that it and its children hold together."""
    peak, finished = 0, threading.Event()
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    threading.Thread(target=lambda: (process.wait(), finished.set()), daemon=True).start()
    while not finished.wait(0.05):
        peak = max(peak, sum(map(memory, children(process.pid))))
    seconds = time.perf_counter() - started
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed with exit code {process.returncode}")
    return seconds, peak / 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("overrides", nargs="*", help="key=value for lcd diagnose")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "lcd.cli", "diagnose", "benchmark=toy", f"out={folder}/study"]
        seconds, peak = measured([*command, *options.overrides])
    print(
        f"lcd diagnose benchmark=toy: {seconds:.0f} s (limit 240 s on 2 cores), "
        f"peak memory {peak:.2f} GiB, {len(os.sched_getaffinity(0))} cores"
    )


if __name__ == "__main__":
    main()
