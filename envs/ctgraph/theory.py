"""The CT-graph's closed forms (Soltoggio et al. 2023), all as functions of branching b, depth d and wait probability p.

Numbers in brackets are the paper's equations. Where its print and its meaning differ, the README beside this file
says so.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lcd.envs.checks import is_number, require_whole_number
from lcd.envs.errors import InputError, nearest

POLICIES = ("random", "navigation", "optimal")
MOST_DIGITS = 300
"""Decimal digits of the number of ends, up to which the closed forms are numbers."""


def check_shape(b: Any, d: Any, p: Any, prefix: str = "") -> None:
    """Refuse what is no shape of a graph; `prefix` goes before the names in the error's sentence."""
    require_whole_number(f"{prefix}b", b, 2)
    require_whole_number(f"{prefix}d", d, 1)
    if d > MOST_DIGITS * 4 or d * math.log10(b) > MOST_DIGITS:
        raise InputError(
            f"{prefix}d is {d}, but with b={b} the number of ends would have more than {MOST_DIGITS} digits: give less."
        )
    if not is_number(p) or not 0 <= p < 1:
        raise InputError(f"{prefix}p is {p!r}, but a wait probability is a number from 0 up to, but not, 1.")


def expected_length(b: int, d: int, p: float = 0.0, policy: str = "navigation") -> float:
    """E[ρ] (2): the mean number of steps of an episode.

    Args:
        b: branching factor.
        d: depth.
        p: probability of remaining in a wait state.
        policy: "navigation" (or "optimal", which takes as long), or "random": uniform actions, mostly cut short.
    """
    check_shape(b, d, p)
    if policy not in POLICIES:
        raise InputError(f"policy is {policy!r}, which is none of its values; {nearest(policy, POLICIES)}")
    if policy != "random":
        return (d + 1) / (1 - p) + d + 1
    visits = (b + 1) / (b + 1 - p)
    escape = (1 - p) / (b + 1 - p)
    onward = escape * b / (b + 1)
    waits = visits * (1 - onward ** (d + 1)) / (1 - onward)
    decisions = escape * (1 - onward**d) / (1 - onward)
    return 1 + waits + decisions


def wait_visits(b: int, d: int, p: float = 0.0) -> float:
    """Mean number of steps that a navigating agent spends in one wait state."""
    check_shape(b, d, p)
    return 1 / (1 - p)


def length_probability(length: Any, b: int, d: int, p: float = 0.0) -> Any:
    """P(ρ = length) under the navigation policy (12); `length` is a number or an array of them."""
    check_shape(b, d, p)
    lengths = np.asarray(length)
    result = np.array([_length_probability(int(n) - 2 * (d + 1), d, p) for n in lengths.ravel()])
    return result.reshape(lengths.shape) if lengths.ndim else float(result[0])


def _length_probability(waits: int, d: int, p: float) -> float:
    if waits < 0 or (p == 0 and waits > 0):
        return 0.0
    if p == 0:
        return 1.0
    ways = math.lgamma(waits + d + 1) - math.lgamma(waits + 1) - math.lgamma(d + 1)
    return math.exp(ways + waits * math.log(p) + (d + 1) * math.log1p(-p))


def reward_probability(b: int, d: int, p: float = 0.0) -> float:
    """P_R (3): probability that an episode of random actions ends at the goal (or at any one end)."""
    check_shape(b, d, p)
    return (b + 1) * ((1 - p) / ((b + 1) * (b + 1 - p))) ** (d + 1)


def end_probability(b: int, d: int, p: float = 0.0) -> float:
    """P_E (4): probability that an episode of random actions ends at an end state at all."""
    return reward_probability(b, d, p) * b**d


def navigation_reward_probability(b: int, d: int, p: float = 0.0) -> float:
    """P_RNP (5): probability that an episode of the navigation policy ends at the goal; p does not matter."""
    check_shape(b, d, p)
    return float(b) ** -d


def num_ends(b: int, d: int, p: float = 0.0) -> int:
    """The number of end states."""
    check_shape(b, d, p)
    return b**d


def num_decisions(b: int, d: int, p: float = 0.0) -> int:
    """The number of decision states."""
    check_shape(b, d, p)
    return (b**d - 1) // (b - 1)


def num_waits(b: int, d: int, p: float = 0.0) -> int:
    """The number of wait states."""
    check_shape(b, d, p)
    return (b ** (d + 1) - 1) // (b - 1)


def num_states(b: int, d: int, p: float = 0.0) -> int:
    """|S| (6): wait, decision and end states, home and fail; p does not matter."""
    return num_waits(b, d, p) + num_decisions(b, d, p) + num_ends(b, d, p) + 2


def expected_search(b: int, d: int, p: float = 0.0) -> float:
    """E[κ] (9): mean number of episodes until a search without repetition is at the goal; p does not matter."""
    check_shape(b, d, p)
    return (b**d + 1) / 2
