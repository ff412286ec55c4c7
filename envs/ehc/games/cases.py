"""The games of the Effective Horizon Challenge before the filter: boards, and opponents fixed by a rule and a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from lcd.envs.ehc.games.checkers import Checkers
from lcd.envs.ehc.games.chess import Chess
from lcd.envs.ehc.games.connect_four import ConnectFour
from lcd.envs.ehc.games.game import Game
from lcd.envs.ehc.games.go import Go
from lcd.envs.ehc.games.opponents import NOISE_PARTS, Opponent
from lcd.envs.ehc.games.solution import Positions, Solution
from lcd.envs.ehc.games.versus import against
from lcd.envs.ehc.recipe import Recipe
from lcd.envs.tabular.mdp import TabularMDP

BOARDS: dict[str, tuple[str, Callable[[], Game]]] = {
    "connect-four-7x4": ("connect-four", partial(ConnectFour, 7, 4)),
    "connect-four-5x5": ("connect-four", partial(ConnectFour, 5, 5)),
    "connect-four-4x6": ("connect-four", partial(ConnectFour, 4, 6)),
    "go-4x4": ("go", partial(Go, 4, 4)),
    "go-3x4": ("go", partial(Go, 3, 4)),
    "checkers-5x5": ("checkers", partial(Checkers, 5, 5, 2)),
    "checkers-6x4": ("checkers", partial(Checkers, 6, 4, 2)),
    "chess-4x3": ("chess", partial(Chess, ("rk.", "p..", "..P", ".KR"))),
    "chess-4x3-queens": ("chess", partial(Chess, ("kqr", "p..", "..P", "RQK"))),
    "chess-4x4": ("chess", partial(Chess, ("r..k", "p...", "...P", "K..R"))),
}
"""Board → the family that it belongs to, and the game; rows × columns."""


@dataclass(frozen=True)
class Case:
    """One MDP before it is made: a board, who plays on it, and what is paid."""

    board: str
    letter: str
    temperature: float
    noise: int
    seed: int
    shaped: bool = False

    @property
    def name(self) -> str:
        """The board, and a letter."""
        return f"{self.board}-{self.letter}"

    @property
    def about(self) -> str:
        """What sets it apart, in one line."""
        play = f"noisy-optimal ({self.noise}/{NOISE_PARTS})" if self.noise else "optimal"
        shaping = ", shaped" if self.shaped else ""
        return f"{play} Q, temperature {self.temperature}, seed {self.seed}{shaping}"

    def make(self) -> TabularMDP:
        """The MDP."""
        solution = _solution(self.board, self.noise, self.shaped)
        return against(solution, Opponent(self.temperature, self.noise, self.seed), self.name)

    def recipe(self) -> Recipe:
        """How it is made, for the benchmark."""
        return Recipe(self.name, BOARDS[self.board][0], "game", self.make, self.about)


@lru_cache(maxsize=1)
def _positions(board: str) -> Positions:
    return Positions(BOARDS[board][1]())


@lru_cache(maxsize=1)
def _solution(board: str, noise: int, shaped: bool) -> Solution:
    return Solution(_positions(board), noise, shaped)


def forget() -> None:
    """Free the solution of the board that was asked for last, which is kept for its next opponent."""
    _solution.cache_clear()
    _positions.cache_clear()


FIRST = (
    Case("connect-four-7x4", "a", 0.5, 0, 1),
    Case("connect-four-7x4", "b", 0.25, 0, 2),
    Case("connect-four-7x4", "c", 0.5, 8, 3),
    Case("connect-four-7x4", "d", 0.25, 8, 4),
    Case("connect-four-5x5", "a", 0.5, 0, 1),
    Case("connect-four-5x5", "b", 0.25, 0, 2),
    Case("connect-four-5x5", "c", 0.5, 8, 3),
    Case("connect-four-5x5", "d", 0.25, 8, 4),
    Case("connect-four-4x6", "a", 0.25, 0, 1),
    Case("connect-four-4x6", "b", 0.25, 8, 2),
    Case("go-4x4", "a", 0.5, 0, 1),
    Case("go-4x4", "b", 0.25, 0, 2),
    Case("go-4x4", "c", 0.25, 8, 3),
    Case("go-4x4", "d", 0.5, 0, 4, True),
    Case("go-4x4", "e", 0.5, 8, 5, True),
    Case("go-4x4", "f", 0.25, 8, 6, True),
    Case("go-3x4", "a", 0.25, 8, 1),
    Case("go-3x4", "b", 0.25, 8, 2, True),
    Case("go-3x4", "c", 0.02, 8, 101),
    Case("go-3x4", "d", 0.01, 8, 102),
    Case("go-3x4", "e", 0.005, 8, 103),
    Case("go-3x4", "f", 0.02, 8, 104, True),
    Case("go-3x4", "g", 0.01, 8, 105, True),
    Case("go-3x4", "h", 0.005, 8, 106, True),
    Case("checkers-5x5", "a", 0.5, 0, 1),
    Case("checkers-5x5", "b", 0.25, 8, 2),
    Case("checkers-5x5", "c", 0.5, 0, 3, True),
    Case("checkers-5x5", "d", 0.25, 8, 4, True),
    Case("checkers-6x4", "a", 0.5, 0, 1),
    Case("checkers-6x4", "b", 0.25, 8, 2),
    Case("checkers-6x4", "c", 0.5, 0, 3, True),
    Case("checkers-6x4", "d", 0.25, 8, 4, True),
    Case("chess-4x3", "a", 0.5, 0, 1),
    Case("chess-4x3", "b", 0.25, 8, 2),
    Case("chess-4x3", "c", 0.5, 0, 3, True),
    Case("chess-4x3", "d", 0.25, 8, 4, True),
    Case("chess-4x3-queens", "a", 0.5, 0, 1),
    Case("chess-4x3-queens", "b", 0.25, 8, 2, True),
    Case("chess-4x4", "a", 0.5, 0, 1),
    Case("chess-4x4", "b", 0.25, 8, 2),
    Case("chess-4x4", "c", 0.5, 0, 3, True),
    Case("chess-4x4", "d", 0.25, 8, 4, True),
)
"""The cases that were chosen one by one; those of one solution stand together."""
TEMPERATURES = (0.05, 0.02, 0.01, 0.005)
_NOISE, _FIRST_SEED = 8, 201


def _swept(board: str, first_letter: str) -> list[Case]:
    """A board's further cases, by one rule for all boards that was fixed before anything was known of them.

    Noise of 8/64, each temperature with two seeds; and where the game has shaping, each with another one, shaped.
    Seeds are counted from 201, letters from the first that is free.
    """
    kinds = [(temperature, False) for temperature in TEMPERATURES for _ in range(2)]
    if BOARDS[board][0] != "connect-four":
        kinds += [(temperature, True) for temperature in TEMPERATURES]
    return [
        Case(board, chr(ord(first_letter) + place), temperature, _NOISE, _FIRST_SEED + place, shaped)
        for place, (temperature, shaped) in enumerate(kinds)
    ]


FREE_LETTERS = {
    "connect-four-7x4": "e", "connect-four-5x5": "e", "connect-four-4x6": "c", "go-4x4": "g", "go-3x4": "i",
    "checkers-5x5": "e", "checkers-6x4": "e", "chess-4x3": "e", "chess-4x3-queens": "c", "chess-4x4": "e",
}  # fmt: skip
"""Board → the letter of the first of its further cases."""
SWEPT = tuple(case for board, letter in FREE_LETTERS.items() for case in _swept(board, letter))
UNBEATABLE_AT = {
    "connect-four-7x4": 0.05, "connect-four-5x5": 0.02, "connect-four-4x6": 0.05, "checkers-6x4": 0.05,
    "chess-4x3": 0.05, "chess-4x3-queens": 0.05, "chess-4x4": 0.05,
}  # fmt: skip
"""Board → the greatest temperature of the sweep at which none of its opponents can be beaten."""
GUESSED_AT = 0.25
"""The temperature at which random guessing solves nearly all of the first cases."""
ROUNDS, _STEPS_BETWEEN, _FIRST_BETWEEN = 6, 4, 301


def _between(board: str) -> list[list[Case]]:
    """A board's cases between those two temperatures, round by round, the greatest temperature first.

    Noise of 8/64, four temperatures at equal ratios; where the game has shaping every other round is shaped. Seeds are
    counted from 301, and the cases are numbered.
    """
    low = UNBEATABLE_AT[board]
    ratio = GUESSED_AT / low
    places = [place / (_STEPS_BETWEEN + 1) for place in range(_STEPS_BETWEEN, 0, -1)]
    temperatures = [round(low * ratio**place, 3) for place in places]
    may_shape = BOARDS[board][0] != "connect-four"
    rounds = []
    for number in range(ROUNDS):
        first = number * _STEPS_BETWEEN
        rounds.append(
            [
                Case(board, str(first + k + 1), each, _NOISE, _FIRST_BETWEEN + first + k, may_shape and number % 2 == 1)
                for k, each in enumerate(temperatures)
            ]
        )
    return rounds


BETWEEN = tuple(case for cases in zip(*map(_between, UNBEATABLE_AT), strict=True) for each in cases for case in each)
"""The cases in between, in the order in which they are asked; no more of them are once there are 28 games."""
CASES = (*FIRST, *SWEPT, *BETWEEN)
"""Every case."""
