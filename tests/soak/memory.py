"""Does memory grow? Trains and evaluates in one process, and diagnoses and reports in another, over and over.

    python tests/soak/memory.py [--minutes 30] [--leak 0]

After each round a process tells its proportional set size (PSS). The first third warms up; over the rest the slope is
taken (Theil–Sen, which a few outliers do not move). Memory grows where the lower end of the slope's 95 % interval is
above 0 and what it comes to over the time is more than 1 % of the size. --leak keeps so many KiB a round, to see
that this is found. Prints figures; exits with 1 if memory grows.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import theilslopes

LOOPS = ("training", "reports")
WARMING = 1 / 3
LEAST_ROUNDS = 6
LARGEST = 0.01
"""Of the size: what memory may seem to grow by while it is watched."""


def proportional_set_size() -> int:
    """The memory of this process in KiB, swapped out or not, of what it shares its part."""
    text = Path("/proc/self/smaps_rollup").read_text()
    return sum(int(size) for size in re.findall(r"^(?:Pss|SwapPss):\s+(\d+)", text, re.MULTILINE))


def training(folder: Path) -> Callable[[int], None]:
    """A round trains and evaluates a run from its start to its end."""
    from lcd.config.compose import compose
    from lcd.pipelines.jobs.train import train_run
    from lcd.pipelines.study.configs import Device
    from lcd.pipelines.study.runs import run_config_from

    sizes = ["agent.copies=8", "steps=1024", "evaluation.every=512", "evaluation.copies=4", "evaluation.episodes=1"]
    config = run_config_from(compose("train", ["task=toy/hard-sight-easy-reward", "seeds=2", *sizes]))

    def one(number: int) -> None:
        run_dir = folder / f"run-{number}"
        run_dir.mkdir()
        train_run(config | {"seeds": [2 * number, 2 * number + 1]}, run_dir, {"name": "none"}, Device("cpu"))

    return one


def reports(folder: Path) -> Callable[[int], None]:
    """A round diagnoses and reports a study, and looks what of it is still to be trained."""
    from lcd import cli

    out = folder / "study"
    sizes = ["study.views=[pixels,semantic]", "study.reward_p=[1.0,0.5]", "study.seeds=2", "study.steps=256"]
    tasks = "study.tasks=[toy/hard-sight-easy-reward,toy/easy-sight-easy-reward]"
    line = ["diagnose", "benchmark=toy", tasks, *sizes, "study.evaluation.every=128", "study.evaluation.copies=2"]
    line += ["tracker=none", "launcher.workers=1", f"out={out}"]

    def one(number: int) -> None:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            if cli.main(line if number % 2 == 0 else ["report", str(out)]):
                raise RuntimeError("the study cannot be made")

    return one


def watch(loop: str, seconds: float, leak: int) -> None:
    """Go round for so long, and print the memory after each round."""
    kept = []
    with tempfile.TemporaryDirectory(prefix="lcd-memory-") as folder:
        one = {"training": training, "reports": reports}[loop](Path(folder))
        end, number = time.monotonic() + seconds, 0
        while time.monotonic() < end or number < LEAST_ROUNDS:
            one(number)
            kept.append(bytearray(os.urandom(1024)) * leak)
            number += 1
            gc.collect()
            print(f"PSS {proportional_set_size()}", file=sys.__stdout__, flush=True)


def judged(sizes: np.ndarray) -> dict[str, float | bool]:
    """What memory after each round tells: does it grow?"""
    warm = sizes[int(len(sizes) * WARMING) :]
    slope, _, low, _ = theilslopes(warm, np.arange(len(warm)), 0.95)
    grown = slope * (len(warm) - 1)
    return {
        "rounds": len(sizes),
        "KiB": float(np.median(warm)),
        "KiB a round": round(float(slope), 2),
        "at least": round(float(low), 2),
        "grows": bool(low > 0 and grown > LARGEST * np.median(warm)),
    }


def main() -> int:
    """Watch both loops at the same time; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--leak", type=int, default=0, help="KiB that each round keeps")
    parser.add_argument("--loops", nargs="+", default=list(LOOPS), choices=LOOPS)
    parser.add_argument("--watch", choices=LOOPS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.watch:
        watch(arguments.watch, 60 * arguments.minutes, arguments.leak)
        return 0
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    processes = {
        loop: subprocess.Popen(
            [sys.executable, *sys.argv, "--watch", loop], env=environment, stdout=subprocess.PIPE, text=True
        )
        for loop in arguments.loops
    }
    figures = {}
    for loop, process in processes.items():
        told = process.communicate()[0]
        if process.returncode:
            raise RuntimeError(f"{loop} ended with {process.returncode}")
        sizes = [int(line.split()[1]) for line in told.splitlines() if line.startswith("PSS ")]
        figures[loop] = judged(np.array(sizes))
    print(json.dumps(figures), flush=True)
    return int(any(found["grows"] for found in figures.values()))


if __name__ == "__main__":
    sys.exit(main())
