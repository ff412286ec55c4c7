"""A benchmark as a user would write one: any Gymnasium id becomes a task by a few lines and `module:object`."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv


class MiniGrid:
    """MiniGrid's empty room; an observation is what the agent sees of it, cell by cell."""

    name = "minigrid"
    tasks = ("MiniGrid-Empty-5x5-v0", "MiniGrid-Empty-Random-5x5-v0")
    views = ("state",)
    r_min = dict.fromkeys(tasks, 0.0)
    r_max = dict.fromkeys(tasks, 1.0)

    def make_vec(self, task: str, *, view: str, split: str, num_envs: int, seed: int, **knobs: Any) -> VectorEnv:
        """Copies of a task."""

        def make() -> gymnasium.Env:
            import minigrid  # noqa: F401

            space = gymnasium.spaces.Box(0, 1, (147,), np.float32)
            seen = gymnasium.wrappers.TransformObservation(gymnasium.make(task), _cells, space)
            # Left, right and forward: the rest does nothing in an empty room.
            return gymnasium.wrappers.TransformAction(seen, lambda action: action, gymnasium.spaces.Discrete(3))

        env = SyncVectorEnv([make] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)
        env.reset(seed=seed + (split == "eval") * 10_000)
        return env


def _cells(observation: dict[str, Any]) -> np.ndarray:
    return (observation["image"] / 10).astype(np.float32).ravel()
