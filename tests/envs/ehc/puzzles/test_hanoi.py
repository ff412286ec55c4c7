"""The towers of Hanoi against their known numbers, and H against brute force on the smallest."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from lcd.envs.ehc.puzzles import hanoi
from lcd.envs.ehc.puzzles.planning import digits, distances, packed
from lcd.horizon.analysis import Settings, analyse

SLOW = Path(__file__).parents[3] / "lcd" / "horizon" / "slow_horizon.py"


def moves_of(discs):
    return lambda codes: packed(hanoi.moved(digits(codes, discs, hanoi.BITS)), hanoi.BITS)


@pytest.mark.parametrize("discs", [1, 2, 3, 6])
def test_there_are_3_to_the_n_states_and_it_takes_2_to_the_n_less_1_moves(discs):
    codes, steps = distances(moves_of(discs), 0)
    assert len(codes) == 3**discs
    (goal,) = np.flatnonzero(hanoi.goal_of(digits(codes, discs, hanoi.BITS)).all(axis=1))
    assert steps[goal] == 2**discs - 1
    mdp = hanoi.hanoi(discs, "towers")
    assert mdp.num_states == 3**discs - 1
    assert mdp.horizon == 2**discs - 1


def test_no_disc_comes_to_lie_on_a_smaller_one():
    pegs = digits(np.arange(4**3), 3, 2)
    pegs = pegs[(pegs < 3).all(axis=1)]
    after = hanoi.moved(pegs)
    for row, moved in zip(pegs, after, strict=True):
        for (source, target), found in zip(hanoi.PAIRS, moved, strict=True):
            on_source = [disc for disc in range(3) if row[disc] == source]
            smaller = [disc for disc in range(3) if row[disc] == target and on_source and disc < on_source[0]]
            expected = row.copy()
            if on_source and not smaller:
                expected[on_source[0]] = target
            assert found.tolist() == expected.tolist()


def test_predicates_say_what_lies_on_what():
    # Discs 1 and 2 on the second peg, disc 3 on the last.
    assert hanoi.goal_of(np.array([[1, 1, 2]])).tolist() == [[True, False, True]]
    assert hanoi.predicates(3) == ("on(disc 1, disc 2)", "on(disc 2, disc 3)", "on(disc 3, peg 3)")


def test_two_discs_look_ahead_as_far_as_brute_force_says():
    spec = importlib.util.spec_from_file_location("slow_horizon", SLOW)
    slow_horizon = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(slow_horizon)
    mdp = hanoi.hanoi(2, "towers")
    slow = slow_horizon.Slow(mdp.transitions, mdp.rewards, mdp.horizon, 0.99)
    found = analyse(mdp, Settings(timesteps=1e5))
    assert found.optimal_return == slow.best_return() == 1
    assert found.p_opt == pytest.approx(slow.p_opt())
    assert found.random_return == pytest.approx(slow.random_return())
    assert found.solvable.k == slow.least_k()
    assert found.horizon.low <= found.horizon.h <= mdp.horizon
