"""Does our PPO learn what CleanRL's learns? Training returns on starpilot (easy, the same 200 levels) at equal steps.

Both train IMPALA with the same hyper-parameters and PyTorch's initialisation, one process a seed, and write down what
every finished training episode returned. Compared is the mean return of the episodes that finished in the last quarter
of the steps: the difference of the means over seeds, with Welch's interval.

    python tests/benchmarks/compare_learning.py --cleanrl DIR --cleanrl-python PY --folder OUT [--seeds 3] [--steps N]

An hour and more on two cores. Runs that `OUT` has already are kept; `make bench ONLY=ppo` says how to get the peer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from scipy import stats

COPIES, ROLLOUT = 16, 256
HERE = Path(__file__).parent
TUNED = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000"}


def train_ours(seed: int, steps: int, file: Path, precision: str) -> None:
    """Train one seed of our PPO and write (step, return) of every finished episode."""
    from lightning.pytorch import Callback
    from ppo_cases import trainer

    from lcd.agents.ppo import PPO, PPOConfig
    from lcd.agents.rollout import Rollouts, loader
    from lcd.envs.benchmarks import get_benchmark
    from lcd.envs.population import make_population
    from lcd.frontends import make
    from lcd.pipelines.launch.launchers import keep_freed_memory

    keep_freed_memory()
    config = PPOConfig(
        copies=COPIES,
        rollout=ROLLOUT,
        epochs=3,
        minibatches=8,
        learning_rate=5e-4,
        gamma=0.999,
        encoder="impala",
        width=256,
        initialisation="torch",
        precision=precision,
    )
    env = make_population(
        get_benchmark("procgen-easy"), "procgen/starpilot", seeds=[seed], copies=COPIES, view="pixels", split="train"
    )
    agent = PPO(config, (3, 64, 64), int(env.single_action_space.n), [seed], make("identity"))
    total = steps // (COPIES * ROLLOUT)
    rollouts = Rollouts(env, [seed], agent, ROLLOUT, total, config.gamma, normalise=True)
    episodes: list[tuple[int, float, int]] = []

    class Log(Callback):
        def on_train_batch_end(self, *_: object) -> None:
            (found,) = rollouts.episodes.pop()
            if found:
                episodes.append((rollouts.step, found["return_mean"], int(found["episodes"])))
                print(*episodes[-1], flush=True)

    trainer(precision, Log()).fit(agent, loader(rollouts))
    file.write_text(json.dumps(episodes))


def train_theirs(args: argparse.Namespace, seed: int, file: Path) -> None:
    """Train one seed of CleanRL's script on the same levels."""
    command = [args.cleanrl_python, "-W", "ignore", HERE / "cleanrl.py", Path(args.cleanrl) / "ppo_procgen.py", file]
    own = ["--seed", seed, "--no-cuda", "--num-envs", COPIES, "--num-steps", ROLLOUT, "--total-timesteps", args.steps]
    call = [str(part) for part in (*command, "--levels", 200, "--", *own)]
    subprocess.run(call, check=True, cwd=file.parent, env=os.environ | TUNED, stdout=subprocess.DEVNULL)


def ours_in(file: Path, first: int, last: int) -> tuple[float, int]:
    """Mean return and number of our episodes that finished in (first, last]."""
    rows = np.array([row for row in json.loads(file.read_text()) if first < row[0] <= last])
    return float(np.average(rows[:, 1], weights=rows[:, 2])), int(rows[:, 2].sum())


def theirs_in(file: Path, first: int, last: int) -> tuple[float, int]:
    """The same of CleanRL's."""
    returns = [found for step, found in json.loads(file.read_text())["episodes"] if first < step <= last]
    return float(np.mean(returns)), len(returns)


def welch(ours: list[float], theirs: list[float]) -> tuple[float, float, float]:
    """The difference of two means and its 95 % interval."""
    result = stats.ttest_ind(ours, theirs, equal_var=False)
    interval = result.confidence_interval(0.95)
    return float(np.mean(ours) - np.mean(theirs)), float(interval.low), float(interval.high)


def ours_file(folder: Path, seed: int, precision: str) -> Path:
    """Where one seed of ours is kept."""
    return folder / (f"ours-{seed}.json" if precision == "32-true" else f"ours-{precision}-{seed}.json")


def report(folder: Path, seeds: list[int], steps: int, precision: str) -> None:
    """Print the curves by quarters of the steps, and the difference at the end."""
    for first in range(0, steps, steps // 4):
        span = (first, first + steps // 4)
        ours = [ours_in(ours_file(folder, seed, precision), *span)[0] for seed in seeds]
        theirs = [theirs_in(folder / f"peer-{seed}.json", *span)[0] for seed in seeds]
        shown = "  ".join(f"{x:5.2f}" for x in ours), "  ".join(f"{x:5.2f}" for x in theirs)
        print(f"steps {span[0]:>7,}-{span[1]:>7,}   ours {shown[0]}   CleanRL {shown[1]}")
    difference, low, high = welch(ours, theirs)
    print(f"ours - CleanRL in the last quarter: {difference:+.2f} (95 %: {low:+.2f} to {high:+.2f})")


def main() -> None:
    """Train what is missing, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cleanrl", help="folder with CleanRL's ppo_procgen.py")
    parser.add_argument("--cleanrl-python", help="an interpreter that runs it")
    parser.add_argument("--folder", type=Path, required=True, help="where runs are kept")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=65_536)
    parser.add_argument("--precision", default="32-true", help="of ours: bf16-mixed, to see what it does to learning")
    parser.add_argument("--only", type=int, help="train only this seed of ours, in this process")
    args = parser.parse_args()
    args.folder = args.folder.resolve()
    args.folder.mkdir(parents=True, exist_ok=True)
    if args.only is not None:
        train_ours(args.only, args.steps, ours_file(args.folder, args.only, args.precision), args.precision)
        return
    seeds = list(range(1, args.seeds + 1))
    for seed in seeds:
        if not (args.folder / f"peer-{seed}.json").exists():
            train_theirs(args, seed, args.folder / f"peer-{seed}.json")
        if not ours_file(args.folder, seed, args.precision).exists():
            own = ["--folder", args.folder, "--steps", args.steps, "--only", seed, "--precision", args.precision]
            subprocess.run([sys.executable, __file__, *map(str, own)], check=True)
    report(args.folder, seeds, args.steps, args.precision)


if __name__ == "__main__":
    main()
