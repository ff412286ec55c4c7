"""How far above the usual a mean of random rollouts may lie: exact returns where they are few, else Chernoff's bound.

What is earned is counted as at the first step of an episode (γ to the power of t is in it), so that one set of
exponents serves all layers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lcd.horizon.layers import Layers

_EXPONENTS = 2.0 ** np.arange(-6, 13)
"""Of the bound, for rewards of size 1: each is as good for means of so and so many rollouts."""
_MOST_NUMBERS = 1 << 28
"""Numbers in the tables of all layers (2 GB) from which on there are none."""
_MOST_RETURNS = 256
"""Different returns of random play up to which they are told apart, with their probabilities."""


_DRAWN_AT_ONCE = 1 << 12
_ROWS_AT_ONCE = 1 << 12
"""States whose successors are looked up together: what is worked out of them stays in the cache."""
_MANY = 0.25
"""From which share of the states on all of them are looked up, those that do not count as nothing."""
_FEWEST_COUNTED = 32
"""From so many returns of a state on they are counted, not drawn one by one."""


class Tails:
    """Random returns of every state of every layer.

    Attributes:
        exponents: (n,) of the bound.
        best: for each layer (size,) the best return from there on.
        logs: for each layer (size, n) log E exp(exponent · (return - best return)).
        returns: for each layer the returns that random play may have, or None where they are too many.
        chances: for each layer (size, returns) how probable each is; None where they are too many.
    """

    def __init__(self, layers: Layers, discount: float) -> None:
        """Work out all layers, the last first."""
        horizon = layers.mdp.horizon
        largest = float(np.abs(layers.mdp.rewards).max()) or 1.0
        self.exponents = _EXPONENTS / largest
        self.best: list[np.ndarray] = [np.zeros(0)] * horizon
        self.logs: list[np.ndarray] = [np.zeros(0)] * horizon
        self.returns: list[np.ndarray | None] = [None] * horizon
        self.chances: list[np.ndarray | None] = [None] * horizon
        self._summed: dict[int, np.ndarray] = {}
        best, moments = np.zeros(0), np.zeros((0, len(self.exponents)))
        for t in reversed(range(horizon)):
            best, moments = self._layer(layers, t, discount**t, best, moments)
            self.best[t] = best
            with np.errstate(divide="ignore"):
                self.logs[t] = np.log(moments)
            self._tell_returns(layers, t, discount**t)

    @staticmethod
    def fit(layers: Layers) -> bool:
        """Are the layers few enough for such tables?"""
        return layers.entries * len(_EXPONENTS) <= _MOST_NUMBERS

    def log_chance(self, t: int, places: np.ndarray, short: np.ndarray, m: np.ndarray | float) -> np.ndarray:
        """The logarithm of a bound on the probability that a mean of m returns is at most so far below the best.

        Args:
            t: the layer in which the rollouts begin.
            places: (n,) where the states stand in it.
            short: (n,) how far below the best return of its state the mean may lie.
            m: of how many rollouts the mean is.
        """
        least = (self.logs[t][places] + self.exponents * np.maximum(short, 0)[:, None]).min(axis=1)
        return np.where(short < 0, -np.inf, np.minimum(m * least, 0.0))

    def likely(self, t: int, places: np.ndarray, log_many: np.ndarray, m: float) -> np.ndarray:
        """(n,) about which mean is the greatest of exp(log_many) means of m returns, as the bound has it."""
        below = (self.logs[t][places] + (log_many / m)[:, None]) / self.exponents
        return self.best[t][places] + np.minimum(below.min(axis=1), 0.0)

    def drawn(self, t: int, places: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray | None:
        """(n,) the sums of m random returns from each of these states; None where returns are too many to be listed."""
        returns, chances = self.returns[t], self.chances[t]
        if returns is None or chances is None:
            return None
        found = np.empty(len(places))
        for first in range(0, len(places), _DRAWN_AT_ONCE):
            part = slice(first, first + _DRAWN_AT_ONCE)
            if m < _FEWEST_COUNTED:
                found[part] = returns[self._which(t, np.repeat(places[part], m), rng)].reshape(-1, m).sum(axis=1)
            else:
                found[part] = rng.multinomial(m, chances[places[part]]) @ returns
        return found

    def _which(self, t: int, places: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(n,) the numbers of random returns, by bisection of what is as probable or less."""
        chances = self.chances[t]
        assert chances is not None
        if t not in self._summed:
            self._summed = {t: np.cumsum(chances, axis=1)}
        summed, drawn = self._summed[t], rng.random(len(places))
        low, high = np.zeros(len(places), dtype=np.intp), np.full(len(places), summed.shape[1] - 1)
        for _ in range(int(summed.shape[1]).bit_length()):
            middle = (low + high) // 2
            above = (summed[places, middle] <= drawn) & (middle < high)
            low, high = np.where(above, middle + 1, low), np.where(above, high, middle)
        return low

    def _layer(
        self, layers: Layers, t: int, weight: float, following: np.ndarray, moments: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best returns of a layer, and E exp(exponent · (return - best return))."""
        rows, actions = layers.rows(t), layers.mdp.num_actions
        tops = layers.spread(t + 1, following)
        after = [layers.successors(action, rows) for action in range(actions)]
        each = np.stack([tops.take(after[a]) + weight * layers.rewards(a, rows) for a in range(actions)])
        best = each.max(axis=0)
        total = np.zeros((len(best), len(self.exponents)))
        spread = np.ones((layers.mdp.num_states + 1, len(self.exponents)))
        if t + 1 < layers.mdp.horizon:
            spread[rows_of(layers, t + 1)] = moments
        for part in _parts(len(best)):
            factors, met = np.empty((2, *total[part].shape))
            for action in range(actions):
                np.multiply((each[action, part] - best[part])[:, None], self.exponents, out=factors)
                np.take(spread, after[action][part], axis=0, out=met, mode="clip")
                met *= np.exp(factors, out=factors)
                total[part] += met
        return best, total / actions

    def _tell_returns(self, layers: Layers, t: int, weight: float) -> None:
        """Which returns random play has from a layer on, and how probably, as long as they are few."""
        mdp, last = layers.mdp, t + 1 == layers.mdp.horizon
        following, chances = (np.zeros(1), np.zeros((0, 1))) if last else (self.returns[t + 1], self.chances[t + 1])
        if following is None or chances is None:
            return
        rows = layers.rows(t)
        nothing = int(np.searchsorted(following, 0.0))
        if nothing == len(following) or following[nothing] != 0.0:
            following = np.insert(following, nothing, 0.0)
            chances = np.insert(chances, nothing, 0.0, axis=1)
        # After the states come the end, after which nothing is paid, and what does not count at all.
        end, none = mdp.num_states, mdp.num_states + 1
        spread = np.zeros((mdp.num_states + 2, len(following)))
        if not last:
            spread[rows_of(layers, t + 1)] = chances
        else:
            spread[:none, nothing] = 1.0
        spread[end] = 0.0
        spread[end, nothing] = 1.0
        paid = [weight * layers.rewards(action, rows).astype(np.float64) for action in range(mdp.num_actions)]
        after = [layers.successors(action, rows) for action in range(mdp.num_actions)]
        kinds = np.unique(np.concatenate(paid))
        going_on = np.unique(np.concatenate([own[to != end] for own, to in zip(paid, after, strict=True)]))
        sums = np.unique(np.concatenate([kinds, (going_on[:, None] + following).ravel()]))
        if len(sums) > 4 * _MOST_RETURNS or len(sums) * layers.size(t) > _MOST_NUMBERS // 4:
            return
        found = np.zeros((layers.size(t), len(sums)))
        for own, to in zip(paid, after, strict=True):
            for kind in kinds:
                those = own == kind
                if kind not in going_on:
                    found[np.flatnonzero(those), np.searchsorted(sums, kind)] += 1.0
                elif those.mean() < _MANY:
                    places = np.flatnonzero(those)
                    found[places[:, None], np.searchsorted(sums, kind + following)] += spread[to[places]]
                else:
                    _add_rows(found, np.searchsorted(sums, kind + following), spread, np.where(those, to, none))
        met = found.any(axis=0)
        if met.sum() <= _MOST_RETURNS:
            self.returns[t], self.chances[t] = sums[met], found[:, met] / mdp.num_actions
            self._forget(t)

    def _forget(self, t: int) -> None:
        """Give up the returns of the last layers, which fewest runs come to, where they take too much memory."""
        held = [0 if chances is None else chances.size for chances in self.chances]
        while sum(held) > _MOST_NUMBERS and max(np.flatnonzero(held)) > t + 1:
            last = int(max(np.flatnonzero(held)))
            self.chances[last], held[last] = None, 0


def rows_of(layers: Layers, t: int) -> slice | np.ndarray:
    """The states of layer t, as an index into arrays that have entries for more than states."""
    layer = layers.states[t]
    return slice(layers.mdp.num_states) if layer is None else layer


def _parts(size: int) -> Iterator[slice]:
    """So many states, some at a time."""
    for first in range(0, size, _ROWS_AT_ONCE):
        yield slice(first, min(first + _ROWS_AT_ONCE, size))


def _add_rows(found: np.ndarray, columns: np.ndarray, spread: np.ndarray, which: np.ndarray) -> None:
    """Add to these columns of every row the row of `spread` that it names."""
    first, last = int(columns[0]), int(columns[-1])
    side_by_side = slice(first, last + 1) if last - first + 1 == len(columns) else columns
    for part in _parts(len(found)):
        found[part][:, side_by_side] += spread.take(which[part], axis=0)
