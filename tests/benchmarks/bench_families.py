"""Steps per second of families: all points together, beside Gymnasium's vector environments of as many copies.

Run it as a script, on one core (MuJoCo's robots also on two threads). The target is 50 times the speed of Gymnasium's
copies that are stepped one after the other; its own natively vectorised cartpole has one context for all copies. What
is compared is measured in turn, several times, and the medians are told.
"""

from __future__ import annotations

import os
from typing import Any

import gymnasium
import numpy as np
from timing import rate

from lcd.envs.families.benchmark import FAMILIES
from lcd.pipelines.launch.launchers import keep_freed_memory

COPIES = 8
ROUNDS = 3
ROBOTS = 64
CLASSIC = {
    "families/cartpole": "CartPole-v1",
    "families/pendulum": "Pendulum-v1",
    "families/mountain-car": "MountainCarContinuous-v0",
}
MUJOCO = {"families/half-cheetah": "HalfCheetah-v5", "families/swimmer": "Swimmer-v5"}


def speeds(*envs: Any) -> list[float]:
    """Environment steps per second of random actions in each."""
    found = [[_speed(env) for env in envs] for _ in range(ROUNDS)]
    for env in envs:
        env.close()
    return [float(median) for median in np.median(found, axis=0)]


def _speed(env: Any) -> float:
    env.action_space.seed(0)
    env.reset()
    actions = [env.action_space.sample() for _ in range(16)]
    return rate(lambda number: env.step(actions[number % 16]), env.num_envs)


def all_points(task: str) -> Any:
    """Every point of a task's family, several copies each."""
    family = FAMILIES.family(task)
    assert family is not None
    return FAMILIES.make_points(task, points=family.points, seeds=[0], copies=COPIES, view="state", split="train")


def classic() -> None:
    """Print the rates of classic control."""
    for task, theirs in CLASSIC.items():
        env = all_points(task)
        kinds = ["sync"]
        if gymnasium.spec(theirs).vector_entry_point is not None:
            kinds.append("vector_entry_point")
        peers = [gymnasium.make_vec(theirs, num_envs=env.num_envs, vectorization_mode=kind) for kind in kinds]
        ours, *others = speeds(env, *peers)
        print(f"{task}: {env.num_envs} copies, {ours:,.0f} steps/s")
        for kind, other in zip(kinds, others, strict=True):
            print(f"  {theirs}, {kind}: {other:,.0f} steps/s, ours {ours / other:.2f}x")


def robots() -> None:
    """Print the rates of MuJoCo's robots, by number of threads."""
    for task, theirs in MUJOCO.items():
        ours = []
        for threads in (1, 2):
            os.environ["OMP_NUM_THREADS"] = str(threads)
            ours.append(FAMILIES.make_vec(task, view="state", split="train", num_envs=ROBOTS, seed=0))
        peers = [
            gymnasium.make_vec(theirs, num_envs=ROBOTS, vectorization_mode="sync"),
            gymnasium.make_vec(theirs, num_envs=2, vectorization_mode="async"),
        ]
        one, two, sync, processes = speeds(*ours, *peers)
        print(f"{task}: {ROBOTS} copies, {one:,.0f} steps/s, with two threads {two:,.0f}")
        print(f"  {theirs}, sync: {sync:,.0f} steps/s, ours {one / sync:.2f}x and {two / sync:.2f}x")
        print(f"  {theirs}, a copy in each of two processes: {processes:,.0f} steps/s")


def main() -> None:
    """Print everything, measured with the memory settings of our own runs."""
    keep_freed_memory()
    print(f"numpy {np.__version__}, gymnasium {gymnasium.__version__}")
    classic()
    robots()


if __name__ == "__main__":
    main()
