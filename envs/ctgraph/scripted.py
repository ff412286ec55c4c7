"""The paper's three policies, which know the state: references, and what R_min and R_max are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lcd.envs.checks import require_one_of
from lcd.envs.ctgraph.layout import DECISION
from lcd.envs.ctgraph.theory import POLICIES

if TYPE_CHECKING:
    from lcd.envs.ctgraph.graph import CTGraphVectorEnv


def policy_actions(env: CTGraphVectorEnv, policy: str, rng: np.random.Generator) -> np.ndarray:
    """The actions of all copies of a `CTGraphVectorEnv`.

    Args:
        env: the environment, whose states and goals are looked at.
        policy: "random": uniform; "navigation": never fails, decides uniformly; "optimal": to the goal.
        rng: where random actions come from.
    """
    require_one_of("policy", policy, POLICIES)
    shape = env.knobs.graph_shape
    if policy == "random":
        return rng.integers(shape.b + 1, size=env.num_envs)
    kinds = env.kinds
    if policy == "navigation":
        decisions = rng.integers(1, shape.b + 1, size=env.num_envs)
    else:
        # A decision's level tells which of the goal's decisions is due: level l starts at (b^l - 1)/(b - 1).
        starts = (shape.b ** np.arange(shape.d) - 1) // (shape.b - 1)
        level = np.searchsorted(starts, np.where(kinds == DECISION, env.numbers, 0), side="right") - 1
        decisions = np.take_along_axis(env.goals, level[:, None], axis=1)[:, 0]
    return np.where(kinds == DECISION, decisions, 0)
