"""Games as MDPs: against a plain loop over slow rules, the same bit for bit, and drawn."""

import hashlib
import itertools

import numpy as np
import pytest

from lcd.envs.ehc.games.cases import BOARDS, CASES, Case
from lcd.envs.ehc.games.checkers import Checkers
from lcd.envs.ehc.games.chess import Chess
from lcd.envs.ehc.games.connect_four import ConnectFour
from lcd.envs.ehc.games.go import Go
from lcd.envs.ehc.games.opponents import UNIT, Opponent
from lcd.envs.ehc.games.recipes import GAMES, RECIPES, REMOVED, asked
from lcd.envs.ehc.games.solution import POTENTIAL_PARTS, Positions, Solution
from lcd.envs.ehc.games.versus import against, beatable, best_return
from lcd.envs.native import IMAGE_VIEWS
from lcd.envs.tabular.mdp import TabularMDP
from lcd.horizon.exact import solve
from lcd.horizon.layers import Layers
from lcd.horizon.ties import Ties

from .slow import SlowCheckers, SlowChess, SlowConnectFour, SlowGo
from .worlds import everything, solved

ROOKS = ("kr.", "...", ".RK")
SMALL = {
    "connect-four": (lambda: ConnectFour(4, 3), lambda: SlowConnectFour(4, 3), False),
    "go": (lambda: Go(2, 3), lambda: SlowGo(2, 3), True),
    "checkers": (lambda: Checkers(4, 4, 1), lambda: SlowCheckers(4, 4, 1), True),
    "chess": (lambda: Chess(ROOKS), lambda: SlowChess(ROOKS), True),
}
OPPONENT = Opponent(0.5, noise=8, seed=11)


def made(family: str, opponent: Opponent = OPPONENT) -> TabularMDP:
    make, _, shaped = SMALL[family]
    return against(Solution(Positions(make()), opponent.noise, shaped), opponent, family)


@pytest.mark.parametrize("family", SMALL)
def test_every_step_is_a_legal_move_and_an_answer_to_it(family):
    """And each action's name, or rank, is that of the move; what is not legal is what the game says."""
    mdp, slow, shaped = made(family), SMALL[family][1](), SMALL[family][2]
    game = SMALL[family][0]()
    by_code = {slow.code(position): position for position in everything(slow)}

    def ahead(code):
        return int(game.potential(np.array([code]))[0]) / POTENTIAL_PARTS if shaped else 0.0

    for state in np.random.default_rng(0).integers(0, mdp.num_states, size=150):
        code = int(mdp.codes[state])
        moves = game.moves(np.array([code]))
        columns = game.played(moves.legal, mdp.num_actions)[0]
        assert moves.legal[0, columns].all()
        for action, column in enumerate(columns):
            position = by_code[code]
            after = int(moves.after[0, column])
            made_by_slow = [(a, r) for a, r in slow.moves(position) if slow.code(a) == after]
            found = outcomes(slow, made_by_slow, lambda end, code=code: ahead(end) - ahead(code))
            if game.merged:
                found = {(to if to < 0 else int(game.canonical(np.array([to]))[0]), paid) for to, paid in found}
            to = int(mdp.transitions[state, action])
            assert (-1 if to < 0 else int(mdp.codes[to]), float(mdp.rewards[state, action])) in found


def outcomes(slow, moves, shaping) -> set:
    """All that these moves may lead to once it is the first player's turn again: (code or -1, what is paid)."""
    found = set()
    for after, result in moves:
        code = slow.code(after)
        if result is not None:
            found.add((-1, result + shaping(code)))
        elif after[1] == "X":
            found.add((code, shaping(code)))
        else:
            found |= outcomes(slow, slow.moves(after), shaping)
    return found


def test_the_opponent_plays_what_slow_values_and_one_draw_give():
    """Every reply of a whole MDP, from values by slow sweeps, weights by the library, and the same random words."""
    slow, game = SlowConnectFour(4, 3), ConnectFour(4, 3)
    mdp, known = made("connect-four", Opponent(0.5, seed=2)), everything(slow)
    values = solved(known, 20)
    by_code = {slow.code(position): position for position in known}
    for state in range(0, mdp.num_states, 7):
        moves = game.moves(mdp.codes[state : state + 1])
        for action in np.flatnonzero(moves.legal[0]):
            if moves.ended[0, action]:
                assert mdp.rewards[state, action] == moves.result[0, action]
                continue
            theirs = by_code[int(moves.after[0, action])]
            found = slow.moves(theirs)
            worth = np.array([[-values[a] if r is None else -r for a, r in found]]) * UNIT
            code = moves.after[0, action : action + 1]
            pick = Opponent(0.5, seed=2).choose(code, worth.astype(np.int64), np.ones_like(worth, dtype=bool))[0]
            after, result = found[pick]
            to = mdp.transitions[state, action]
            assert mdp.rewards[state, action] == (result or 0)
            assert to == -1 if result is not None else mdp.codes[to] == slow.code(after)


