"""Steps per second of the CT-graph, beside the authors' own environment where that is installed (`gym_CTgraph`).

Run it as a script, on one core. The ratio is against the peer in the same run; without the peer, against the
120,000 steps/s (19,000 with images) reported for one copy of it on a 2-core machine. `--learn` also trains PPO with
and without a memory on three of the paper's graphs and prints the interquartile mean of held-out returns.
"""

from __future__ import annotations

import argparse
import io
import os
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from timing import rate

from lcd.curves.table import read_curves
from lcd.envs.ctgraph.benchmark import KNOBS
from lcd.envs.ctgraph.graph import CTGraphVectorEnv
from lcd.envs.ctgraph.scripted import policy_actions
from lcd.envs.single import SingleCopy
from lcd.pipelines.launch.launchers import Call, keep_freed_memory, launch
from lcd.pipelines.study.configs import Device
from lcd.statistics.intervals import iqm

PEER_REFERENCE = {"one-hot": 120_000.0, "images": 19_000.0}
GRAPH = {"graph_shape": {"b": 2, "d": 2, "p": 0.0}}
CASES: dict[str, dict[str, Any]] = {
    "one-hot": {"view": "state"},
    "images": {"view": "pixels", "image_dataset": {"noise_on_read": 0.05, "rotation_on_read": 10}},
}
OTHERS: dict[str, dict[str, Any]] = {
    "figure_ground": {"view": "figure_ground"},
    "semantic": {"view": "semantic"},
    "one-hot, p = 0.9, 500 wait ids": {"view": "state", **KNOBS["ctgraph/wait-0.9-ids-500"]},
    "one-hot, d = 10, b = 3": {"view": "state", "graph_shape": {"b": 3, "d": 10}},
}
SHOWN = ("ctgraph/ct-su-b1", "ctgraph/ct-fo-b1", "ctgraph/ct-co-b1")


def walk(shape: dict[str, Any]) -> np.ndarray:
    """Actions of the navigation policy, so that episodes have their full length."""
    env = CTGraphVectorEnv(1, view="state", **{**GRAPH, "graph_shape": shape})
    rng, actions = np.random.default_rng(0), []
    env.reset()
    for _ in range(6 * 64):
        actions.append(policy_actions(env, "navigation", rng)[0])
        env.step(actions[-1:])
    return np.array(actions)


def ours(copies: int, **knobs: Any) -> float:
    """Environment steps per second of copies that navigate."""
    knobs = {**GRAPH, **knobs}
    env = CTGraphVectorEnv(copies, **knobs)
    env.reset()
    actions = np.repeat(walk(knobs["graph_shape"])[:, None], copies, axis=1)
    return rate(lambda number: env.step(actions[number % len(actions)]), copies)


def single(**knobs: Any) -> float:
    """Environment steps per second of the single-copy face that `gymnasium.make` gives."""
    from lcd.envs.ctgraph.graph import CTGraphEnv

    env: SingleCopy = CTGraphEnv(**{**GRAPH, **knobs})
    env.reset()
    actions = walk(GRAPH["graph_shape"])

    def step(number: int) -> None:
        if env.step(actions[number % len(actions)])[2]:
            env.reset()

    return rate(step, 1)


def peer(images: bool) -> float | None:
    """Steps per second of the authors' environment with the same graph, or None where it is missing."""
    try:
        from gym_CTgraph.CTgraph_env import CTgraphEnv
        from gym_CTgraph.CTgraph_images import CTgraph_images
    except ImportError:
        return None
    conf = {
        "general_seed": 3,
        "graph_shape": GRAPH["graph_shape"],
        "reward": {"high_r": 1.0, "fail_r": 0.0, "std_r": 0.0, "reward_distribution": "needle_in_haystack"}
        | {"min_static_reward_episodes": -1, "max_static_reward_episodes": -1},
        "observations": {"MDP_D": False, "MDP_W": False, "W_IDs": [2, 2], "D_IDs": [3, 3], "graph_ends": [4, 4]},
        "image_dataset": {"seed": 2, "1D": not images, "nr_of_images": 5, "noise_on_read": 12, "rotation_on_read": 10},
    }
    here = Path.cwd()
    # It writes files where it is run.
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            env = CTgraphEnv(conf, CTgraph_images(conf))
            env.reset()
        finally:
            os.chdir(here)
    actions = walk(GRAPH["graph_shape"]).tolist()

    def step(number: int) -> None:
        if env.step(actions[number % len(actions)])[2]:
            env.reset()

    return rate(step, 1)


