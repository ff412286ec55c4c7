"""Backward induction over a tabular MDP, laid out so that memory, not Python, is what it waits for.

An episode's states after t steps are a *layer*; only those are worked on. Games reach a state at one time or two, so
their layers together are little more than their states; where a layer has most of the states it is taken as all of
them, which saves a look-up. Rows go through the processor in blocks that fit its cache, one thread a core.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from lcd.envs.tabular.mdp import TERMINAL, TabularMDP
from lcd.process.limits import require_memory

BLOCK = 1 << 15
"""Rows that a thread works on at a time."""
_NEARLY_ALL = 0.6
"""Share of the states from which on a layer is taken as all of them."""

_FEW_ENTRIES = 1 << 24
"""States of all layers together that are not asked about."""

Rows = slice | np.ndarray


def require_room(mdp: TabularMDP, entries: int) -> None:
    """Refuse an MDP whose layers together have more states than can be worked on in this machine's memory."""
    bits = -(-mdp.num_actions // 8)
    needed = entries * (8 + 2 * bits) + mdp.num_states * mdp.num_actions * 20
    require_memory(f"{mdp.num_states:,} states, {mdp.num_actions} actions and horizon={mdp.horizon}", needed)


class Layers:
    """An MDP by action, with the states that can be met after each number of steps.

    Attributes:
        mdp: the MDP.
        after: for each action (states,) the next state; the number of states stands for the end.
        paid: for each action (states,) the reward.
        states: for t = 0 … horizon - 1 the sorted states that can be met after t steps; None stands for all states.
    """

    def __init__(self, mdp: TabularMDP, threads: int | None = None) -> None:
        """Lay an MDP out.

        Args:
            mdp: the MDP, taken as one without sticky actions.
            threads: how many work at a time; by default one a usable core.
        """
        self.mdp = mdp
        ends = mdp.num_states
        columns = [mdp.transitions[:, action] for action in range(mdp.num_actions)]
        self.after = [np.where(column == TERMINAL, ends, column).astype(np.intp) for column in columns]
        self.paid = [np.ascontiguousarray(mdp.rewards[:, action]) for action in range(mdp.num_actions)]
        self.states = self._reached()
        self._threads = threads or len(os.sched_getaffinity(0))

    def _reached(self) -> list[np.ndarray | None]:
        everything = self.mdp.num_states
        layers: list[np.ndarray | None] = []
        layer: np.ndarray | None = np.array([self.mdp.start], dtype=np.intp)
        mark = np.zeros(everything + 1, dtype=bool)
        met, asked = 0, _FEW_ENTRIES
        for _ in range(self.mdp.horizon):
            layers.append(layer)
            met += everything if layer is None else len(layer)
            if met > asked:
                require_room(self.mdp, met)
                asked = 2 * met
            mark[:] = False
            for after in self.after:
                mark[after if layer is None else after.take(layer)] = True
            following = np.flatnonzero(mark[:everything])
            nearly_all = len(following) > _NEARLY_ALL * everything
            if nearly_all and layer is None:
                # From all states again nearly all: it stays so.
                return layers + [None] * (self.mdp.horizon - len(layers))
            # Where two halves of the states take turns, they are held once.
            same = (each for each in layers[-2:] if each is not None and np.array_equal(each, following))
            layer = None if nearly_all else next(same, following)
        return layers

    def size(self, t: int) -> int:
        """How many states the layer t has."""
        layer = self.states[t]
        return self.mdp.num_states if layer is None else len(layer)

    @property
    def entries(self) -> int:
        """The sizes of all layers together."""
        return sum(self.size(t) for t in range(self.mdp.horizon))

    def spread(self, t: int, values: np.ndarray, room: np.ndarray | None = None) -> np.ndarray:
        """The values of layer t by state's number, and 0 for the end; other entries mean nothing.

        Args:
            t: the layer; at the horizon nothing follows any more, and all values are 0.
            values: (size of the layer,).
            room: an array to write into, (states + 1,).
        """
        dense = np.empty(self.mdp.num_states + 1) if room is None else room
        if t >= self.mdp.horizon:
            dense[:] = 0.0
            return dense
        layer = self.states[t]
        if layer is None:
            dense[:-1] = values
        else:
            dense[layer] = values
        dense[-1] = 0.0
        return dense

    def position(self, t: int, states: np.ndarray) -> np.ndarray:
        """Where states of layer t stand in it."""
        layer = self.states[t]
        return states if layer is None else np.searchsorted(layer, states)

    def following(self, states: np.ndarray, taken: np.ndarray) -> np.ndarray:
        """The states, sorted, that others lead to by the actions that are taken in them: (actions, n) truth values."""
        mark = np.zeros(self.mdp.num_states + 1, dtype=bool)
        for after, own in zip(self.after, taken, strict=True):
            mark[after.take(states[own])] = True
        return np.flatnonzero(mark[:-1])

    def blocks(self, t: int, work: Callable[[slice, Rows], None]) -> None:
        """Call `work(place, rows)` for all blocks of layer t: their places in the layer, and their states' numbers."""
        layer, size = self.states[t], self.size(t)
        places = [slice(first, min(first + BLOCK, size)) for first in range(0, size, BLOCK)]

        def one(place: slice) -> None:
            work(place, place if layer is None else layer[place])

        if len(places) < 2 or self._threads < 2:
            for place in places:
                one(place)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(one, places))

    def rows(self, t: int) -> Rows:
        """The states of layer t, as an index into arrays by state."""
        layer = self.states[t]
        return slice(None) if layer is None else layer

    def successors(self, action: int, rows: Rows) -> np.ndarray:
        """Where an action leads from these states."""
        after = self.after[action]
        return after[rows] if isinstance(rows, slice) else after.take(rows)

    def rewards(self, action: int, rows: Rows) -> np.ndarray:
        """What an action pays in these states."""
        paid = self.paid[action]
        return paid[rows] if isinstance(rows, slice) else paid.take(rows)

    def induction(self, choose: str, discount: float) -> list[np.ndarray]:
        """The values of all layers, t = 0 … horizon - 1, under the best (max), worst (min) or random policy (mean)."""
        values: list[np.ndarray] = [np.zeros(0)] * self.mdp.horizon
        following = np.zeros(0)
        for t in reversed(range(self.mdp.horizon)):
            values[t] = following = self.backed_up(t, following, choose, discount)
        return values

    def backed_up(self, t: int, following: np.ndarray, choose: str, discount: float) -> np.ndarray:
        """The values of layer t from those of layer t + 1."""
        dense = self.spread(t + 1, following)
        found = np.empty(self.size(t))
        combine = {"max": np.maximum, "min": np.minimum, "mean": np.add}[choose]
        actions = self.mdp.num_actions

        def work(place: slice, rows: Rows) -> None:
            total = found[place]
            for action in range(actions):
                worth = dense.take(self.successors(action, rows))
                worth *= discount
                worth += self.rewards(action, rows)
                if action == 0:
                    total[:] = worth
                else:
                    combine(total, worth, out=total)
            if choose == "mean":
                total /= actions

        self.blocks(t, work)
        return found
