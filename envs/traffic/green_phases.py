"""The four green phases of an intersection, as SUMO's signals show them."""

from __future__ import annotations

from collections.abc import Sequence

from lcd.envs.families.family import Point
from lcd.envs.traffic.network import APPROACHES, MOVEMENTS, is_main, lanes_of

PHASES = ("main", "main left", "crossing", "crossing left")
"""Green for a road, where left turns give way to who comes against them; and for its left turns alone."""
Link = tuple[int, int]
"""The approach and the movement (its place among `MOVEMENTS`) that a signal is for."""


def served(point: Point) -> tuple[bool, ...]:
    """Which phases a controller needs: those of left turns only where these have lanes of their own."""
    left = [bool(lanes_of(point, 0)[2]), bool(lanes_of(point, 1)[2])]
    return True, left[0], True, left[1]


def read_links(controlled: Sequence[Sequence[tuple[str, str, str]]]) -> list[Link]:
    """What each signal is for, from the lanes before and behind it (`x7.i0_1`, `x7.o2_0`)."""
    found = []
    for ((before, behind, _),) in controlled:
        approach, leaving = (int(lane.rpartition(".")[2][1]) for lane in (before, behind))
        found.append((approach, (approach - 1 - leaving) % len(APPROACHES)))
    return found


def state(links: Sequence[Link], phase: int) -> str:
    """A phase as SUMO has it, a letter a signal: G goes, g goes where nobody comes against it, r stands."""
    main, left_alone = phase < 2, phase % 2 == 1
    letters = []
    for approach, movement in links:
        left = MOVEMENTS[movement] == "left"
        if is_main(approach) != main or (left_alone and not left):
            letters.append("r")
        else:
            letters.append("g" if left and not left_alone else "G")
    return "".join(letters)


def yellow(before: str, after: str) -> str:
    """What is shown between two phases: yellow for who has to stand; who may go next waits, who goes on goes on."""
    shown = []
    for old, new in zip(before, after, strict=True):
        stops = old in "Gg" and new == "r"
        shown.append("y" if stops else old)
    return "".join(shown)
