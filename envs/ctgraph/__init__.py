"""The configurable tree graph (Soltoggio et al. 2023), whose difficulty has closed formulas.

They are functions of branching b, depth d and wait probability p. `lcd/ctgraph-v0` is the environment
(`lcd.envs.ctgraph.graph`), `benchmark=ctgraph` its benchmark; README.md beside this file says what differs from the
paper's print and from its authors' code.
"""

from lcd.envs.ctgraph.theory import (
    end_probability,
    expected_length,
    expected_search,
    length_probability,
    navigation_reward_probability,
    num_decisions,
    num_ends,
    num_states,
    num_waits,
    reward_probability,
    wait_visits,
)

__all__ = [
    "end_probability",
    "expected_length",
    "expected_search",
    "length_probability",
    "navigation_reward_probability",
    "num_decisions",
    "num_ends",
    "num_states",
    "num_waits",
    "reward_probability",
    "wait_visits",
]
