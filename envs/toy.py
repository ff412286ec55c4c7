"""The benchmark `toy`: one MDP family, seen and rewarded in easy and in hard ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gymnasium.vector import VectorEnv

from lcd.envs.benchmarks import NativeBenchmark
from lcd.envs.families.family import Family, grid_family
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.hardness.mdp import HardnessKnobs, build_mdp
from lcd.envs.hardness.solve import exact_range
from lcd.envs.hardness.tabular import as_tabular
from lcd.envs.native import IMAGE_VIEWS
from lcd.envs.tabular.mdp import TabularMDP

# Transition noise and a single rewarding state make looking pay: without them an agent that always takes the same
# action soon sits where the reward is.
COMMON: dict[str, Any] = {
    "state_space_size": 6,
    "action_space_size": 6,
    "reward_density": 0.17,
    "transition_noise": 0.3,
    "terminal_state_density": 0.0,
    "horizon": 20,
    "image_size": 20,
}

SIGHTS: dict[str, dict[str, Any]] = {
    "easy-sight": {},
    "jittered-sight": {"image_transforms": "shift"},
    "cluttered-sight": {"texture": 0.5, "contrast": 0.6, "distractors": 2, "image_transforms": "scale"},
    "hard-sight": {"texture": 1.0, "contrast": 0.3, "distractors": 3, "image_transforms": "shift,scale"},
}

REWARDS: dict[str, dict[str, Any]] = {
    "easy-reward": {},
    "delayed-reward": {"delay": 2},
    "hard-reward": {"reward_every_n_steps": 5},
}

ABOUT: dict[str, str] = {
    "easy-sight": "states drawn plainly",
    "jittered-sight": "states drawn out of place",
    "cluttered-sight": "states of many sizes among texture and two distractors",
    "hard-sight": "faint states of any size and place among texture and three distractors",
    "easy-reward": "paid on arrival",
    "delayed-reward": "paid two steps after arrival",
    "hard-reward": "paid in every fifth step only",
}
"""What the halves of tasks' names mean."""

TASKS = (
    ("easy-sight", "easy-reward"),
    ("easy-sight", "delayed-reward"),
    ("easy-sight", "hard-reward"),
    ("jittered-sight", "easy-reward"),
    ("cluttered-sight", "easy-reward"),
    ("hard-sight", "easy-reward"),
    ("hard-sight", "hard-reward"),
)

KNOBS: dict[str, dict[str, Any]] = {
    f"toy/{sight}-{reward}": {**COMMON, **SIGHTS[sight], **REWARDS[reward]} for sight, reward in TASKS
}


FEATURES: dict[str, tuple[float, ...]] = {"delay": (0, 1, 2, 4), "transition_noise": (0.0, 0.15, 0.3, 0.45)}
"""Knobs that every task is a family over: how late rewards come, and how often an action leads elsewhere."""


class ToyBenchmark(NativeBenchmark):
    """Every seed is another MDP of the task's kind; a task's name says how it looks and how it rewards."""

    name = "toy"
    tasks: Sequence[str] = tuple(KNOBS)
    views: Sequence[str] = IMAGE_VIEWS
    about: Mapping[str, str] = {f"toy/{sight}-{reward}": f"{ABOUT[sight]}, {ABOUT[reward]}" for sight, reward in TASKS}

    def reward_range(self, task: str, seed: int, **knobs: Any) -> tuple[float, float]:
        """The exact mean returns of a random and of an optimal agent."""
        return exact_range(HardnessKnobs.from_dict({**KNOBS[task], **knobs}), seed)

    def make_population(
        self, task: str, *, seeds: Sequence[int], copies: int, view: str, split: str, **knobs: Any
    ) -> VectorEnv:
        """Copies of a task for several seeds, in one environment."""
        return HardnessDiscreteVectorEnv(
            len(seeds) * copies, view=view, split=split, seed=seeds, **{**KNOBS[task], **knobs}
        )

    def family(self, task: str) -> Family:
        """A task under other delays and noise; a seed has the same states and rewards at every point."""
        return grid_family(FEATURES, {name: KNOBS[task].get(name, 0) for name in FEATURES})

    def tabular(self, task: str, seed: int, start: int | None = None, **knobs: Any) -> TabularMDP:
        """A seed's toy as a tabular MDP that begins in the state `start`, where the knobs make it deterministic."""
        return as_tabular(build_mdp(HardnessKnobs.from_dict({**KNOBS[task], **knobs}), seed), task, start)


TOY = ToyBenchmark()
"""One MDP family, seen and rewarded in easy and in hard ways; a laptop diagnoses it."""
