"""Which games are in the benchmark: what the filter said of the cases, and how many of them the paper has."""

from __future__ import annotations

from lcd.envs.ehc.games.cases import BETWEEN, BOARDS, FIRST, SWEPT, Case
from lcd.envs.ehc.recipe import Recipe

GAMES = 28
"""How many games the paper has; the cases in between are asked until there are as many."""


def _named(board: str, names: str) -> tuple[str, ...]:
    """A board's cases by their letters, or by their numbers with spaces between them."""
    return tuple(f"{board}-{each}" for each in (names.split() if names[0].isdigit() else names))


GUESSED = (
    *_named("connect-four-7x4", "abcd"), *_named("connect-four-5x5", "abcdf"), *_named("connect-four-4x6", "ab"),
    *_named("go-4x4", "abcde"), *_named("go-3x4", "abcijkmnoq"), *_named("checkers-5x5", "abcdefghijklmn"),
    *_named("checkers-6x4", "ab"), *_named("chess-4x3", "abcd"), "chess-4x3-queens-a", *_named("chess-4x4", "abcd"),
    *_named("connect-four-7x4", "1 2 3"), *_named("connect-four-5x5", "1 2"), *_named("connect-four-4x6", "1 2"),
    "chess-4x3-1", "chess-4x3-queens-1",
)  # fmt: skip
"""Cases that random guessing solves within ten million timesteps: their opponents make too many mistakes."""
UNBEATEN = (
    *_named("connect-four-7x4", "efghijkl"), *_named("connect-four-5x5", "ghijkl"),
    *_named("connect-four-4x6", "cdefghij"), *_named("checkers-6x4", "efghijklmnop"),
    *_named("chess-4x3", "efghijklmnop"), *_named("chess-4x3-queens", "cdefghijklmn"),
    *_named("chess-4x4", "efghijklmnop"),
    *_named("connect-four-4x6", "3 4"), *_named("checkers-6x4", "1 2 3 4"), *_named("chess-4x3", "3 4"),
)  # fmt: skip
"""Those whose opponents the agent cannot beat."""
SEARCHED = (*_named("go-3x4", "frst"), "go-4x4-f")
"""Those that GORP solves within as many."""
MISLED = ("checkers-6x4-c", "chess-4x3-queens-b")
"""Those in which what is optimal with a discount of .99 is not optimal without."""
REMOVED = frozenset((*GUESSED, *UNBEATEN, *SEARCHED, *MISLED))


def asked() -> tuple[Case, ...]:
    """The cases that the filter is asked of: the first, the sweep, and those in between until there are enough."""
    found = [*FIRST, *SWEPT]
    games = sum(case.name not in REMOVED for case in found)
    for case in BETWEEN:
        if games == GAMES:
            break
        found.append(case)
        games += case.name not in REMOVED
    return tuple(found)


def _recipes() -> tuple[Recipe, ...]:
    """The games of the benchmark; those of one two-player solution stand together, since only the last one is kept."""
    places = {board: place for place, board in enumerate(BOARDS)}
    kept = [case for case in asked() if case.name not in REMOVED]
    kept.sort(key=lambda case: (places[case.board], case.noise, case.shaped))
    return tuple(case.recipe() for case in kept)


RECIPES = _recipes()
