"""Sticky actions: the MDP is stochastic, and its state is the table's state with the action that was last executed.

At a step after the first the action of the step before is repeated with probability p. If q(s, a) is the worth of
executing a in s, the worth of choosing a after b is (1 - p) q(s, a) + p q(s, b), so that what is best to choose does
not depend on b. A policy is optimal if and only if every choice is that it makes where it can get to.

How far one must look ahead where much is left to chance is told by the gaps of Q^k (Laidlaw et al., 2024): with Δ_k the
least distance of a best choice from the best of the others, over all steps and all states that one may be in, and
returns scaled to [0, 1],

    H̄ = min k + log_A 1 / Δ_k², over all k for which the MDP is k-QVI-solvable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lcd.envs.tabular.mdp import TabularMDP
from lcd.horizon.solvable import Solvable
from lcd.horizon.ties import Ties
from lcd.process.limits import require_memory


@dataclass(frozen=True)
class StochasticHorizon:
    """The stochastic effective horizon.

    Attributes:
        h: k + log_A 1 / gap².
        k: the k that attains it.
        gap: the least that a best choice is ahead of the best of the others, of a return from 0 to 1.
    """

    h: float
    k: int
    gap: float


@dataclass(frozen=True)
class Sticky:
    """What is exact of an MDP with sticky actions.

    Attributes:
        optimal_return: J*, undiscounted.
        random_return: the mean return of random choices.
        solvable: the least k for which it is k-QVI-solvable.
        discount_agrees: is every discounted optimal policy optimal without discount?
        horizon: the stochastic effective horizon; None where no k solves it.
    """

    optimal_return: float
    random_return: float
    solvable: Solvable
    discount_agrees: bool
    horizon: StochasticHorizon | None


def solve_sticky(mdp: TabularMDP, ties: Ties, discount: float, most_k: int | None = None) -> Sticky:
    """Solve an MDP with sticky actions exactly."""
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
    least, horizon = _look_ahead(induction, ties, discount, optimal, most_k)
    return Sticky(returns, random, least, agrees, horizon)


def _look_ahead(
    induction: _Induction, ties: Ties, discount: float, optimal: list[np.ndarray], most_k: int | None
) -> tuple[Solvable, StochasticHorizon | None]:
    """The least k that solves it, and the stochastic effective horizon."""
    mdp, values = induction.mdp, induction.run("mean", discount)
    most = mdp.horizon if most_k is None else min(most_k, mdp.horizon)
    reach, span = induction.reach(), induction.span()
    least, found = Solvable(None, most), None
    for k in range(1, most + 1):
        if found is not None and k >= found.h:
            break
        if induction.solves(ties, values, discount, optimal):
            least = Solvable(k, k) if least.k is None else least
            gap = min(1.0, induction.gap(ties, values, discount, reach) / span) if span else 1.0
            h = k if mdp.num_actions == 1 else k - 2 * math.log(gap) / math.log(mdp.num_actions)
            found = min(found or StochasticHorizon(h, k, gap), StochasticHorizon(h, k, gap), key=lambda each: each.h)
        for t in range(1, mdp.horizon - k + 1):
            values[t] = induction.values(induction.q(t, values, discount), "max")
    return least, found


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

    def reach(self) -> list[np.ndarray]:
        """The states that some choices lead to, of all steps."""
        states = [np.array([self.mdp.start])]
        for _ in range(self.mdp.horizon - 1):
            after = np.unique(self.after[states[-1]])
            states.append(after[after < self.mdp.num_states])
        return states

    def span(self) -> float:
        """The greatest return less the least one, whatever chance does."""
        high = low = np.zeros(self.mdp.num_states + 1)
        for _ in range(self.mdp.horizon):
            high = np.append((self.mdp.rewards + high[self.after]).max(axis=1), 0.0)
            low = np.append((self.mdp.rewards + low[self.after]).min(axis=1), 0.0)
        return float(high[self.mdp.start] - low[self.mdp.start])

    def gap(self, ties: Ties, values: list[np.ndarray], discount: float, reach: list[np.ndarray]) -> float:
        """The least that a best choice is ahead of the best of the others; infinite where all are best everywhere.

        After the first step a choice counts with probability 1 - p alone, and so does what it is ahead.
        """
        least = math.inf
        for t, states in enumerate(reach):
            worth = self.q(t, values, discount)[states]
            others = np.where(ties.greedy(worth, axis=1), -math.inf, worth).max(axis=1, initial=-math.inf)
            ahead = (
                float((worth.max(axis=1, initial=-math.inf) - others).min(initial=math.inf))
                if states.size
                else math.inf
            )
            counts = 1.0 if t == 0 else 1 - self.mdp.sticky
            if counts:
                least = min(least, counts * ahead)
        return least
