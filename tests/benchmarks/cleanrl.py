"""Runs one of CleanRL's Procgen scripts as it is, and writes down when it steps and what its episodes return.

The peer's own interpreter runs this file; it needs nothing of ours. The script is not changed: what it imports is
wrapped (its environments, to watch them or to give them other levels; its networks, to run them in bf16).
"""

from __future__ import annotations

import argparse
import builtins
import json
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


class Watch:
    """Collects what happens and writes it as JSON.

    Args:
        file: where to.
        clock: what tells the time.
    """

    def __init__(self, file: Path, clock: Callable[[], float]):
        self.file, self.clock = file, clock
        self.steps: list[float] = []
        self.said: list[tuple[float, str]] = []
        self.episodes: list[tuple[int, float]] = []
        self.running: np.ndarray | None = None

    def stepped(self, rewards: np.ndarray, dones: np.ndarray) -> None:
        """One step of all copies."""
        self.steps.append(self.clock())
        self.running = rewards + (0 if self.running is None else self.running)
        self.episodes += [(len(self.steps) * len(rewards), float(self.running[copy])) for copy in np.flatnonzero(dones)]
        self.running = np.where(dones, 0.0, self.running)

    def write(self) -> None:
        """Write all of it."""
        found = {"steps": self.steps, "end": self.clock(), "said": self.said, "episodes": self.episodes}
        self.file.write_text(json.dumps(found))


def watch_environments(watch: Watch, levels: int) -> None:
    """Let the script's Procgen report its steps, on that many levels."""
    import procgen

    make = procgen.ProcgenEnv

    def made(**options: Any) -> Any:
        env = make(**options | {"num_levels": levels, "start_level": 0})
        step = env.step

        def watched(actions: np.ndarray) -> Any:
            outcome = step(actions)
            watch.stepped(outcome[1], outcome[2])
            return outcome

        env.step = watched
        return env

    procgen.ProcgenEnv = made


def watch_words(watch: Watch) -> None:
    """Note when the script says what."""
    say = builtins.print

    def said(*words: object, **how: Any) -> None:
        if not str(words[0]).startswith("global_step"):
            watch.said.append((watch.clock(), str(words[0])))
            say(*words, **how, flush=True)

    builtins.print = said


def use_half_precision() -> None:
    """Run the script's encoder under autocast to bf16, as a user would who edits one line."""
    import torch

    forward = torch.nn.Sequential.forward

    def autocast(self: Any, given: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return forward(self, given).float()

    torch.nn.Sequential.forward = autocast


def main() -> None:
    """`cleanrl.py SCRIPT OUTPUT [--levels N] [--bf16] [--cpu-time] -- the script's own arguments`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("script")
    parser.add_argument("output", type=Path)
    parser.add_argument("--levels", type=int, default=0)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--cpu-time", action="store_true", help="note processor time, not the wall's")
    own, theirs = sys.argv[1:], []
    if "--" in own:
        own, theirs = own[: own.index("--")], own[own.index("--") + 1 :]
    args = parser.parse_args(own)
    watch = Watch(args.output, time.process_time if args.cpu_time else time.perf_counter)
    watch_environments(watch, args.levels)
    watch_words(watch)
    if args.bf16:
        use_half_precision()
    sys.argv = [args.script, *theirs]
    try:
        runpy.run_path(args.script, run_name="__main__")
    finally:
        watch.write()


if __name__ == "__main__":
    main()
