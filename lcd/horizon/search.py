"""The least m for which GORP(k, m) is optimal half the time, and with it the effective horizon (definition 2.2).

Success is decided by a test that may look after every run: with s successes in n runs the mixture of all probabilities
(Beta(1, 1)) is so many times likelier than ½ as B(s + 1, n - s + 1) · 2ⁿ says, and that this ever exceeds 1/α has a
probability of at most α where ½ is the truth (Ville's inequality). Where `runs` are not enough the more frequent
outcome counts, but no bound is drawn from it. m is doubled until GORP succeeds, then bisected: success is taken to grow
with m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from lcd.horizon.gorp import Gorp, timesteps
from lcd.horizon.rollouts import OutOfStepsError

_TESTS = 64
"""How many tests share the error of one k: more than doubling and bisecting takes."""
_FEWEST, _MOST_AT_ONCE = 16, 256
_SMALL = 1 << 14
"""Rollouts of a step that cost hardly more than one."""
_DEEPER = 0.5
"""How much further H is looked for at a time, beyond the timesteps of a run."""


@dataclass(frozen=True)
class LeastM:
    """What was found of m for one k.

    Attributes:
        k: the number of actions that are tried in all sequences.
        m: the least m found to succeed, or None where none did within the budget.
        low: no smaller m succeeds half the time, at the stated confidence.
        high: this m succeeds half the time, at the stated confidence; None where that is not known.
        most: the greatest m that the budget or a better k allowed.
    """

    k: int
    m: int | None
    low: int
    high: int | None
    most: int


@dataclass(frozen=True)
class Horizon:
    """The effective horizon.

    Attributes:
        h: min over k of k + log_A m, or None where no k has an m within the budget.
        k: the k that attains it.
        m: its m.
        low: the effective horizon is at least this.
        high: and at most this; None where no m is certain.
        tried: what was found of each k.
        confidence: of each k's bounds on m.
        simulated: environment steps that all runs took.
    """

    h: float | None
    k: int | None
    m: int | None
    low: float
    high: float | None
    tried: list[LeastM] = field(repr=False)
    confidence: float
    simulated: int


@dataclass
class Search:
    """How hard to look.

    Attributes:
        gorp: what runs GORP.
        timesteps: most timesteps of one run of GORP, counted as T² · A^k · m.
        runs: most runs for one (k, m).
        confidence: of the bounds on each m.
        most_k: the greatest k to try; None: the horizon.
        up_to: where nothing succeeds within the timesteps, an H up to which is looked whatever a run takes.
        most_steps: simulated steps of all runs after which that looking ends.
    """

    gorp: Gorp
    timesteps: float = 1e7
    runs: int = 400
    confidence: float = 0.95
    most_k: int | None = None
    up_to: float | None = None
    most_steps: float = math.inf

    def horizon(self) -> Horizon:
        """The effective horizon: all k, the smallest first, each with no more rollouts than still improve on it."""
        mdp = self.gorp.layers.mdp
        tried: dict[int, LeastM] = {}
        self._look(tried, None)
        if self.up_to is not None and mdp.num_actions > 1:
            limit = self._log(max(self.timesteps / mdp.horizon**2, 1.0))
            self.gorp.rollouts.most = self.most_steps
            while limit < self.up_to and self._may_go_on(tried):
                limit = min(limit + _DEEPER, self.up_to)
                self._look(tried, limit)
        return self._summed_up(list(tried.values()))

    def _may_go_on(self, tried: dict[int, LeastM]) -> bool:
        return all(each.m is None for each in tried.values()) and self.gorp.simulated < self.most_steps

    def _look(self, tried: dict[int, LeastM], limit: float | None) -> None:
        """Go on from what was tried to an H of `limit`; None: as far as the timesteps of a run allow."""
        mdp = self.gorp.layers.mdp
        best = math.inf
        for k in range(1, min(self.most_k or mdp.horizon, mdp.horizon) + 1):
            if limit is None:
                most = math.floor(self.timesteps / timesteps(mdp.horizon, mdp.num_actions, k, 1))
            else:
                most = math.floor(self._power(limit - k))
            if math.isfinite(best):
                # Equal horizons go to the smaller k.
                most = min(most, math.ceil(self._power(best - k)) - 1)
            if most < 1 or (limit is not None and self.gorp.simulated >= self.most_steps):
                break
            before = tried.get(k)
            if before is not None and before.most >= most:
                continue
            try:
                tried[k] = found = self.least_m(k, most, before)
            except OutOfStepsError:
                break
            if found.m is not None:
                best = min(best, k + self._log(found.m))

    def least_m(self, k: int, most: int, before: LeastM | None = None) -> LeastM:
        """The least m up to `most` for which GORP(k, m) succeeds half the time; `before` was not enough."""
        low, fails, m, succeeds = 1, 0, 1, None
        high = None
        # An m that nothing certain was said of may be the one, whatever is certain of greater ones.
        doubt = False
        if before is not None:
            # Hardly more than double: one look at the most is cheaper than two.
            low, fails, m, doubt = before.low, before.most, most, before.low <= before.most
        while True:
            outcome, certain = self.succeeds(k, m)
            if outcome:
                succeeds, high = m, m if certain else None
                break
            fails = m
            doubt = doubt or not certain
            low = low if doubt else m + 1
            if m == most:
                return LeastM(k, None, low, None, most)
            m = min(2 * m, most)
        while succeeds - fails > 1:
            middle = (fails + succeeds) // 2
            outcome, certain = self.succeeds(k, middle)
            if outcome:
                succeeds = middle
                high = middle if certain else high
            else:
                fails = middle
                doubt = doubt or not certain
                low = low if doubt else middle + 1
        return LeastM(k, succeeds, low, high, most)

    def succeeds(self, k: int, m: int) -> tuple[bool, bool]:
        """Whether GORP(k, m) is optimal at least half the time, and whether that is certain."""
        limit = math.log(_TESTS / (1 - self.confidence))
        done, won, batch = 0, 0, max(_FEWEST, _SMALL // (self.gorp.layers.mdp.num_actions**k * m))
        while done < self.runs:
            batch = min(batch, _MOST_AT_ONCE, self.runs - done)
            won += self.gorp.successes(k, m, batch)
            done += batch
            if evidence(won, done) >= limit:
                return 2 * won > done, True
            batch = done
        return 2 * won >= done, False

    def _summed_up(self, tried: list[LeastM]) -> Horizon:
        confidence, simulated = self.confidence, self.gorp.simulated
        low = min((each.k + self._log(each.low) for each in tried), default=math.inf)
        # What no k was tried for is at least the next k.
        low = min(low, len(tried) + 1.0)
        solved = [(each.k + self._log(each.m), each.k, each.m) for each in tried if each.m is not None]
        high = min((each.k + self._log(each.high) for each in tried if each.high is not None), default=None)
        if not solved:
            return Horizon(None, None, None, low, high, tried, confidence, simulated)
        return Horizon(*min(solved), low, high, tried, confidence, simulated)

    def _log(self, m: float) -> float:
        """log_A m; with one action nothing is exponential, and every sequence is the only one."""
        actions = self.gorp.layers.mdp.num_actions
        return 0.0 if m == 1 or actions == 1 else math.log(m) / math.log(actions)

    def _power(self, exponent: float) -> float:
        return float(self.gorp.layers.mdp.num_actions) ** exponent


def evidence(won: int, done: int) -> float:
    """The logarithm of how much likelier any probability of success is than ½."""
    return math.lgamma(won + 1) + math.lgamma(done - won + 1) - math.lgamma(done + 2) + done * math.log(2)
