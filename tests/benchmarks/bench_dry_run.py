"""Does `--dry-run` say how long a study takes? The toy, a user's benchmark and MiniGrid, cold and warm.

Cold means that every interpreter compiles all that it imports, as in many containers. Each study is told of and then
made; the time told may be wrong by a factor of 1.5 either way. Nothing else should run on the machine meanwhile.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT = 1.5
TOLD = re.compile(r"about (\S+) (s|min|h) with")
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
SMALL = ["study.reward_p=[1]", "study.seeds=4", "tracker=none"]
CASES = {
    "toy": ["benchmark=toy", "study.tasks=[toy/easy-sight-easy-reward]", "study.steps=10240", *SMALL],
    "a user's": ["benchmark=lcd_examples.corridors:Corridors", "study.steps=5120", *SMALL],
    "MiniGrid": ["benchmark=worlds:MiniGrid", "study.tasks=[MiniGrid-Empty-5x5-v0]", "study.steps=5120", *SMALL],
}


def lcd(folder: Path, cold: bool, *words: str) -> tuple[str, float]:
    """A command in a fresh interpreter: what it printed, and its seconds."""
    env = os.environ | {"COLUMNS": "200", "PYTHONPATH": f"{ROOT / 'examples'}:{ROOT / 'tests' / 'lcd'}"}
    if cold:
        env |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": str(folder / "none")}
    began = time.perf_counter()
    command = [sys.executable, "-m", "lcd.cli", *words]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"lcd {' '.join(words)}: {done.stderr or done.stdout}")
    return done.stdout, time.perf_counter() - began


def main() -> int:
    """Measure all cases; 1 where a time was told wrongly."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", default=[*CASES], choices=[*CASES])
    worst = 1.0
    for name in parser.parse_args().cases:
        for cold in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                told, _ = lcd(Path(folder), cold, "diagnose", *CASES[name], "out=study", "--dry-run")
                found = TOLD.search(told)
                if found is None:
                    raise SystemExit(f"no time is told:\n{told}")
                expected = float(found[1]) * UNITS[found[2]]
                _, taken = lcd(Path(folder), cold, "diagnose", *CASES[name], "out=study")
            off = max(expected / taken, taken / expected)
            worst = max(worst, off)
            how = "cold" if cold else "warm"
            print(f"{name:<9} {how}  told {expected:.0f} s, taken {taken:.0f} s: off by {off:.2f}", flush=True)
    print(f"worst {worst:.2f} (limit {LIMIT})")
    return int(worst > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
