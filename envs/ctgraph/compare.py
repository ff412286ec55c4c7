"""What an end state is worth: the comparison c of the decisions taken with the goal's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lcd.envs.ctgraph.theory import end_probability, expected_length

if TYPE_CHECKING:
    from lcd.envs.ctgraph.knobs import GraphKnobs

DISTRIBUTIONS = ("needle_in_haystack", "gradient")


def weights(b: int, d: int) -> np.ndarray:
    """How much a deviation at each decision counts: b^(d-i) for i = 1..d, the first decision most."""
    return float(b) ** np.arange(d - 1, -1, -1)


def farthest(goal: np.ndarray, b: int) -> np.ndarray:
    """The greatest weighted deviation from a goal (..., d) that an end can have: b^d - 1 at corner goals."""
    return np.maximum(goal - 1, b - goal) @ weights(b, goal.shape[-1])


def compare(decisions: np.ndarray, goal: np.ndarray, b: int, distribution: str) -> np.ndarray:
    """The paper's c of (8) or (10).

    It is 1 at the goal; elsewhere 0, or by "gradient" less the farther away, 0 at the farthest.

    Args:
        decisions: (..., d) actions at the decision states, 1..b.
        goal: (..., d) the goal's.
        b: branching factor.
        distribution: one of `DISTRIBUTIONS`.
    """
    if distribution == "needle_in_haystack":
        return (decisions == goal).all(axis=-1).astype(np.float64)
    return 1.0 - np.abs(decisions - goal) @ weights(b, goal.shape[-1]) / farthest(goal, b)


def mean_comparison(goal: np.ndarray, b: int, distribution: str) -> float:
    """The mean of c over all ends."""
    if distribution == "needle_in_haystack":
        return float(b) ** -len(goal)
    deviation = np.abs(goal[:, None] - np.arange(1, b + 1)).mean(axis=1)
    return float(1.0 - deviation @ weights(b, len(goal)) / farthest(goal, b))


def expected_return(knobs: GraphKnobs, goal: np.ndarray, policy: str) -> float:
    """The exact mean return of an episode under the "random", "navigation" or "optimal" policy.

    Args:
        knobs: the graph's `GraphKnobs`.
        goal: the optimal decisions.
        policy: one of the three; the optimal one knows where it is, and so is the best that any agent can do.
    """
    shape, reward = knobs.graph_shape, knobs.reward
    on_the_way = reward.step_r * expected_length(shape.b, shape.d, shape.p, policy)
    if policy == "optimal":
        return float(reward.high_r + on_the_way)
    mean = reward.high_r * mean_comparison(np.asarray(goal), shape.b, reward.reward_distribution)
    if policy == "navigation":
        return mean + on_the_way
    ends = end_probability(shape.b, shape.d, shape.p)
    return ends * mean + (1 - ends) * reward.fail_r + on_the_way
