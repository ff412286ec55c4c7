"""The two-player solution against published values and against slow sweeps over all positions."""

from functools import lru_cache

import numpy as np
import pytest

from lcd.envs.ehc.games import solution as module
from lcd.envs.ehc.games.checkers import Checkers
from lcd.envs.ehc.games.chess import Chess
from lcd.envs.ehc.games.connect_four import ConnectFour
from lcd.envs.ehc.games.go import Go
from lcd.envs.ehc.games.opponents import NOISE_PARTS, UNIT
from lcd.envs.ehc.games.solution import POTENTIAL_PARTS, Positions, Solution
from lcd.envs.errors import InputError

from .slow import SlowCheckers, SlowChess, SlowConnectFour, SlowGo
from .worlds import everything, solved

PAWNS = ("k.", "p.", ".P", ".K")
ROOKS = ("kr.", "...", ".RK")


def first_value(game, noise=0, shaped=False) -> float:
    positions = Positions(game)
    layer = int(game.layer(np.array([game.start]))[0])
    place = positions.find(np.array([game.start]), layer)[0]
    return Solution(positions, noise, shaped).values[layer][place] / UNIT


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (5, 4)])
def test_connect_four_on_these_boards_is_a_draw_as_published(rows, columns):
    assert first_value(ConnectFour(rows, columns)) == 0


def test_go_3x3_is_won_by_the_whole_board_as_published():
    assert first_value(Go(3, 3)) == 1
    assert first_value(Go(3, 3), shaped=True) == 1 + 9 / 64


def test_go_2x2_is_a_draw_by_the_move_limit():
    """Published: 1 point for Black, where no position may come again. The simple ko rule lets it come again."""
    assert first_value(Go(2, 2)) == 0
    assert superko_score() == 1


def superko_score() -> int:
    """The score of Go 2 × 2 where no board may come again, by alpha-beta over whole histories."""
    slow = SlowGo(2, 2)

    def best(board, player, passed, seen, low, high):
        sign = 1 if player == "X" else -1
        other = "O" if player == "X" else "X"
        worth = sign * slow.score(board) if passed else -best(board, other, True, seen, -high, -low)
        made = (after[0] for after, _ in slow.moves((board, player, None, False)) if not after[3])
        for after in sorted(made, key=lambda board: -sign * slow.score(board)):
            if worth >= high:
                break
            if after not in seen:
                worth = max(worth, -best(after, other, False, seen | {after}, -high, -max(low, worth)))
        return worth

    first = slow.first()[0]
    return best(first, "X", False, frozenset({first}), -4, 4)


PAIRS = {
    "connect-four-4x3": (ConnectFour(4, 3), SlowConnectFour(4, 3)),
    "connect-four-3x4": (ConnectFour(3, 4), SlowConnectFour(3, 4)),
    "go-2x2": (Go(2, 2, turns=6), SlowGo(2, 2)),
    "go-2x3": (Go(2, 3, turns=9), SlowGo(2, 3)),
    "checkers-4x4": (Checkers(4, 4, 1, turns=8), SlowCheckers(4, 4, 1)),
    "checkers-5x3": (Checkers(5, 3, 1, turns=20), SlowCheckers(5, 3, 1)),
    "chess-4x2": (Chess(PAWNS, turns=8), SlowChess(PAWNS)),
    "chess-3x3": (Chess(ROOKS, turns=4), SlowChess(ROOKS)),
}


@lru_cache
def everything_of(name):
    return everything(PAIRS[name][1])


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(("noise", "shaped"), [(0, False), (0, True), (8, True)])
def test_every_value_is_that_of_slow_sweeps(name, noise, shaped):
    game, slow = PAIRS[name]
    known = everything_of(name)
    codes = np.array([slow.code(position) for position in known])

    def potential(position):
        return int(game.potential(np.array([slow.code(position)]))[0]) / POTENTIAL_PARTS if shaped else 0.0

    values = solved(known, 100 if game.layered else 2 * game.turns, noise / NOISE_PARTS, potential)
    solution = Solution(Positions(game), noise, shaped)
    layers, found = game.layer(codes), np.zeros(len(codes))
    for layer in np.unique(layers):
        rows = layers == layer
        found[rows] = solution.values[layer][solution.positions.find(codes[rows], layer)] / UNIT
    assert np.abs(found - np.array(list(values.values()))).max() <= (100 / UNIT if noise else 0)
    assert len(solution.positions) == np.unique(game.canonical(codes)).size


def test_values_are_the_same_however_many_positions_are_looked_at_at_a_time(monkeypatch):
    whole = Solution(Positions(Go(2, 3)), 8, True)
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 7)
    parts = Solution(Positions(Go(2, 3)), 8, True)
    assert np.array_equal(whole.values[0], parts.values[0])
    assert np.array_equal(whole.positions.layers[0], parts.positions.layers[0])


def test_the_most_moves_of_the_agent_are_counted():
    assert Positions(Go(2, 2)).most_moves == 5
    known = everything(SlowCheckers(4, 4, 1))
    assert Positions(Checkers(4, 4, 1)).most_moves == max(len(m) for p, m in known.items() if p[1] == "X")


def test_a_game_with_too_many_positions_is_refused():
    with pytest.raises(InputError, match="most is 50, but go-2x3 has more positions than that"):
        Positions(Go(2, 3), most=50)
