"""The exact absorbing chain of a CT-graph, written from the paper's definition of states alone: a twin for tests."""

from __future__ import annotations

from itertools import product

import numpy as np


def states(b: int, d: int) -> list[tuple]:
    """("home",), ("fail",), and (kind, decisions so far)."""
    found: list[tuple] = [("home",), ("fail",)]
    for depth in range(d + 1):
        for path in product(range(1, b + 1), repeat=depth):
            found.append(("wait", path))
            found.append(("decision" if depth < d else "end", path))
    return found


def arrivals(state: tuple, action: int, d: int, p: float) -> list[tuple[float, tuple]]:
    """Where an action leads, with probabilities."""
    if state == ("home",):
        return [(1.0, ("wait", ()))]
    kind, path = state
    if kind == "wait":
        if action != 0:
            return [(1.0, ("fail",))]
        return [(p, state), (1 - p, ("end" if len(path) == d else "decision", path))]
    return [(1.0, ("fail",) if action == 0 else ("wait", (*path, action)))]


class Chain:
    """Transition matrix between transient states and into absorbing ones, under a policy."""

    def __init__(self, b: int, d: int, p: float, policy: str) -> None:
        everything = states(b, d)
        self.absorbing = [s for s in everything if s[0] in ("fail", "end")]
        self.transient = [s for s in everything if s[0] not in ("fail", "end")]
        place = {s: i for i, s in enumerate(self.transient)}
        into = {s: i for i, s in enumerate(self.absorbing)}
        self.q = np.zeros((len(place), len(place)))
        self.r = np.zeros((len(place), len(into)))
        for state, row in place.items():
            allowed = range(b + 1)
            if policy == "navigation":
                allowed = [0] if state[0] in ("wait", "home") else range(1, b + 1)
            for action in allowed:
                for probability, after in arrivals(state, action, d, p):
                    share = probability / len(allowed)
                    if after in place:
                        self.q[row, place[after]] += share
                    else:
                        self.r[row, into[after]] += share
        self.visits = np.linalg.solve((np.eye(len(place)) - self.q).T, np.eye(len(place))[0])

    @property
    def length(self) -> float:
        """Mean number of steps until absorption."""
        return float(self.visits.sum())

    def absorbed(self) -> dict[tuple, float]:
        """Probability of ending in each absorbing state."""
        return dict(zip(self.absorbing, self.visits @ self.r, strict=True))

    def length_distribution(self, most: int) -> np.ndarray:
        """P(length = n) for n = 0..most."""
        now, found = np.eye(len(self.q))[0], [0.0]
        for _ in range(most):
            found.append(float((now @ self.r).sum()))
            now = now @ self.q
        return np.array(found)
