"""Points of a family as one population: steps/s (of PPO, on cartpoles, unless said), beside Stable-Baselines3's.

    make bench ONLY=points                                              # a minute on an idle core
    make bench ONLY=points ARGS="--points 576 --steps 50000"            # all of it: ten minutes on two idle cores
    make bench ONLY=points ARGS="--agent sac --task families/pendulum --steps 2048"
    make bench ONLY=points ARGS="--returns 10 --seeds 3"                # returns beside theirs: half an hour of a core
    make bench ONLY=points ARGS="--returns 10 --agent ppo_sb3 --seeds 10"  # of our PPO with their settings

Members are shared out to as many processes as there are cores, as `study.points_per_run` does. Theirs trains one of
them after the other; what it would take for all is its pace times their number. Processor time is told, too: on a
machine that is not idle it is what counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from lcd.statistics.hypotheses import adjust, t_test

TASK, GOAL_S, WHOLE = "families/cartpole", 600.0, 576 * 3 * 50_000
THEIRS = "sb3/ppo"
THEIR_SETTINGS = {"sb3/sac": {"learning_starts": 256}, "sb3/td3": {"learning_starts": 256}}


def asked(agent: str, points: Any, seeds: int, steps: int, every: int, copies: int, task: str = TASK) -> dict[str, Any]:
    """The config of the run of all these points, as a study makes it."""
    from lcd.config.compose import compose
    from lcd.pipelines.kinds.kind import trainings
    from lcd.pipelines.study import runs

    words = [f"study.tasks=[{task}]", "study.reward_p=[1.0]", f"study.seeds={seeds}", f"study.steps={steps}"]
    words += [f"study.evaluation.every={every}", f"study.evaluation.copies={copies}", f"agent={agent}"]
    cfg = compose("diagnose", ["benchmark=families", *words, "study.points=all", "study.points_per_run=100000"])
    (config,) = trainings(runs.expand(cfg))
    if agent.startswith("sb3/"):
        config["agent"] = {"name": agent, "copies": 1, "params": THEIR_SETTINGS.get(agent, {})}
    chosen = [name for name in config["points"] if name][: points if isinstance(points, int) else None]
    if not isinstance(points, int):
        chosen = [name for place, name in enumerate(chosen) if place in points]
    return {**config, "points": {name: config["points"][name] for name in chosen}}


def trained(configs: list[dict[str, Any]]) -> tuple[float, float, pd.DataFrame]:
    """Train runs side by side, a process each; seconds, seconds of processors, and the curves."""
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / str(number) for number in range(len(configs))]
        started, processes = time.perf_counter(), []
        for config, folder in zip(configs, folders, strict=True):
            folder.mkdir()
            (folder / "asked.json").write_text(json.dumps(config))
            command = [sys.executable, "-W", "ignore", __file__, "--train", str(folder)]
            processes.append(subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}))
        codes = [process.wait() for process in processes]
        wall = time.perf_counter() - started
        if any(codes):
            raise SystemExit("a training failed")
        own = sum(json.loads((folder / "cpu.json").read_text()) for folder in folders)
        curves = [pd.read_csv(folder / "curve.csv", keep_default_na=False) for folder in folders]
    return wall, own, pd.concat(curves)


def train(folder: Path) -> None:
    """What a process of `trained` does."""
    import torch

    from lcd.pipelines.jobs.train import train_run
    from lcd.pipelines.study.configs import Device

    torch.set_num_threads(1)
    began = time.process_time()
    train_run(json.loads((folder / "asked.json").read_text()), folder, {"name": "none"}, Device("cpu"))
    (folder / "cpu.json").write_text(json.dumps(time.process_time() - began))


def parts(config: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """A run's points shared out to several runs."""
    names = np.array_split(np.array(list(config["points"]), object), number)
    return [{**config, "points": {name: config["points"][name] for name in some}} for some in names if len(some)]


