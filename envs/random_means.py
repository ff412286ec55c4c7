"""A random agent's mean returns: what benchmarks ship as R_min where nobody knows it exactly.

    python -m lcd.envs.random_means mujoco 200 [TASK ...]     # a line a task: its mean, standard error, episodes

Under the view `state` where a task has it, since that is the quickest, and all views are one task.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from lcd.envs.benchmarks import Benchmark, get_benchmark, make_copies
from lcd.envs.protocols import views_of

COPIES = 10
SEED = 0


def random_returns(benchmark: Benchmark, task: str, episodes: int) -> np.ndarray:
    """The returns of an agent that draws its actions, over as many episodes of each of ten copies."""
    view = views_of(benchmark, task)[-1]
    env = make_copies(benchmark, task, view=view, split="eval", num_envs=COPIES, seed=SEED)
    env.action_space.seed(SEED)
    env.reset()
    # As many of each copy: whoever counts the first that end counts too many short ones.
    wanted = math.ceil(episodes / COPIES)
    found: list[list[float]] = [[] for _ in range(COPIES)]
    running = np.zeros(COPIES)
    while min(map(len, found)) < wanted:
        _, rewards, terminated, truncated, _ = env.step(env.action_space.sample())
        running += rewards
        for copy in np.flatnonzero(terminated | truncated):
            found[copy].append(running[copy])
            running[copy] = 0
    env.close()
    return np.array([returns[:wanted] for returns in found])


def main() -> None:
    """Print a line a task."""
    name, episodes, *tasks = sys.argv[1:]
    benchmark = get_benchmark(name)
    print("task,r_min,standard_error,episodes")
    for task in tasks or benchmark.tasks:
        found = random_returns(benchmark, task, int(episodes)).ravel()
        error = found.std(ddof=1) / math.sqrt(found.size)
        print(f"{task},{found.mean():.4g},{error:.2g},{found.size}", flush=True)


if __name__ == "__main__":
    main()
