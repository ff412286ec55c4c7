"""The fast rules against slow ones that were written apart from them, and against published counts."""

import numpy as np
import pytest

from lcd.envs.ehc.games.checkers import Checkers
from lcd.envs.ehc.games.chess import Chess
from lcd.envs.ehc.games.connect_four import ConnectFour
from lcd.envs.ehc.games.game import next_legal, ranked
from lcd.envs.ehc.games.go import Go
from lcd.envs.errors import InputError

from .slow import SlowGo
from .worlds import PAIRS, played


def told(moves, row):
    """The moves in one position as the fast rules tell them: (code after, result or None)."""
    columns = np.flatnonzero(moves.legal[row])
    return sorted((int(moves.after[row, c]), int(moves.result[row, c]) if moves.ended[row, c] else 9) for c in columns)


@pytest.mark.parametrize("name", PAIRS)
def test_moves_are_those_of_slow_rules(name):
    fast, slow = PAIRS[name]
    assert fast.start == slow.code(slow.first())
    positions = played(slow, 12, seed=len(name))
    codes = np.array([slow.code(position) for position in positions])
    moves = fast.moves(codes)
    for row, position in enumerate(positions):
        expected = sorted((slow.code(after), 9 if result is None else result) for after, result in slow.moves(position))
        assert told(moves, row) == expected, position
    assert fast.second_moves(codes).tolist() == [position[1] == "O" for position in positions]
    assert not moves.after[~moves.legal].any()


def perft(game, depth):
    """Sequences of moves of this length, and of those that end before it, as many as there are."""
    codes, number, found = np.array([game.start]), np.ones(1, dtype=int), []
    for _ in range(depth):
        moves = game.moves(codes)
        number = np.broadcast_to(number[:, None], moves.legal.shape)
        found.append(int(number[moves.legal].sum()))
        live = moves.legal & ~moves.ended
        codes, back = np.unique(moves.after[live], return_inverse=True)
        number = np.bincount(back, weights=number[live], minlength=codes.size).astype(int)
    return found


def slow_perft(slow, depth):
    found, positions = [], [slow.first()]
    for _ in range(depth):
        made = [each for position in positions for each in slow.moves(position)]
        found.append(len(made))
        positions = [after for after, result in made if result is None]
    return found


@pytest.mark.parametrize(
    ("name", "depth"),
    [
        ("connect-four-4x4", 6),
        ("go-3x3", 4),
        ("checkers-5x5", 8),
        ("checkers-6x4", 8),
        ("chess-4x3", 4),
        ("chess-4x4", 5),
    ],
)
def test_sequences_are_as_many_as_by_slow_rules(name, depth):
    fast, slow = PAIRS[name]
    assert perft(fast, depth) == slow_perft(slow, depth)


def positions_of(game):
    """The codes of all positions that can be reached, those where the game is over too; images are not merged."""
    found = known = frontier = np.array([game.start])
    while frontier.size:
        moves = game.moves(frontier)
        found = np.union1d(found, moves.after[moves.legal])
        frontier = np.setdiff1d(moves.after[moves.legal & ~moves.ended], known)
        known = np.union1d(known, frontier)
    return found


def test_connect_four_has_as_many_positions_as_published():
    assert positions_of(ConnectFour(4, 4)).size == 161_029


@pytest.mark.parametrize(
    ("rows", "columns", "legal"), [(1, 1, 1), (1, 2, 5), (1, 3, 15), (2, 2, 57), (2, 3, 489), (3, 3, 12_675)]
)
def test_go_has_as_many_legal_boards_as_published(rows, columns, legal):
    codes = positions_of(Go(rows, columns))
    assert np.unique(codes & 0xFFFFFFFF).size == legal


