"""Controllers that learn nothing: functions of what is seen of an intersection."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lcd.envs.traffic.green_phases import PHASES
from lcd.envs.traffic.network import MOVEMENTS, exit_of, is_main
from lcd.envs.traffic.sensing import Seen
from lcd.envs.traffic.simulation import DECISION

CYCLE, LEFT = 18, 2
"""Decisions of an untuned cycle (90 s, as in SUMO's default), and of its phases of left turns."""


def untuned_plan(served: np.ndarray) -> np.ndarray:
    """(copies, phases) decisions for each phase: the same for both roads, and little for left turns."""
    left = served * LEFT
    through = (CYCLE - left[:, 1] - left[:, 3]) / 2
    return np.stack([np.ceil(through), left[:, 1], np.floor(through), left[:, 3]], axis=1).astype(np.int64)


def fixed_time(seen: Seen, plan: np.ndarray) -> np.ndarray:
    """Each phase in turn for as many decisions as the plan, (copies, phases), says; 0 leaves it out."""
    due = seen.age >= plan[np.arange(len(plan)), seen.phase] * DECISION
    following = seen.phase.copy()
    for after in range(len(PHASES), 0, -1):
        candidate = (seen.phase + after) % len(PHASES)
        following = np.where(plan[np.arange(len(plan)), candidate] > 0, candidate, following)
    return np.where(due, following, seen.phase)


def movement_pressures(seen: Seen) -> np.ndarray:
    """(copies, approaches, movements): vehicles before a movement, less its share of those on the road behind."""
    approaches = range(seen.leaving.shape[1])
    # What leaves an intersection of its own meets no further one: each road behind counts once a movement.
    out = [[exit_of(approach, movement) for movement in MOVEMENTS] for approach in approaches]
    return seen.queues + seen.moving - seen.leaving[:, np.array(out)] / len(MOVEMENTS)


def pressures(seen: Seen) -> np.ndarray:
    """(copies, phases): vehicles before the movements that a phase is for, less those behind (Varaiya 2013).

    Where left turns have a phase of their own they do not count for that of their road, which lets them go if nobody
    comes against them.
    """
    weights = movement_pressures(seen)
    copies, approaches, _ = weights.shape
    left = MOVEMENTS.index("left")
    found = np.zeros((copies, len(PHASES)))
    for phase in range(len(PHASES)):
        road = [approach for approach in range(approaches) if is_main(approach) == (phase < 2)]
        own = weights[:, road, left].sum(axis=1)
        if phase % 2:
            found[:, phase] = own
        else:
            found[:, phase] = weights[:, road, :left].sum(axis=(1, 2)) + np.where(seen.served[:, phase + 1], 0, own)
    return np.where(seen.served, found, -np.inf)


def max_pressure(seen: Seen) -> np.ndarray:
    """The phase of the greatest pressure; the present one, where no other has more."""
    found = pressures(seen)
    best = found.argmax(axis=1)
    copies = np.arange(len(best))
    return np.where(found[copies, best] > found[copies, seen.phase], best, seen.phase)


def plans(served: Sequence[bool]) -> list[tuple[int, ...]]:
    """Fixed-time plans worth trying, the untuned one first, short and long cycles in turn."""
    lefts = (1, 2) if any(served[1::2]) else (0,)
    first = tuple(int(steps) for steps in untuned_plan(np.array([served]))[0])
    greens = ((2, 2), (4, 4), (6, 6), (12, 12), (4, 2), (6, 4), (9, 6), (12, 9), (6, 2), (9, 4), (3, 3), (3, 2))
    others = [(main, left * served[1], crossing, left * served[3]) for left in lefts for main, crossing in greens]
    return [first, *(tuple(map(int, plan)) for plan in others)]
