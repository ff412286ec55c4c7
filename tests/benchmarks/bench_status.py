"""Time and file operations of `lcd status`, and of `lcd report`, on a study of ten thousand runs.

`make bench ONLY=status ARGS="--latency 0.5"` has every look at a file wait for half a millisecond, as on a file system
of a cluster; `--evaluations 300` writes curves, too, and reports on them.
"""

import argparse
import contextlib
import io
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))

import made_up_studies
from bench_diagnose import measured
from made_up_studies import held

from lcd.config.steering_schemas import StatusConfig
from lcd.pipelines.steering import status
from lcd.pipelines.study import store

STATES = (*["done"] * 70, *["queued"] * 28, "failed", "diverged")
AT_WORK = 64
LIMIT_S = 5.0
LOOKS = {"stat": os, "lstat": os, "open": os, "listdir": os}


@contextlib.contextmanager
def slow_disk(latency_ms: float) -> Iterator[Counter]:
    """Every look at a file takes so much longer; how many there were."""
    counted: Counter = Counter()
    before = {name: getattr(os, name) for name in ("stat", "lstat", "open", "listdir")}
    plain_open = io.open

    def waiting(name, function):
        def look(*arguments, **named):
            counted[name] += 1
            if latency_ms:
                time.sleep(latency_ms / 1000)
            return function(*arguments, **named)

        return look

    import builtins

    for name, function in before.items():
        setattr(os, name, waiting(name, function))
    builtins.open = io.open = waiting("open", plain_open)
    try:
        yield counted
    finally:
        for name, function in before.items():
            setattr(os, name, function)
        builtins.open = io.open = plain_open


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def look(folder: Path, latency_ms: float) -> tuple[float, float, Counter, str]:
    """Seconds by the clock and of a core that a status takes in this process, the looks at files, and what it says."""
    told = io.StringIO()
    with slow_disk(latency_ms) as counted, contextlib.redirect_stdout(told):
        started, used = time.perf_counter(), cpu_seconds()
        status.run(StatusConfig(path=str(folder)))
        seconds, used = time.perf_counter() - started, cpu_seconds() - used
    return seconds, used, counted, told.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--latency", type=float, default=0.0, help="milliseconds that every look at a file waits")
    parser.add_argument("--evaluations", type=int, default=0, help="rows of each curve; 0: no report")
    parser.add_argument("--folder", type=Path, help="where to write it, instead of a folder that is removed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)) / "study"
        states = ("done",) if options.evaluations else STATES
        if not folder.exists():
            made_up_studies.write_study(folder, options.runs, states, options.evaluations)
        runs = sorted((folder / "runs").iterdir())
        with contextlib.ExitStack() as stack:
            for run in runs[:AT_WORK] if states == STATES else ():
                stack.enter_context(held(run))
                store.update_status(run, state="running", steps_per_s=1000.0, where="node001, process 4000, GPU 0")
            seconds, used, counted, told = look(folder, options.latency)
        print(told)
        print(
            f"lcd status, {len(runs):,} runs: {seconds:.2f} s, {used:.2f} s of a core (limit {LIMIT_S:g} s), "
            f"{sum(counted.values()):,} looks at files ({dict(counted)}), each {options.latency:g} ms slower",
            flush=True,
        )
        if options.evaluations:
            command = [sys.executable, "-m", "lcd.cli", "report", str(folder), f"out={folder.parent / 'report'}"]
            seconds, peak = measured(command)
            rows = len(runs) * options.evaluations
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            print(
                f"lcd report, {rows:,} rows: {seconds:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of cores, "
                f"peak {peak:.2f} GiB"
            )
    sys.exit(options.latency == 0 and used > LIMIT_S if not options.evaluations else 0)


if __name__ == "__main__":
    main()