def speed() -> None:
    """Print the rates of all cases and their ratios to the peer."""
    for name, knobs in CASES.items():
        measured = peer(images=name == "images")
        reference = measured or PEER_REFERENCE[name]
        source = "measured in this run" if measured else "not installed; reference figure"
        print(f"\n{name}: the authors' environment, one copy: {reference:,.0f} steps/s ({source})")
        steps = single(**knobs)
        print(f"  {name + ', gymnasium.make':32s}     1 copy   {steps:14,.0f} steps/s {steps / reference:8.1f}x")
        for copies in (1, 64, 1024):
            steps = ours(copies, **knobs)
            print(f"  {name:32s} {copies:5d} copies {steps:14,.0f} steps/s {steps / reference:8.1f}x")
    print()
    for name, knobs in OTHERS.items():
        for copies in (64, 1024):
            print(f"  {name:32s} {copies:5d} copies {ours(copies, **knobs):14,.0f} steps/s")


def run_config(task: str, agent: str, seeds: int, steps: int) -> dict[str, Any]:
    """A run on the one-hot observations."""
    params = {"copies": 16, "rollout": 32, "gamma": 0.99, "gae_lambda": 0.95, "learning_rate": 0.002}
    return {
        "kind": "train",
        "benchmark": "ctgraph",
        "task": task,
        "knobs": {"goal": [1, 2]},
        "view": "state",
        "frontend": {"name": "identity"},
        "reward_p": 1.0,
        "shaping": "none",
        "agent": {"name": agent, **params},
        "seeds": list(range(seeds)),
        "steps": steps,
        "evaluation": {"every": max(steps // 8, 1), "copies": 64, "episodes": 4},
    }


def learn(seeds: int, steps: int) -> None:
    """Train both agents on graphs whose goal is <1, 2>: where decisions look the same, 1/4 is most without memory."""
    print(f"\nInterquartile mean over {seeds} seeds of held-out returns, goal <1, 2>")
    with tempfile.TemporaryDirectory() as folder:
        for task in SHOWN:
            for agent in ("recurrent_ppo", "ppo"):
                run_dir = Path(folder) / f"{task.replace('/', '-')}-{agent}"
                run_dir.mkdir()
                config = run_config(task, agent, seeds, steps)
                call = Call((config, str(run_dir), {"name": "none"}, Device("cpu")), run_dir / "log.txt")
                (outcome,) = launch("local", "lcd.pipelines.jobs.train:train_run", [call])
                if outcome.error:
                    raise RuntimeError(outcome.error)
                curve = read_curves(run_dir / "curve.csv")
                table = curve[curve.split == "eval"].pivot(index="step", columns="seed", values="return_mean")
                shown = ", ".join(f"{step:,.0f}: {iqm(row.to_numpy()):.2f}" for step, row in table.iterrows())
                last = table.iloc[-1]
                error = last.std() / np.sqrt(seeds)
                print(f"  {task:18s} {agent:14s} {shown} (last mean {last.mean():.3f} ± {error:.3f})", flush=True)


def main() -> None:
    """Print everything, measured with the memory settings of our own runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learn", action="store_true", help="also train both agents (some minutes)")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=65_536)
    arguments, _ = parser.parse_known_args()
    keep_freed_memory()
    speed()
    if arguments.learn:
        learn(arguments.seeds, arguments.steps)


if __name__ == "__main__":
    main()
