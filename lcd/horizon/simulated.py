"""GORP on a simulator that saves and restores its state: where tables are out of reach, within a budget of steps.

All copies of a vector environment are put into one state, so that every copy is an episode of the same deterministic
task. What the best return is nobody knows here, so that success means the best return that was seen in any episode: the
effective horizon is that of reaching it. Where all episodes had the same return, nothing is said of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import VectorEnv

from lcd.curves.table import LARGEST
from lcd.envs.checks import MOST_STEPS, require_whole_number
from lcd.envs.errors import InputError
from lcd.envs.protocols import KeepsState, offers
from lcd.envs.state import State
from lcd.horizon.search import evidence

_CHECKS, _CHECKED_STEPS = 5, 100
"""Episodes of random actions, and steps of each, in which all copies have to earn the same."""
_RUNS = 40
"""Most runs of GORP for each k and m."""
_LIMIT = math.log(1 / 0.05)
"""Of the evidence that success is not as likely as failure (`lcd.horizon.search`), for each k and m."""
_TIED = 1e-6


@dataclass(frozen=True)
class Try:
    """Runs of GORP(k, m).

    Attributes:
        k: the number of actions that are tried in all sequences.
        m: rollouts of each sequence.
        h: k + log_A m.
        won: how many runs reached the best return.
        runs: how many there were.
    """

    k: int
    m: int
    h: float
    won: int
    runs: int


@dataclass(frozen=True)
class Simulated:
    """What GORP found on a simulator.

    Attributes:
        name: the task's name.
        actions: how many actions there are.
        steps: the horizon T.
        best_return: the best undiscounted return of all episodes.
        h: the least k + log_A m with which half of the runs reached that; None: none did.
        low: the effective horizon is at least this, where success grows with k and m.
        high: and at most this; None where nothing is certain.
        tries: every k and m that was tried, the cheapest first; none where all episodes had the same return.
        simulated: environment steps that it took.
    """

    name: str
    actions: int
    steps: int
    best_return: float
    h: float | None
    low: float
    high: float | None
    tries: list[Try]
    simulated: int


class Simulator:
    """A vector environment whose copies play one deterministic task, and GORP on it."""

    def __init__(self, env: VectorEnv, name: str, horizon: int, discount: float, rng: np.random.Generator) -> None:
        """Put all copies at the beginning of one episode.

        Args:
            env: copies of the task.
            name: what it is called.
            horizon: steps after which an episode is over, whether or not the environment ends it.
            discount: γ while planning.
            rng: where random actions come from.

        Raises:
            InputError: where it cannot be restored, is not deterministic, pays what is no finite number, or has not one
                action of several at a time.
        """
        require_whole_number("horizon", horizon, 1, MOST_STEPS)
        restorable: Any = env
        if not offers(restorable, KeepsState) or restorable.get_state is None or restorable.set_state is None:
            raise InputError(
                f"mdp={name} can neither be tabulated nor save and restore its state: there is no H to tell."
            )
        if not isinstance(env.single_action_space, Discrete):
            raise InputError(
                f"mdp={name} has actions of {env.single_action_space}, but H is defined for a choice of one."
            )
        self.env, self.name, self.horizon, self.discount, self._rng = env, name, horizon, discount, rng
        self.actions, self._first_action = int(env.single_action_space.n), int(env.single_action_space.start)
        self.simulated, self.best_return, self.worst_return = 0, -math.inf, math.inf
        env.reset()
        self._start = restorable.get_state()
        self._check()

    def _check(self) -> None:
        """Refuse copies that do not all do the same, or do something else when they are restored."""
        for _ in range(_CHECKS):
            own = self._rng.integers(self.actions, size=min(self.horizon, _CHECKED_STEPS))
            actions = np.repeat(own[:, None], self.env.num_envs, axis=1)
            once, again = (self._played(self._start, actions) for _ in range(2))
            alike = all((part == part[..., :1]).all() for part in once)
            if alike and all(np.array_equal(one, other) for one, other in zip(once, again, strict=True)):
                continue
            raise InputError(
                f"mdp={self.name} is not deterministic: its copies do not all earn the same with the same actions; "
                "what is drawn for each copy or episode, such as a level, has to be fixed by knobs "
                "(of Procgen knobs.num_levels=1)."
            )

    def _played(self, state: State, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Play (steps, copies) actions from a state.

        Returns:
            The rewards, how many steps each copy went on, and whether it still does.
        """
        env: Any = self.env
        env.set_state(state)
        rewards, length = np.zeros(actions.shape), np.zeros(env.num_envs)
        going_on = np.ones(env.num_envs, dtype=bool)
        for step, own in enumerate(actions):
            _, paid, terminated, truncated, _ = env.step(own + self._first_action)
            rewards[step] = np.where(going_on, paid, 0.0)
            length += going_on
            going_on &= ~(terminated | truncated)
            if not going_on.any():
                break
        sane = np.abs(rewards) <= LARGEST
        if not sane.all():
            raise InputError(
                f"mdp={self.name} pays {rewards[~sane][0]}, but rewards must be finite, of at most {LARGEST:g}."
            )
        self.simulated += int(length.sum())
        return rewards, length, going_on

    def run(self, k: int, m: int) -> float:
        """The undiscounted return of the actions that a run of GORP(k, m) chooses."""
        env: Any = self.env
        state, total = self._start, 0.0
        for t in range(self.horizon):
            action = self._chosen(state, total, self.horizon - t, k, m)
            rewards, _, going_on = self._played(state, np.full((1, env.num_envs), action))
            total += float(rewards[0, 0])
            if not going_on[0]:
                break
            state = env.get_state()
        return total

    def _chosen(self, state: State, total: float, left: int, k: int, m: int) -> int:
        """The first action of the sequence with the best mean return, one of them where several are tied."""
        length, copies = min(k, left), self.env.num_envs
        sequences = self.actions**length
        sums = np.zeros(sequences)
        weights = self.discount ** np.arange(left)
        for first in range(0, sequences * m, copies):
            count = min(copies, sequences * m - first)
            own = np.minimum(np.arange(first, first + copies) // m, sequences - 1)
            actions = self._rng.integers(self.actions, size=(left, copies))
            actions[:length] = own // self.actions ** np.arange(length - 1, -1, -1)[:, None] % self.actions
            rewards, _, _ = self._played(state, actions)
            returns = total + rewards.sum(axis=0)
            self.best_return = max(self.best_return, float(returns.max()))
            self.worst_return = min(self.worst_return, float(returns.min()))
            sums += np.bincount(own[:count], (weights @ rewards)[:count], sequences)
        best = sums.reshape(self.actions, -1).max(axis=1)
        tied = np.flatnonzero(best >= best.max() - _TIED * max(abs(best.max()), 1e-300))
        return int(self._rng.choice(tied))


def estimate(simulator: Simulator, budget: float, most_k: int | None = None) -> Simulated:
    """Try k and m, the cheapest first, until the budget is spent.

    Args:
        simulator: the task.
        budget: environment steps in all; the run that exceeds them is the last one.
        most_k: the greatest k; None: the horizon.

    Raises:
        InputError: where the budget is too small for any run.
    """
    returns: list[tuple[float, int, int, list[float]]] = []
    following = 1.0
    for h, k, m in _pairs(simulator, budget, most_k):
        following = h
        if simulator.simulated >= budget:
            break
        found: list[float] = []
        while len(found) < _RUNS and simulator.simulated < budget:
            found.append(simulator.run(k, m))
            if _certain(sum(_reaches(simulator, each) for each in found), len(found)):
                break
        returns.append((h, k, m, found))
    if not returns:
        raise InputError(
            f"simulated is {budget}, but checking that the task is deterministic took {simulator.simulated:,} steps, "
            f"and a run of GORP(1, 1) takes {simulator.horizon * simulator.actions:,} or more: give more."
        )
    tries = [Try(k, m, h, sum(_reaches(simulator, each) for each in found), len(found)) for h, k, m, found in returns]
    if simulator.best_return <= simulator.worst_return:
        tries, following = [], 1.0
    fails = [each for each in tries if 2 * each.won < each.runs and _certain(each.won, each.runs)]
    succeeds = [each for each in tries if 2 * each.won >= each.runs]
    sure = [each.h for each in succeeds if _certain(each.won, each.runs)]
    open_still = [each.h for each in tries if each not in fails]
    return Simulated(
        simulator.name,
        simulator.actions,
        simulator.horizon,
        simulator.best_return,
        min((each.h for each in succeeds), default=None),
        min(open_still, default=following),
        min(sure, default=None),
        tries,
        simulator.simulated,
    )


def _pairs(simulator: Simulator, budget: float, most_k: int | None) -> list[tuple[float, int, int]]:
    """(k + log_A m, k, m) with m a power of two, one run of which is within the budget, in order."""
    found = []
    for k in range(1, min(simulator.horizon, most_k or simulator.horizon) + 1):
        m = 1
        while simulator.horizon * simulator.actions**k * m <= budget:
            found.append((k + (math.log(m) / math.log(simulator.actions) if m > 1 else 0.0), k, m))
            if simulator.actions == 1:
                break
            m *= 2
        if m == 1:
            break
    return sorted(found)


def _reaches(simulator: Simulator, total: float) -> bool:
    return total >= simulator.best_return - _TIED * max(abs(simulator.best_return), 1.0)


def _certain(won: int, runs: int) -> bool:
    return evidence(won, runs) >= _LIMIT