def digest(mdp: TabularMDP) -> str:
    parts = (mdp.transitions, mdp.rewards, mdp.codes)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16]


DIGESTS = {
    "connect-four": "ae38d8bab3d6448a",
    "go": "646b31633ab07080",
    "checkers": "8b6be3b164aff9f3",
    "chess": "1e81acf23529e852",
}


@pytest.mark.parametrize("family", SMALL)
def test_the_same_mdp_comes_out_bit_for_bit(family):
    assert digest(made(family)) == DIGESTS[family]
    assert digest(made(family)) != digest(made(family, Opponent(0.5, noise=8, seed=12)))


@pytest.mark.parametrize("family", SMALL)
def test_the_best_return_is_that_of_the_exact_analysis(family):
    mdp = made(family)
    exact = solve(Layers(mdp), Ties.of(mdp, None), 1.0)
    assert best_return(mdp) == pytest.approx(exact.optimal_return, abs=1e-6)
    assert beatable(mdp) == (exact.optimal_return > 0.5)


def test_an_opponent_that_never_errs_cannot_be_beaten():
    assert not beatable(made("connect-four", Opponent(1e-3)))
    assert beatable(made("connect-four", Opponent(10.0, seed=1)))


@pytest.mark.parametrize("family", SMALL)
def test_rewards_are_results_and_shaping_of_less_than_half_a_win(family):
    mdp = made(family)
    shaping = mdp.rewards - np.round(mdp.rewards)
    assert np.array_equal(shaping * POTENTIAL_PARTS, np.round(shaping * POTENTIAL_PARTS))
    assert SMALL[family][2] == bool(shaping.any())
    assert set(np.unique(np.round(mdp.rewards))) <= {-1, 0, 1}
    assert (np.round(mdp.rewards)[mdp.transitions >= 0] == 0).all()


@pytest.mark.parametrize("family", SMALL)
def test_states_are_drawn_so_that_they_can_be_told_apart(family):
    mdp = made(family)
    states = np.arange(min(mdp.num_states, 300))
    for view in IMAGE_VIEWS:
        frames = mdp.renderer.paint(states, view)
        assert frames.shape == (len(states), *mdp.renderer.shape, 3)
        assert len({frame.tobytes() for frame in frames}) == len(states)


def test_recipes_have_names_of_their_own_and_cover_the_four_games():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert {case.recipe().family for case in CASES} == {"connect-four", "go", "checkers", "chess"}
    boards = [recipe.name.rpartition("-")[0] for recipe in RECIPES]
    assert [board for board, _ in itertools.groupby(boards)] == sorted(set(boards), key=list(BOARDS).index)
    assert all(recipe.kind == "game" for recipe in RECIPES)
    assert len({(case.board, case.seed) for case in CASES}) == len(CASES)


def test_the_rule_ends_with_as_many_games_as_the_paper_has():
    """Every case is asked up to the one that makes them 28, and none is removed that was not asked."""
    names = [case.name for case in asked()]
    assert names == [case.name for case in CASES][: len(names)]
    assert set(names) - REMOVED == {recipe.name for recipe in RECIPES}
    assert len(RECIPES) == GAMES == 28
    assert set(names) > REMOVED
    assert names[-1] not in REMOVED


def test_a_recipe_makes_its_mdp(monkeypatch):
    monkeypatch.setitem(BOARDS, "tiny", ("go", lambda: Go(2, 2, turns=6)))
    recipe = Case("tiny", "a", 0.5, 8, 1, shaped=True).recipe()
    mdp = recipe.make()
    assert (mdp.name, mdp.num_actions, mdp.horizon, recipe.family) == ("tiny-a", 5, 6, "go")
    assert recipe.about == "noisy-optimal (8/64) Q, temperature 0.5, seed 1, shaped"
    assert digest(recipe.make()) == digest(mdp)
