"""States of the tree: their numbers, their kinds and the observation ids that they show.

Wait states are numbered as in a heap: 0 is the first, and branch a = 1..b of the decision after wait state k leads to
wait state b·k + a. The decision after wait state k is decision k; the end after wait state k is end k minus the
number of wait states above the last level. So a shallower graph's states have the same numbers in a deeper one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from lcd.envs.ctgraph.theory import num_decisions, num_ends, num_waits
from lcd.envs.errors import InputError

HOME, WAIT, DECISION, END, FAIL = range(5)
KINDS = ("home", "wait", "decision", "end", "fail")
SET_OF_KIND = ("H_IDs", "W_IDs", "D_IDs", "E_IDs", "F_IDs")
Range = tuple[int, int]


def place_sets(b: int, d: int, observations: Any) -> dict[str, Range]:
    """The ids of every kind of state: those given, and for the others the lowest that no set has yet."""
    mdp_w, mdp_d = observations.MDP_W, observations.MDP_D
    needed = {
        "H_IDs": 1,
        "F_IDs": 1,
        "W_IDs": num_waits(b, d) if mdp_w else 1,
        "D_IDs": num_decisions(b, d) if mdp_d else 1,
        "E_IDs": num_ends(b, d) if mdp_w and mdp_d else 1,
    }
    sets = {name: getattr(observations, name) for name in needed if getattr(observations, name) is not None}
    for name, flag in (("W_IDs", mdp_w), ("D_IDs", mdp_d)):
        if flag and name in sets and sets[name][1] - sets[name][0] + 1 < needed[name]:
            raise InputError(
                f"observations.{name} is {list(sets[name])}, but MDP_{name[0]} asks for {needed[name]} ids, one for "
                "each state; leave it out to have as many as are needed."
            )
    for name, count in needed.items():
        if name not in sets:
            sets[name] = _lowest_free(count, list(sets.values()))
    return {name: sets[name] for name in SET_OF_KIND}


def _lowest_free(count: int, taken: list[Range]) -> Range:
    first = 0
    for low, high in sorted(taken):
        if first + count <= low:
            break
        first = max(first, high + 1)
    return first, first + count - 1


class Node(NamedTuple):
    """A state, for pictures and comparisons."""

    kind: int
    number: int
    path: tuple[int, ...]
    """The decisions that led there."""
    ids: Range
    """The observation ids that it may show, first and last."""


def nodes(knobs: Any) -> Iterator[Node]:
    """Every state of a graph: home, fail, then the tree from the root."""
    shape, sets = knobs.graph_shape, knobs.id_sets
    yield Node(HOME, 0, (), sets["H_IDs"])
    yield Node(FAIL, 0, (), sets["F_IDs"])
    level: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    for depth in range(shape.d + 1):
        for number, path in level:
            yield Node(WAIT, number, path, ids_of(knobs, WAIT, number))
        if depth == shape.d:
            above = num_decisions(shape.b, shape.d)
            yield from (Node(END, n - above, path, ids_of(knobs, END, n - above)) for n, path in level)
            return
        yield from (Node(DECISION, n, path, ids_of(knobs, DECISION, n)) for n, path in level)
        level = [(shape.b * n + a, (*path, a)) for n, path in level for a in range(1, shape.b + 1)]


def has_own_id(observations: Any, kind: int) -> bool:
    """Is the id of a state of that kind fixed by its number, rather than drawn from its set at every visit?"""
    own_w, own_d = observations.MDP_W, observations.MDP_D
    return {WAIT: own_w, DECISION: own_d, END: own_w and own_d}.get(kind, False)


def shown_ids(knobs: Any) -> set[int]:
    """All ids that a graph ever shows."""
    shape = knobs.graph_shape
    states = {WAIT: num_waits, DECISION: num_decisions, END: num_ends}
    found: set[int] = set()
    for kind, name in enumerate(SET_OF_KIND):
        first, last = knobs.id_sets[name]
        if has_own_id(knobs.observations, kind):
            last = min(last, first + states[kind](shape.b, shape.d) - 1)
        found.update(range(first, last + 1))
    return found


def ids_of(knobs: Any, kind: int, number: int) -> Range:
    """The ids that one state may show."""
    first, last = knobs.id_sets[SET_OF_KIND[kind]]
    if not has_own_id(knobs.observations, kind):
        return first, last
    own = first + number % (last - first + 1)
    return own, own
