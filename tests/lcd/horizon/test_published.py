"""MiniGrid's KeyCorridorS3R1, rebuilt from its rules, against the values that the BRIDGE dataset publishes for it.

Five cells in a row: a room with the key, a door, the room of the agent, a locked door, and a room with the ball, which
ends the episode when it is picked up. The published analyses have γ = 1 and T = 100; with sticky actions p = .25.
"""

import numpy as np
import pytest

from lcd.envs.tabular.closure import build
from lcd.horizon.analysis import Settings, analyse
from lcd.horizon.exact import solve
from lcd.horizon.gorp import Gorp
from lcd.horizon.layers import Layers
from lcd.horizon.ties import Ties

RIGHT, DOWN, LEFT, UP = range(4)
KEY_ROOM, DOOR, ROOM, LOCKED_DOOR, BALL = range(5)
LOCKED, CLOSED, OPEN = range(3)
CARRIED = 1
SIZES = (3, 3, 2, 4, 5)
"""Of the key's place (in its room, carried, in the agent's), the locked door, the door, the direction, the cell."""


def code_of(*parts: int) -> int:
    return int(np.ravel_multi_index(parts, SIZES))


def stepped(code: int, action: int) -> tuple[int, float, bool]:
    """One step: left, right, forward, pick up, drop, toggle."""
    key, locked, door, facing, cell = (int(part) for part in np.unravel_index(code, SIZES))
    ahead = {RIGHT: cell + 1, LEFT: cell - 1}.get(facing)
    key_cell = {0: KEY_ROOM, 2: ROOM}.get(key)
    if action in (0, 1):
        facing = (facing + (1 if action else -1)) % 4
    elif action == 2:
        free = {KEY_ROOM: key_cell != KEY_ROOM, ROOM: key_cell != ROOM, DOOR: door, LOCKED_DOOR: locked == OPEN}
        cell = ahead if free.get(ahead) else cell
    elif action == 3 and ahead == BALL and key != CARRIED:
        return code, 1.0, True
    elif action == 3 and ahead is not None and ahead == key_cell:
        key = CARRIED
    elif action == 4 and key == CARRIED and ahead in (KEY_ROOM, ROOM):
        key = 0 if ahead == KEY_ROOM else 2
    elif action == 5 and ahead == DOOR:
        door = 1 - door
    elif action == 5 and ahead == LOCKED_DOOR and (locked != LOCKED or key == CARRIED):
        locked = CLOSED if locked == OPEN else OPEN
    return code_of(key, locked, door, facing, cell), 0.0, False


def rules(codes: np.ndarray):
    table = [[stepped(int(code), action) for action in range(6)] for code in codes]
    after, paid, ended = (np.array([[step[part] for step in row] for row in table]) for part in range(3))
    return after, paid, ended


@pytest.fixture(scope="module")
def corridor():
    return build(rules, code_of(0, LOCKED, 0, UP, ROOM), horizon=100)


def test_without_sticky_actions(corridor):
    found = analyse(corridor, Settings(discount=1.0, timesteps=0))
    assert (found.optimal_return, found.solvable.k) == (1.0, 1)
    assert found.bound.h == 16.0


def test_with_sticky_actions(corridor):
    found = analyse(corridor.changed(sticky=0.25), Settings(discount=1.0))
    assert found.solvable.k == 1
    assert found.random_return == pytest.approx(0.0010068890119441542, rel=1e-12)
    assert found.optimal_return == pytest.approx(0.999999999999998, rel=1e-14)


def test_gorp_needs_fewer_rollouts_than_the_published_bound(corridor):
    """The bound is m = 244 for k = 1, which is 14,640,000 timesteps."""
    layers, ties = Layers(corridor), Ties.of(corridor)
    gorp = Gorp(layers, solve(layers, ties, 1.0), ties, np.random.default_rng(0))
    assert gorp.successes(1, 64, 20) > 10
