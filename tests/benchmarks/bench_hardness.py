"""Steps per second of the toys at 1, 64 and 1024 copies, and the wall time of tabular Q-learning over 100 seeds.

Run it as a script, on one core. The ratios are against what was measured for `mdp-playground` on a 2-core machine:
134,000 steps/s (discrete), 15,000 (images, all transforms) and 7,700 (continuous).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from timing import rate

from lcd.agents import agents, validate
from lcd.agents.learner import spaces_for
from lcd.envs.hardness.continuous import HardnessContinuousVectorEnv
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.pipelines.launch.launchers import keep_freed_memory

ALL_TRANSFORMS = {"view": "semantic", "image_transforms": "shift,scale,rotate,flip"}
CASES: dict[str, tuple[type[VectorEnv], dict[str, Any], float]] = {
    "vanilla": (HardnessDiscreteVectorEnv, {}, 134_000.0),
    "delay 4 and sequences of 3": (
        HardnessDiscreteVectorEnv,
        {"delay": 4, "sequence_length": 3, "reward_density": 0.05},
        134_000.0,
    ),
    "images, all transforms, 24 pixels": (HardnessDiscreteVectorEnv, ALL_TRANSFORMS, 15_000.0),
    "images, all transforms, 100 pixels": (
        HardnessDiscreteVectorEnv,
        {**ALL_TRANSFORMS, "image_size": 100, "image_radius": 0.2},
        15_000.0,
    ),
    "images, all transforms, the package's": (
        HardnessDiscreteVectorEnv,
        {**ALL_TRANSFORMS, "image_defaults": "mdp-playground"},
        15_000.0,
    ),
    "continuous": (HardnessContinuousVectorEnv, {}, 7_700.0),
}
COPIES = (1, 64, 1024)
SEEDS, STEPS = 100, 20_000


def steps_per_second(kind: type[VectorEnv], copies: int, **knobs: Any) -> float:
    """Environment steps per second of random actions."""
    env = kind(copies, **knobs)
    env.reset()
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(64)]
    return rate(lambda number: env.step(actions[number % 64]), copies)


def tabular_seconds(seeds: int = SEEDS, steps: int = STEPS) -> float:
    """Wall time of Q-learning in tables."""
    kind = agents.resolve("tabular/q_learning")
    numbers = list(range(seeds))
    env = spaces_for(kind, HardnessDiscreteVectorEnv(seeds, seed=numbers))
    started = time.perf_counter()
    kind(validate("tabular/q_learning", {}), env, numbers).learn(steps, steps, lambda step: None)
    return time.perf_counter() - started


def main() -> None:
    """Print everything, measured with the memory settings of our own runs."""
    keep_freed_memory()
    for name, (kind, knobs, reference) in CASES.items():
        for copies in COPIES:
            steps = steps_per_second(kind, copies, **knobs)
            print(f"{name:38s} {copies:5d} copies {np.round(steps, -2):14,.0f} steps/s {steps / reference:8.1f}x")
    print(f"tabular Q-learning, {SEEDS} seeds x {STEPS:,} steps: {tabular_seconds():.1f} s")


if __name__ == "__main__":
    main()
