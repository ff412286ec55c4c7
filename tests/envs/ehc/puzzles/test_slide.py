"""The slide tile puzzle against its known numbers and against moves made on a list."""

import numpy as np
import pytest

from lcd.envs.ehc.puzzles import slide
from lcd.envs.ehc.puzzles.planning import distances, packed


@pytest.fixture(scope="module")
def reached():
    return distances(slide.moves, slide.solved_code())


def test_half_of_all_arrangements_can_be_solved_the_worst_in_31_moves(reached):
    codes, steps = reached
    assert len(codes) == len(set(codes.tolist())) == 181_440
    assert steps.max() == slide.HARDEST == 31
    # Two arrangements are that far away (Reinefeld, 1993).
    assert (steps == 31).sum() == 2


def test_moves_are_those_of_tiles_in_a_list():
    rng = np.random.default_rng(0)
    for _ in range(200):
        cells = rng.permutation(9)
        gap = int(np.flatnonzero(cells == 0)[0])
        (after,) = slide.moves(np.array([packed(cells, slide.BITS)]))
        for action, (down, right) in enumerate([(-1, 0), (1, 0), (0, -1), (0, 1)]):
            moved, row, column = cells.copy(), gap // 3 + down, gap % 3 + right
            if 0 <= row < 3 and 0 <= column < 3:
                moved[gap], moved[3 * row + column] = moved[3 * row + column], 0
            assert slide.cells_of(after[[action]])[0].tolist() == moved.tolist()


def test_all_predicates_hold_in_the_goal_alone(reached):
    holds = slide.goal(reached[0])
    assert holds.shape[1] == len(slide.PREDICATES) == 8
    assert reached[0][holds.all(axis=1)].tolist() == [slide.solved_code()]


def test_a_start_is_drawn_by_its_seed_and_can_be_solved(reached):
    starts = {slide.shuffled(seed) for seed in range(4)}
    assert len(starts) == 4
    assert starts <= set(reached[0].tolist())
    assert slide.shuffled(1) == slide.shuffled(1)


def test_the_mdp_pays_what_is_left_of_the_goal(reached):
    start = slide.shuffled(0)
    mdp = slide.slide(start, "slide")
    # The goal itself is the end, not a state.
    assert mdp.num_states == 181_439
    assert (mdp.transitions == -1).sum() == 2
    assert mdp.horizon == 31
    steps = dict(zip(*(part.tolist() for part in reached), strict=True))
    state, held = 0, int(slide.goal(np.array([start])).sum())
    total = 0.0
    while state != -1:
        after = mdp.transitions[state]
        nearer = [a for a in range(4) if after[a] == -1 or steps[mdp.codes[after[a]]] < steps[mdp.codes[state]]]
        total += mdp.rewards[state, nearer[0]]
        state = int(after[nearer[0]])
    assert total == 8 - held
