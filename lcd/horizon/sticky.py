"""Sticky actions: the MDP is stochastic, and its state is the table's state with the action that was last executed.

At a step after the first the action of the step before is repeated with probability p. If q(s, a) is the worth of
executing a in s, the worth of choosing a after b is (1 - p) q(s, a) + p q(s, b), so that what is best to choose does
not depend on b. A policy is optimal if and only if every choice is that it makes where it can get to.
"""

from __future__ import annotations

import numpy as np

from lcd.envs.tabular.mdp import TabularMDP
from lcd.horizon.solvable import Solvable
from lcd.horizon.ties import Ties
from lcd.process.limits import require_memory


def solve_sticky(
    mdp: TabularMDP, ties: Ties, discount: float, most_k: int | None = None
) -> tuple[float, float, Solvable, bool]:
    """Solve an MDP with sticky actions exactly.

    Returns:
        The optimal and the random undiscounted return; the least k for which it is k-QVI-solvable; and whether every
        discounted optimal policy is optimal without discount.
    """
    entries = mdp.num_states * mdp.num_actions * mdp.horizon
    require_memory(
        f"{mdp.num_states:,} states, {mdp.num_actions} actions, horizon={mdp.horizon} and sticky", 16 * entries
    )
    induction = _Induction(mdp)
    best, planned = induction.run("max", 1.0), induction.run("max", discount)
    optimal = [induction.q(t, best, 1.0) for t in range(mdp.horizon)]
    random = induction.first(induction.run("mean", 1.0), 1.0, "mean")
    returns = induction.first(best, 1.0, "max")
    agrees = induction.solves(ties, planned, discount, optimal)
    values = induction.run("mean", discount)
    most = mdp.horizon if most_k is None else min(most_k, mdp.horizon)
    for k in range(1, most + 1):
        if induction.solves(ties, values, discount, optimal):
            return returns, random, Solvable(k, k), agrees
        for t in range(1, mdp.horizon - k + 1):
            values[t] = induction.values(induction.q(t, values, discount), "max")
    return returns, random, Solvable(None, most), agrees


class _Induction:
    """Backward induction over states and last actions; values of step t are (states + 1, actions), the end last."""

    def __init__(self, mdp: TabularMDP) -> None:
        self.mdp = mdp
        self.after = np.where(mdp.transitions < 0, mdp.num_states, mdp.transitions).astype(np.intp)
        self.executed = np.arange(mdp.num_actions)

    def q(self, t: int, values: list[np.ndarray], discount: float) -> np.ndarray:
        """(states, actions): what executing an action at step t is worth."""
        if t + 1 >= self.mdp.horizon:
            return self.mdp.rewards.astype(np.float64)
        return self.mdp.rewards + discount * values[t + 1][self.after, self.executed]

    def values(self, worth: np.ndarray, choose: str) -> np.ndarray:
        """What a state is worth after each action that may be repeated."""
        chosen = worth.max(axis=1) if choose == "max" else worth.mean(axis=1)
        found = np.zeros((self.mdp.num_states + 1, self.mdp.num_actions))
        found[:-1] = (1 - self.mdp.sticky) * chosen[:, None] + self.mdp.sticky * worth
        return found

    def run(self, choose: str, discount: float) -> list[np.ndarray]:
        """The values of all steps."""
        values: list[np.ndarray] = [np.zeros((0, 0))] * self.mdp.horizon
        for t in reversed(range(self.mdp.horizon)):
            values[t] = self.values(self.q(t, values, discount), choose)
        return values

    def first(self, values: list[np.ndarray], discount: float, choose: str) -> float:
        """The return from the first state, where no action can be repeated yet."""
        worth = self.q(0, values, discount)[self.mdp.start]
        return float(worth.max() if choose == "max" else worth.mean())

    def solves(self, ties: Ties, values: list[np.ndarray], discount: float, optimal: list[np.ndarray]) -> bool:
        """Is every policy optimal that is greedy for the Q-values that go with these values?"""
        repeats = self.mdp.sticky > 0
        # Which last actions a state may be reached with; before the first step there is none.
        reached = np.zeros((self.mdp.num_states + 1, self.mdp.num_actions), dtype=bool)
        for t in range(self.mdp.horizon):
            states = np.array([self.mdp.start]) if t == 0 else np.flatnonzero(reached[:-1].any(axis=1))
            if not states.size:
                return True
            greedy = ties.greedy(self.q(t, values, discount)[states], axis=1)
            right = optimal[t][states]
            matters = self.mdp.sticky < 1 or t == 0
            if matters and (greedy & (right < right.max(axis=1, keepdims=True) - ties.returns)).any():
                return False
            executed = greedy if t == 0 else (greedy & (self.mdp.sticky < 1)) | (reached[states] & repeats)
            reached[:] = False
            row, action = np.nonzero(executed)
            reached[self.after[states[row], action], action] = True
        return True
