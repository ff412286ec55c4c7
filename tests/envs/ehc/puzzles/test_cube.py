"""The tower cube against the published numbers of it, and against stickers that are turned in space."""

import itertools
import math

import numpy as np
import pytest

from lcd.envs.ehc.puzzles import cube
from lcd.envs.ehc.puzzles.planning import distances


@pytest.fixture(scope="module")
def reached():
    return distances(cube.moves, cube.solved_code())


def test_there_are_as_many_states_as_published_and_as_the_pieces_allow(reached):
    codes, steps = reached
    # A corner is held; the middle pieces are permuted freely, and stand on their heads all by the same parity or not.
    assert len(codes) == 241_920 == math.factorial(7) * math.factorial(4) * 2 == math.factorial(8) * math.factorial(3)
    assert steps.max() == cube.HARDEST


def test_with_half_turns_of_the_ends_the_hardest_takes_the_published_14_turns():
    def with_half_turns(codes):
        after = cube.moves(codes)
        twice = [cube.moves(after[:, quarter])[:, quarter] for quarter in (0, 2)]
        return np.concatenate([after, np.stack(twice, axis=1)], axis=1)

    assert distances(with_half_turns, cube.solved_code())[1].max() == 14


def test_all_predicates_hold_in_the_goal_alone(reached):
    holds = cube.goal(reached[0])
    assert holds.shape[1] == len(cube.PREDICATES) == 32
    assert reached[0][holds.all(axis=1)].tolist() == [cube.solved_code()]
    # The corner that is held.
    assert holds[:, 15:18].all()


NORMALS = {
    "top": (0, 0, 1),
    "bottom": (0, 0, -1),
    "front": (0, -1, 0),
    "back": (0, 1, 0),
    "left": (-1, 0, 0),
    "right": (1, 0, 0),
}
SIDES = ("front", "left", "back", "right")


def solid() -> dict:
    """(place, normal) -> the colour of each sticker of a solved cube in space."""
    found = {}
    for x, y, z in itertools.product((-1, 1), (-1, 1), (-1, 0, 1)):
        for face, normal in NORMALS.items():
            if np.dot((x, y, z), normal) == 1:
                found[(x, y, z), normal] = face
    return found


def turned(stickers: dict, which, matrix) -> dict:
    """The stickers after the places that `which` names are turned."""
    found = {}
    for (place, normal), colour in stickers.items():
        if which(place):
            place, normal = (tuple(int(n) for n in np.array(matrix) @ part) for part in (place, normal))
        found[place, normal] = colour
    return found


QUARTER = [[0, 1, 0], [-1, 0, 0], [0, 0, 1]]  # clockwise, seen from above
TURNS = (
    (lambda p: p[2] == 1, QUARTER),
    (lambda p: p[2] == 1, np.transpose(QUARTER)),
    (lambda p: p[2] >= 0, QUARTER),
    (lambda p: p[2] >= 0, np.transpose(QUARTER)),
    (lambda p: p[0] == 1, [[1, 0, 0], [0, -1, 0], [0, 0, -1]]),
    (lambda p: p[1] == -1, [[-1, 0, 0], [0, 1, 0], [0, 0, -1]]),
)


def read(stickers: dict) -> list[str]:
    """The stickers in the order of `cube.stickers`."""
    columns = [(-1, -1), (-1, 1), (1, 1), (1, -1)]
    found = []
    for z in (1, -1, 0):
        for column, (x, y) in enumerate(columns):
            sides = [SIDES[column], SIDES[(column + 1) % 4]]
            faces = {1: ["top", *sides], -1: ["bottom", *reversed(sides)], 0: sides}[z]
            found += [stickers[(x, y, z), NORMALS[face]] for face in faces]
    return found


def test_turns_are_those_of_stickers_in_space():
    rng = np.random.default_rng(0)
    code, stickers = np.array([cube.solved_code()]), solid()
    names = np.array(["top", "bottom", *SIDES])
    for action in rng.integers(6, size=200):
        code = cube.moves(code)[:, action]
        stickers = turned(stickers, *TURNS[action])
        assert names[cube.stickers(code)[0]].tolist() == read(stickers)


def test_rewards_telescope():
    start = cube.scrambled(0)
    mdp = cube.cube(start, "cube")
    assert mdp.num_states == 241_919
    rng = np.random.default_rng(1)
    state, total = 0, 0.0
    for action in rng.integers(6, size=40):
        total += mdp.rewards[state, action]
        state = int(mdp.transitions[state, action])
    holds = cube.goal(mdp.codes[[0, state]]).sum(axis=1)
    assert total == holds[1] - holds[0]


def test_the_net_shows_every_sticker_once():
    shown = cube.NET[cube.NET >= 0]
    assert sorted(shown.tolist()) == list(range(32))
    solved = cube.RIGHT_COLOURS[cube.NET]
    for rows, columns, face in (
        (slice(0, 2), slice(2, 4), 0),
        (slice(2, 5), slice(2, 4), 2),
        (slice(5, 7), slice(2, 4), 1),
    ):
        assert (solved[rows, columns] == face).all()
