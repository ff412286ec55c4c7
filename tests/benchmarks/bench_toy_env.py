"""Steps per second of the toy MDP, beside the package `mdp-playground` where that is installed.

Run it as a script, on one core. The ratio is against the peer, measured in turn with ours by the process's own time;
without the peer, against the 134,000 steps/s (15,000 with images and all transforms) measured on a 2-core machine.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import gymnasium
import numpy as np
from timing import best_rates

from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.pipelines.launch.launchers import keep_freed_memory

PEER_REFERENCE = {"state": 134_000.0, "images": 15_000.0}
Stepper = tuple[Callable[[int], object], int]
ALL_TRANSFORMS = "shift,scale,rotate,flip"

STATE_CASES: dict[str, dict[str, Any]] = {
    "state, vanilla": {},
    "state, no terminal states": {"terminal_state_density": 0.0},
    "state, delay 4 and sequences of 3": {"delay": 4, "sequence_length": 3, "reward_density": 0.05},
    "state, transition and reward noise": {"transition_noise": 0.1, "reward_noise": 0.1},
}
IMAGE_CASES: dict[str, dict[str, Any]] = {
    "the package's images": {
        "view": "figure_ground",
        "image_transforms": ALL_TRANSFORMS,
        "image_defaults": "mdp-playground",
    },
    "100 pixels, semantic, all transforms": {
        "view": "semantic",
        "image_transforms": ALL_TRANSFORMS,
        "image_size": 100,
        "image_radius": 0.2,
    },
    "figure_ground": {"view": "figure_ground"},
    "semantic, all transforms": {"view": "semantic", "image_transforms": ALL_TRANSFORMS},
    "pixels, texture": {"view": "pixels", "texture": 0.5},
    "pixels, texture, 3 distractors, all transforms": {
        "view": "pixels",
        "texture": 0.5,
        "distractors": 3,
        "image_transforms": ALL_TRANSFORMS,
    },
}


def ours(copies: int, **knobs: Any) -> Stepper:
    """Random actions of many copies."""
    env = HardnessDiscreteVectorEnv(copies, **knobs)
    env.reset()
    actions = np.random.default_rng(0).integers(env.knobs.action_space_size, size=(64, copies))
    return lambda number: env.step(actions[number % 64]), copies


def alone(**knobs: Any) -> Stepper:
    """Random actions of the one copy that `gymnasium.make` gives."""
    env = gymnasium.make("lcd/hardness-discrete-v0", **knobs)
    env.reset()
    actions = np.random.default_rng(0).integers(8, size=64).tolist()

    def step(number: int) -> None:
        _, _, terminated, truncated, _ = env.step(actions[number % 64])
        if terminated or truncated:
            env.reset()

    return step, 1


def peer(images: bool) -> Stepper | None:
    """Random actions in `mdp-playground` with as many states and actions, or None where it is missing."""
    try:
        from mdp_playground.envs import RLToyEnv
    except ImportError:
        return None
    config = {"state_space_type": "discrete", "state_space_size": 8, "action_space_size": 8, "seed": 0}
    config |= {"reward_density": 0.25, "terminal_state_density": 0.25, "delay": 0, "sequence_length": 1}
    if images:
        config |= {"image_representations": True, "image_transforms": ALL_TRANSFORMS}
    with redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = RLToyEnv(**config)
        env.reset()
    actions = np.random.default_rng(0).integers(8, size=64).tolist()

    def step(number: int) -> None:
        if env.step(actions[number % 64])[2]:
            env.reset()

    return step, 1


def table(cases: dict[str, dict[str, Any]], kind: str, copies: tuple[int, ...]) -> None:
    """Print the rates of these cases at these numbers of copies, and their ratios to the peer."""
    theirs = peer(images=kind == "images")
    steppers = {} if theirs is None else {"mdp-playground": theirs}
    for name, knobs in cases.items():
        steppers[f"{name:48s} gymnasium.make"] = alone(**knobs)
        steppers |= {f"{name:48s} {number:7d} copies": ours(number, **knobs) for number in copies}
    rates = best_rates(steppers)
    reference = rates.pop("mdp-playground", PEER_REFERENCE[kind])
    source = "not installed; reference figure" if theirs is None else "measured in this run"
    print(f"\n{kind}: mdp-playground {reference:,.0f} steps/s ({source})")
    for name, steps in rates.items():
        print(f"  {name} {steps:14,.0f} steps/s {steps / reference:8.1f}x")


def main() -> None:
    """Print everything, measured with the memory settings of our own runs."""
    keep_freed_memory()
    table(STATE_CASES, "state", (1, 64, 1024))
    table(IMAGE_CASES, "images", (64, 1024))


if __name__ == "__main__":
    main()