def measure_speed(agent: str, task: str, points: int, seeds: int, steps: int, processes: int) -> None:
    """Print ours, theirs, and of cartpole what both make of 576 points x 3 seeds x 50,000 steps."""
    config = asked(agent, points, seeds, steps, max(1, steps // 5), 8, task)
    wall, own, curves = trained(parts(config, processes))
    total = points * seeds * steps
    print(f"ours    {total / wall:>9,.0f} steps/s with {processes} processes, {total / own:,.0f} a second of a core")
    short, theirs = 4096 if agent == "ppo" else 1024, f"sb3/{agent}"
    their_wall, their_own, _ = trained([asked(theirs, 1, 1, short, short, 1, task)])
    print(f"theirs  {short / their_wall:>9,.0f} steps/s, {short / their_own:,.0f} a second of a core ({theirs})")
    print(f"ratio   {total / own / (short / their_own):>9,.0f} a second of a core; imports and evaluations included")
    if task != TASK:
        return
    ours_s, theirs_s = WHOLE / (total / wall), WHOLE / (short / their_own)
    told = f"ours {ours_s / 60:.1f} min (goal: {GOAL_S / 60:.0f}), theirs {theirs_s / 3600:.0f} h of a core"
    print(f"576 x 3 x 50,000 steps: {told}")
    last = curves[(curves.split == "eval") & (curves.step == curves.step.max())]
    print(f"solved (475 of 500) {(last.return_mean >= 475).mean():.0%} of members; load {os.getloadavg()[0]:.1f}")


def returns_at_the_end(agent: str, count: int, seeds: int, steps: int) -> pd.Series:
    """The last returns of an agent's seeds, by points drawn with a fixed seed."""
    places = set(np.random.default_rng(0).choice(575, count, replace=False).tolist())
    _, own, curves = trained([asked(agent, places, seeds, steps, steps, 20)])
    print(f"{agent}: {own:,.0f} s of a core", flush=True)
    last = curves[(curves.split == "eval") & (curves.step >= steps)]
    return last.groupby("context", sort=False).return_mean.agg(list)


def compare_returns(agent: str, count: int, seeds: int, their_seeds: int, steps: int, kept: Path | None) -> None:
    """Print our returns at the end beside theirs: the interval of their mean, and whether the two means differ.

    The means are compared by Welch's test; of several points, Holm's correction says on how many they differ.
    """
    theirs = pd.read_json(kept, typ="series") if kept and kept.exists() else None
    if theirs is None:
        theirs = returns_at_the_end(THEIRS, count, their_seeds, steps)
        if kept:
            theirs.to_json(kept)
    ours = returns_at_the_end(agent, count, seeds, steps)
    tests = [t_test(ours[name], theirs[name], alternative="two-sided").p for name in ours.index]
    within, corrected = 0, adjust(tests)
    for name, p, of_several in zip(ours.index, tests, corrected, strict=True):
        low, high = student(theirs[name])
        mean = float(np.mean(ours[name]))
        inside = low <= mean <= high
        within += inside
        print(f"{name:<70} ours {mean:>5.0f} ± {np.std(ours[name], ddof=1):>3.0f}  "
              f"theirs {np.mean(theirs[name]):>5.0f} "
              f"[{max(0, low):.0f}, {min(500, high):.0f}]{'' if inside else ' outside'}  "
              f"p {p:.2f}, of several {of_several:.2f}")  # fmt: skip
    print(f"{within} of {len(ours)} within their interval; {(corrected < 0.05).sum()} of {len(ours)} differ at 5 %")


def student(values: list[float]) -> tuple[float, float]:
    """The 95 % interval of a mean."""
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1)) / len(values) ** 0.5
    reach = float(stats.t.ppf(0.975, len(values) - 1)) * error
    # What hardly varies is known to a step, not better.
    return mean - max(reach, 0.5), mean + max(reach, 0.5)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", default="ppo")
    parser.add_argument("--task", default=TASK)
    parser.add_argument("--points", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=None)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--returns", type=int, default=0)
    parser.add_argument("--their-seeds", type=int, default=3)
    parser.add_argument("--kept", type=Path, help="a file with their returns, which is made where it is not there")
    parser.add_argument("--train", type=Path)
    args = parser.parse_args()
    if args.train:
        train(args.train)
    elif args.returns:
        compare_returns(args.agent, args.returns, args.seeds, args.their_seeds, args.steps or 50_000, args.kept)
    else:
        measure_speed(args.agent, args.task, args.points, args.seeds, args.steps or 8192, args.processes)


if __name__ == "__main__":
    main()
