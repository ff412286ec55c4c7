"""A graph's states in one row, and where every action leads: what all copies of all seeds share."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from lcd.envs.checks import require_fitting_table
from lcd.envs.ctgraph.compare import compare
from lcd.envs.ctgraph.layout import DECISION, END, FAIL, HOME, KINDS, SET_OF_KIND, WAIT, has_own_id
from lcd.envs.ctgraph.theory import num_decisions, num_ends, num_states, num_waits
from lcd.envs.errors import InputError

if TYPE_CHECKING:
    from lcd.envs.ctgraph.knobs import GraphKnobs

MOST_STATES = 4_000_000
FIRST_WAIT = 2


class Transitions:
    """Of a graph: home is state 0, fail is 1, then come wait, decision and end states.

    Attributes:
        successors: (states x actions,) the state that an action leads to, if it leads on.
        lingering: (states x actions,) may the state be kept instead, because it waits?
        kinds: (states,) what kind a state is.
        numbers: (states,) its number among those of its kind.
        first_id, id_count: (states,) the observation ids that it may show.
        terminal: (states,) does an episode end there?
    """

    def __init__(self, knobs: GraphKnobs) -> None:
        """Make the tables of a graph with some `GraphKnobs`."""
        b, d = knobs.graph_shape.b, knobs.graph_shape.d
        waits, decisions, ends = num_waits(b, d), num_decisions(b, d), num_ends(b, d)
        first = {HOME: 0, FAIL: 1, WAIT: FIRST_WAIT, DECISION: FIRST_WAIT + waits, END: FIRST_WAIT + waits + decisions}
        count = {HOME: 1, FAIL: 1, WAIT: waits, DECISION: decisions, END: ends}
        states = num_states(b, d)
        self.actions, self.first_end = b + 1, first[END]
        self.kinds, self.numbers = np.empty(states, np.int64), np.empty(states, np.int64)
        self.first_id, self.id_count = np.empty(states, np.int64), np.ones(states, np.int64)
        for kind in range(len(KINDS)):
            rows = slice(first[kind], first[kind] + count[kind])
            self.kinds[rows], self.numbers[rows] = kind, np.arange(count[kind])
            low, high = knobs.id_sets[SET_OF_KIND[kind]]
            self.first_id[rows] = low
            if has_own_id(knobs.observations, kind):
                self.first_id[rows] += self.numbers[rows] % (high - low + 1)
            else:
                self.id_count[rows] = high - low + 1
        self.terminal = (self.kinds == END) | (self.kinds == FAIL)
        successors = np.repeat(np.arange(states)[:, None], b + 1, axis=1)
        successors[0] = FIRST_WAIT
        wait, decision = first[WAIT] + np.arange(waits), first[DECISION] + np.arange(decisions)
        successors[wait], successors[decision] = 1, 1
        # A wait state of the last level has the number of its end after those of all decision states.
        successors[wait, 0] = first[DECISION] + np.arange(waits)
        successors[decision, 1:] = FIRST_WAIT + b * np.arange(decisions)[:, None] + np.arange(1, b + 1)
        self.successors = successors.ravel()
        lingering = np.zeros((states, b + 1), dtype=bool)
        lingering[wait, 0] = True
        self.lingering = lingering.ravel()


@lru_cache(maxsize=16)
def transitions(knobs: GraphKnobs) -> Transitions:
    """The tables of a graph; building them is refused where they would not fit."""
    b, d = knobs.graph_shape.b, knobs.graph_shape.d
    if num_states(b, d) > MOST_STATES:
        raise InputError(
            f"graph_shape.d is {d}, but with b={b} that makes {num_states(b, d)} states, more than the {MOST_STATES} "
            "that are built; the closed forms take deeper ones."
        )
    require_fitting_table(f"graph_shape.b is {b} and graph_shape.d is {d}", num_states(b, d) * (b + 1), 8)
    return Transitions(knobs)


def end_rewards(knobs: GraphKnobs, tables: Transitions, nodes: np.ndarray, goals: np.ndarray) -> np.ndarray:
    """What copies with these goals (n, d) get for arriving at these end or fail states, without noise."""
    reward, shape = knobs.reward, knobs.graph_shape
    decisions = tables.numbers.take(nodes)[:, None] // shape.b ** np.arange(shape.d - 1, -1, -1) % shape.b + 1
    worth = reward.high_r * compare(decisions, goals, shape.b, reward.reward_distribution)
    return np.where(tables.kinds.take(nodes) == FAIL, reward.fail_r, worth)
