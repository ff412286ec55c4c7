"""A CT-graph as a tabular MDP, where it is deterministic: the graph itself, not what an agent is shown of it."""

from __future__ import annotations

import numpy as np

from lcd.envs.ctgraph.compare import compare
from lcd.envs.ctgraph.knobs import GraphKnobs
from lcd.envs.ctgraph.layout import FAIL
from lcd.envs.ctgraph.transitions import transitions
from lcd.envs.errors import InputError
from lcd.envs.tabular.mdp import TERMINAL, TabularMDP


def as_tabular(knobs: GraphKnobs, goal: np.ndarray, name: str) -> TabularMDP:
    """The graph's MDP for one goal; its states are those of the graph in which episodes go on.

    Args:
        knobs: the graph's knobs.
        goal: the optimal decisions.
        name: what the result is called.

    Raises:
        InputError: where the graph is not deterministic, with what makes it so.
    """
    _refuse_chance(knobs)
    graph, shape, reward = transitions(knobs), knobs.graph_shape, knobs.reward
    digits = shape.b ** np.arange(shape.d - 1, -1, -1)
    decisions = graph.numbers[:, None] // digits % shape.b + 1
    worth = reward.high_r * compare(decisions, np.asarray(goal), shape.b, reward.reward_distribution)
    worth = np.where(graph.kinds == FAIL, reward.fail_r, worth) * graph.terminal
    going_on = np.flatnonzero(~graph.terminal)
    number = np.full(len(graph.kinds), TERMINAL)
    number[going_on] = np.arange(len(going_on))
    after = graph.successors.reshape(-1, graph.actions)[going_on]
    return TabularMDP(number[after], worth[after] + reward.step_r, horizon=2 * (shape.d + 1), name=name)


def _refuse_chance(knobs: GraphKnobs) -> None:
    if knobs.graph_shape.p > 0:
        raise InputError(f"graph_shape.p is {knobs.graph_shape.p}, but a tabular MDP is deterministic: it has to be 0.")
    if knobs.reward.std_r > 0:
        raise InputError(f"reward.std_r is {knobs.reward.std_r}, but a tabular MDP is deterministic: it has to be 0.")
    if knobs.reward.goal_changes:
        raise InputError(
            f"reward.min_static_reward_episodes is {knobs.reward.min_static_reward_episodes}, but a tabular MDP has "
            "one goal: it has to be -1."
        )
