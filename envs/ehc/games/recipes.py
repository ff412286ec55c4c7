"""Which games are in the benchmark: what the filter said of every case."""

from __future__ import annotations

from lcd.envs.ehc.games.cases import BETWEEN, BOARDS, CASES
from lcd.envs.ehc.recipe import Recipe


def _named(board: str, names: str) -> tuple[str, ...]:
    """A board's cases by their letters, or by their numbers with spaces between them."""
    return tuple(f"{board}-{each}" for each in (names.split() if names[0].isdigit() else names))


GUESSED = (
    *_named("connect-four-7x4", "abcd"), *_named("connect-four-5x5", "abcdf"), *_named("connect-four-4x6", "ab"),
    *_named("go-4x4", "abcde"), *_named("go-3x4", "abcijkmnoq"), *_named("checkers-5x5", "abcdefghijklmn"),
    *_named("checkers-6x4", "ab"), *_named("chess-4x3", "abcd"), "chess-4x3-queens-a", *_named("chess-4x4", "abcd"),
    *_named("connect-four-7x4", "1 2 3 5 6 7 9 10 13 14 15 17 18"),
    *_named("connect-four-5x5", "1 2 5 6 9 10 13 14 17 18"), *_named("connect-four-4x6", "1 2 5 6 9"),
    *_named("chess-4x3", "1 9 10 17"),
)  # fmt: skip
"""Cases that random guessing solves within ten million timesteps: their opponents make too many mistakes."""
UNBEATEN = (
    *_named("connect-four-7x4", "efghijkl"), *_named("connect-four-5x5", "ghijkl"),
    *_named("connect-four-4x6", "cdefghij"), *_named("checkers-6x4", "efghijklmnop"),
    *_named("chess-4x3", "efghijklmnop"), *_named("chess-4x3-queens", "cdefghijklmn"),
    *_named("chess-4x4", "efghijklmnop"),
    *_named("connect-four-7x4", "8 12 16 20"), *_named("connect-four-5x5", "8 11 12 15 16 20"),
    *_named("connect-four-4x6", "3 4 8"), *_named("chess-4x3", "3 4 7 8 12"),
)  # fmt: skip
"""Those whose opponents the agent cannot beat."""
SEARCHED = (*_named("go-3x4", "frst"), "go-4x4-f", "chess-4x3-5")
"""Those that GORP solves within as many."""
MISLED = ("checkers-6x4-c", "chess-4x3-queens-b")
"""Those in which what is optimal with a discount of .99 is not optimal without."""
OPEN = (
    *_named("go-4x4", "ijklmnopqr"), *_named("connect-four-4x6", "10 11 12 13 14 15 16 17 18 19 20 21 22 23 24"),
    *(case.name for case in BETWEEN if case.board in ("checkers-6x4", "chess-4x3-queens", "chess-4x4")),
)  # fmt: skip
"""Those that the filter has not been asked of yet: machine time was short, and nothing else decided which."""
NOT_ASKED = (
    *_named("connect-four-7x4", "21 22 23 24"), *_named("connect-four-5x5", "21 22 23 24"),
    *_named("chess-4x3", "19 20 21 22 23 24"),
)  # fmt: skip
"""Those of the second rule that come after there are 28 games."""
LEFT_OUT = (*GUESSED, *UNBEATEN, *SEARCHED, *MISLED, *OPEN, *NOT_ASKED)


def _recipes() -> tuple[Recipe, ...]:
    """The games of the benchmark; those of one two-player solution stand together, since only the last one is kept."""
    places = {board: place for place, board in enumerate(BOARDS)}
    kept = [case for case in CASES if case.name not in LEFT_OUT]
    kept.sort(key=lambda case: (places[case.board], case.noise, case.shaped))
    return tuple(case.recipe() for case in kept)


RECIPES = _recipes()
