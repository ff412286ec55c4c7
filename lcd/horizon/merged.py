"""A decision of GORP among so many sequences of actions that it pays not to play them all.

The distribution of what is decided is that of playing everything, but for a chance of at most `ERROR` a decision:

- Sequences with the same first action, end and pay have rollouts of one kind, and are held as one *class* with a count.
- Tables say how improbable it is that the mean of a class's rollouts reaches the best mean so far (`Tails`). Classes
  that all together reach it with a chance of less than `ERROR` are not played, and a sequence is given up after some of
  its rollouts once the others are as unlikely to make up for them.
- It ends when no action but one is left that could be the best, or none that is optimal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lcd.horizon.exact import Exact, unpacked
from lcd.horizon.rollouts import EPISODES_AT_ONCE, Rollouts
from lcd.horizon.tails import Tails
from lcd.horizon.ties import Ties

ERROR = 1e-4
"""The greatest probability that something that was not played would have changed a decision."""
_GIVEN_UP = 1e-4
"""As much again is shared out over all sequences that are given up before their last rollout."""
_KEPT = 256
"""Decisions whose classes are kept for the next run."""


@dataclass
class Classes:
    """The sequences of some actions from one state on, those alike as one.

    Attributes:
        first: (n,) their first action.
        states: (n,) where they lead.
        worth: (n,) what they pay, discounted to the first of them.
        counts: (n,) how many of them there are.
        ended: (actions,) the most that a sequence pays which ends the episode, or -inf.
        places: (n,) where their states stand in their layer.
    """

    first: np.ndarray
    states: np.ndarray
    worth: np.ndarray
    counts: np.ndarray
    ended: np.ndarray
    places: np.ndarray


@dataclass
class Merged:
    """Decisions of GORP on one MDP.

    Attributes:
        rollouts: what plays.
        exact: the solved MDP: which actions are optimal.
        ties: when mean returns are tied.
    """

    rollouts: Rollouts
    exact: Exact
    ties: Ties
    _tails: Tails | None = None
    _classes: dict[tuple[int, int, int], Classes] = field(default_factory=dict)

    @property
    def tails(self) -> Tails:
        """Worked out when a decision first needs them."""
        if self._tails is None:
            self._tails = Tails(self.rollouts.layers, self.rollouts.discount)
        return self._tails

    def chosen(self, state: int, t: int, k: int, m: int) -> int:
        """The action that GORP(k, m) takes in a state at step t; where no optimal one can win, any that may."""
        length = min(k, self.rollouts.layers.mdp.horizon - t)
        key = (t, state, length)
        if key not in self._classes:
            if len(self._classes) >= _KEPT:
                self._classes.clear()
            self._classes[key] = self._classes_of(state, t, length)
        return _Decision(self, self._classes[key], state, t, length, m).made()

    def _classes_of(self, state: int, t: int, length: int) -> Classes:
        layers, discount = self.rollouts.layers, self.rollouts.discount
        actions, ends = layers.mdp.num_actions, layers.mdp.num_states
        first, states, worth, counts = np.arange(actions), np.full(actions, state), np.zeros(actions), np.ones(actions)
        taken = np.arange(actions)
        ended = np.full(actions, -np.inf)
        for depth in range(length):
            if depth:
                first, states, worth, counts = (np.repeat(each, actions) for each in (first, states, worth, counts))
                taken = np.tile(np.arange(actions), len(states) // actions)
            states, paid = self.rollouts.step(states * actions + taken)
            self.rollouts.count(len(states))
            worth = worth + discount**depth * paid
            over = states == ends
            if depth + 1 + t == layers.mdp.horizon:
                over[:] = True
            np.maximum.at(ended, first[over], worth[over])
            first, states, worth, counts = _alike(first[~over], states[~over], worth[~over], counts[~over])
        places = layers.position(t + length, states) if states.size else states
        return Classes(first, states, worth, counts, ended, places)


class _Decision:
    """One decision, while it is made."""

    def __init__(self, merged: Merged, classes: Classes, state: int, t: int, length: int, m: int) -> None:
        self.rollouts, self.ties, layers = merged.rollouts, merged.ties, merged.rollouts.layers
        self.tails, self.classes, self.m, self.layer = merged.tails, classes, m, t + length
        self.left = layers.mdp.horizon - self.layer
        place = layers.position(t, np.array([state]))
        self.optimal = unpacked(merged.exact.optimal_marks[t], place, layers.mdp.num_actions)[:, 0]
        self.best, self.open = classes.ended.copy(), classes.counts.copy()
        # Rollouts begin at the layer, the tables count from the first step on, and a class's worth from the state on.
        self.unit = merged.rollouts.discount**self.layer
        self.weight = merged.rollouts.discount**length
        if classes.states.size:
            self.top = merged.tails.best[self.layer][classes.places]
            self.greatest = classes.worth + self.weight * self.top / self.unit
            likely = merged.tails.likely(self.layer, classes.places, np.log(classes.counts), m) / self.unit
            self.likely = classes.worth + self.weight * likely
        self.at_once = max(1.0, EPISODES_AT_ONCE // (4 * m))
        self.each_given_up = np.log(_GIVEN_UP / max(classes.counts.sum(), 1.0))

    def made(self) -> int:
        """The action that is taken."""
        while self.classes.states.size:
            reach = self._tied()
            chance = self._chances(reach)
            order = np.argsort(chance)
            # The least of them, as many as together have no chance, are left out.
            order = order[np.searchsorted(np.cumsum(chance[order]), ERROR) :]
            leading = np.flatnonzero(self.best >= reach)
            may = np.union1d(leading, self.classes.first[order])
            if not order.size or len(may) == 1 or not self.optimal[may].any():
                break
            self._play(order, reach)
        tied = self.best >= self._tied()
        return int(np.where(tied, self.rollouts.rng.random(len(tied)), -1.0).argmax())

    def _tied(self) -> float:
        """From which mean on an action is among the best."""
        best, ties = float(self.best.max()), self.ties
        return best - (ties.relative * abs(best) + ties.floor) if np.isfinite(best) else -np.inf

    def _chances(self, reach: float) -> np.ndarray:
        """(n,) bounds on the probability that what is left of a class changes who is the best."""
        classes, chance = self.classes, np.zeros(len(self.open))
        left = np.flatnonzero(self.open > 0)
        # An action that is among the best already is none the better for reaching that again.
        left = left[(self.best[classes.first[left]] < reach) | (self.greatest[left] > self.best.max())]
        if reach == -np.inf:
            chance[left] = np.inf
            return chance
        short = (self.greatest[left] - reach) / self.weight * self.unit
        logs = self.tails.log_chance(self.layer, classes.places[left], short, self.m)
        chance[left] = np.exp(np.minimum(np.log(self.open[left]) + logs, 50.0))
        return chance

    def _play(self, order: np.ndarray, reach: float) -> None:
        """Play some of the sequences, those first that may lead to the most."""
        order = order[np.argsort(-self.likely[order], kind="stable")]
        before = np.cumsum(self.open[order]) - self.open[order]
        order = order[before < self.at_once]
        taken = np.minimum(self.open[order], self.at_once - before[: len(order)])
        self.open[order] -= taken
        rows, sums, done = self._begun(order, taken, reach)
        played = len(rows)
        while done < self.m and rows.size:
            more = min(max(done, 1), self.m - done) if np.isfinite(reach) else self.m - done
            sums = sums + self._sums(rows, more)
            done, played = done + more, played + len(rows) * more
            kept = self._may_reach(rows, sums, done, reach)
            rows, sums = rows[kept], sums[kept]
        np.maximum.at(self.best, self.classes.first[rows], self.classes.worth[rows] + self.weight * sums / self.m)
        # The more is known, the sooner sequences are given up, and the more of them are soon done with.
        if 4 * played <= EPISODES_AT_ONCE:
            self.at_once *= 4

    def _begun(self, order: np.ndarray, taken: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray, int]:
        """The classes of sequences that are not given up after their first rollout, its return, and that it is one.

        Where returns are listed, how many of a class's sequences have which is multinomial: none is played by itself.
        """
        returns, chances = self.tails.returns[self.layer], self.tails.chances[self.layer]
        if returns is None or chances is None:
            rows = np.repeat(order, taken.astype(np.int64))
            return rows, np.zeros(len(rows)), 0
        self.rollouts.count(int(taken.sum()))
        split = self.rollouts.rng.multinomial(taken.astype(np.int64), chances[self.classes.places[order]])
        row, which = np.nonzero(split)
        rows, sums = order[row], returns[which] / self.unit
        kept = self._may_reach(rows, sums, 1, reach)
        many = split[row, which][kept] if self.m > 1 else 1
        return np.repeat(rows[kept], many), np.repeat(sums[kept], many), 1

    def _may_reach(self, rows: np.ndarray, sums: np.ndarray, done: int, reach: float) -> np.ndarray:
        """Which sequences, after so many rollouts with these sums, are not given up."""
        if done == self.m or not np.isfinite(reach):
            return np.ones(len(rows), dtype=bool)
        needed = ((reach - self.classes.worth[rows]) / self.weight * self.m - sums) / (self.m - done)
        short = self.top[rows] - needed * self.unit
        return self.tails.log_chance(self.layer, self.classes.places[rows], short, self.m - done) > self.each_given_up

    def _sums(self, rows: np.ndarray, m: int) -> np.ndarray:
        """The summed returns of `m` rollouts of each of these sequences."""
        drawn = self.tails.drawn(self.layer, self.classes.places[rows], m, self.rollouts.rng)
        if drawn is None:
            return self.rollouts.mean_returns(self.classes.states[rows], self.left, m) * m
        self.rollouts.count(len(rows) * m)
        return drawn / self.unit


def _alike(
    first: np.ndarray, states: np.ndarray, worth: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sequences with the same first action, end and pay as one."""
    order = np.lexsort((worth, states, first))
    first, states, worth, counts = first[order], states[order], worth[order], counts[order]
    new = np.ones(len(first), dtype=bool)
    new[1:] = (np.diff(first) != 0) | (np.diff(states) != 0) | (np.diff(worth) != 0)
    begins = np.flatnonzero(new)
    return first[begins], states[begins], worth[begins], np.add.reduceat(counts, begins) if begins.size else counts