@pytest.mark.parametrize("name", PAIRS)
def test_images_have_one_code_and_play_alike(name):
    fast, slow = PAIRS[name]
    codes = np.array([slow.code(position) for position in played(slow, 5, seed=3)])
    images = fast.canonical(codes)
    assert np.array_equal(fast.canonical(images), images)
    assert np.array_equal(fast.potential(images), fast.potential(codes))
    assert np.array_equal(fast.second_moves(images), fast.second_moves(codes))
    here, there = fast.moves(codes), fast.moves(images)
    for row in range(len(codes)):
        pair = [
            sorted(zip(fast.canonical(m.after[row][m.legal[row]]), m.result[row][m.legal[row]], strict=True))
            for m in (here, there)
        ]
        assert pair[0] == pair[1]


def test_a_go_board_and_its_images_are_one():
    game = Go(3, 3)
    corners = [1 << p for p in (0, 2, 6, 8)]
    assert len(set(game.canonical(np.array(corners)).tolist())) == 1
    edges = game.canonical(np.array([1 << p for p in (1, 3, 5, 7)]))
    assert len(set(edges.tolist())) == 1
    assert len({*edges.tolist(), *game.canonical(np.array([1, 16])).tolist()}) == 3


def test_a_ko_may_not_be_retaken_at_once_but_later():
    slow = SlowGo(4, 4)
    board = tuple(".XO.X.XO.XO.....")
    taken = [after for after, _ in slow.moves((board, "O", None, False)) if after[2] is not None]
    assert len(taken) == 1
    game = Go(4, 4)
    moves = game.moves(np.array([slow.code(taken[0])]))
    point = taken[0][2]
    assert not moves.legal[0, point]
    assert moves.legal[0, 16]
    passed = game.moves(moves.after[0, 16:])
    later = game.moves(passed.after[0, 15:16])
    assert later.legal[0, point]


@pytest.mark.parametrize(("board", "score"), [("X........", 9), (".........", 0), ("XO.......", 0), (".X.XX.OOO", 1)])
def test_areas_are_counted(board, score):
    code = SlowGo(3, 3).code((tuple(board), "X", None, False))
    assert Go(3, 3).score(np.array([code])) == score


@pytest.mark.parametrize(
    ("rows", "to", "result"),
    [(("k..", "...", ".QK"), (1, 1), 1), (("k..", "...", "K.Q"), (1, 2), 0), (("k.n", "...", "K.Q"), (1, 2), None)],
)
def test_mate_wins_and_stalemate_is_a_draw(rows, to, result):
    """The queen goes there."""
    game = Chess(rows)
    moves = game.moves(np.array([game.start]))
    made = [c for c in np.flatnonzero(moves.legal[0]) if game.cells(moves.after[:, c])[0, to[0], to[1]] == 2]
    assert len(made) == 1
    assert (int(moves.result[0, made[0]]) if moves.ended[0, made[0]] else None) == result


def test_a_pawn_becomes_a_queen():
    game = Chess((".k.", "P..", "..K"))
    moves = game.moves(np.array([game.start]))
    shown = game.cells(moves.after[0][moves.legal[0]])
    assert (shown[:, 0, 0] == 2).sum() == 1
    assert (shown[:, 0, 0] == 6).sum() == 0


def test_actions_that_are_not_legal_are_others():
    assert next_legal(np.array([[0, 1, 0, 1], [1, 0, 0, 0]], dtype=bool)).tolist() == [[1, 1, 3, 3], [0, 0, 0, 0]]
    assert ranked(np.array([[1, 1, 1, 0]], dtype=bool), 5).tolist() == [[0, 1, 2, 0, 1]]
    assert Go(1, 2).played(np.array([[False, True, True]]), 3).tolist() == [[2, 1, 2]]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ConnectFour(9, 9), "rows is 9 and columns is 9, but both"),
        (lambda: Go(5, 4), "rows is 5 and columns is 4, but both"),
        (lambda: Checkers(8, 8, 3), "rows is 8, columns is 8 and filled is 3, but"),
        (lambda: Checkers(4, 4, 3), "filled is 3"),
        (lambda: Chess(("k.", "K")), "rows of one length"),
        (lambda: Chess(("kk", ".K")), "one K, one k"),
        (lambda: Chess(("kx", ".K")), "one K, one k"),
    ],
)
def test_boards_that_do_not_fit_are_refused(make, says):
    with pytest.raises(InputError, match=says):
        make()
