"""What `train.csv` costs of training: iterations of one run with and without it in turn, in seconds of a core.

`make bench ONLY=scalars`. Without it, agents estimate nothing that is only told, and no rows are made.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "pipelines"))

import torch
from small_runs import toy_run

from lcd.agents import ppo, recurrent
from lcd.agents.rollout import Rollouts
from lcd.pipelines.jobs import record
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.study.configs import Device

LIMIT = 0.01
CASES = {
    "ppo, 16 x 16, 2 seeds": {"name": "ppo", "copies": 16, "rollout": 16, "minibatches": 4},
    "ppo, 16 x 64, 2 seeds": {"name": "ppo", "copies": 16, "rollout": 64, "minibatches": 4},
}
telling = True


def where_told(module: object, name: str, otherwise: object) -> None:
    """Replace a function by one that does its work in every other iteration."""
    function = getattr(module, name)
    setattr(module, name, lambda *arguments: function(*arguments) if telling else otherwise)


def taken(agent: dict, iterations: int) -> dict[bool, list[float]]:
    """Seconds of a core that iterations take with and without telling."""
    global telling
    found: dict[bool, list[float]] = defaultdict(list)
    collect, last = Rollouts.collect, None

    def collecting(self):
        nonlocal last
        global telling
        if last is not None and self.iteration > 4:
            found[telling].append(time.process_time() - last)
        telling, last = not telling, time.process_time()
        return collect(self)

    Rollouts.collect = collecting
    steps = iterations * agent["copies"] * agent["rollout"]
    config = toy_run(agent, steps=steps, evaluation={"every": steps, "copies": 1, "episodes": 1})
    try:
        with tempfile.TemporaryDirectory() as folder:
            train_run(config, folder, {"name": "none"}, Device("cpu"))
    finally:
        Rollouts.collect = collect
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for module in (ppo, recurrent):
        for name, otherwise in (("how_far", {}), ("explained_variance", None)):
            if hasattr(module, name):
                where_told(module, name, otherwise)
    where_told(record.Recorder, "_tell", None)
    worst = 0.0
    for name, agent in CASES.items():
        found = taken(agent, options.iterations)
        on, off = (statistics.median(found[told]) for told in (True, False))
        worst = max(worst, on / off - 1)
        more = f"{100 * (on / off - 1):+.1f} %"
        print(f"{name}: {1000 * on:.2f} ms of a core an iteration with train.csv, {1000 * off:.2f} without: {more}")
    sys.exit(worst > LIMIT)


if __name__ == "__main__":
    main()
