"""Sokoban against an independent slow solver that works on texts."""

from collections import deque

import numpy as np
import pytest

from lcd.envs.ehc.puzzles import sokoban
from lcd.envs.ehc.puzzles.recipes import LEVELS, SLACK, horizon_of
from lcd.envs.ehc.puzzles.sokoban import Level, goal_of, moves_of
from lcd.envs.errors import InputError


def parsed(picture):
    walls, boxes, targets, player = set(), set(), set(), None
    for r, line in enumerate(picture.split()):
        for c, mark in enumerate(line):
            if mark == "#":
                walls.add((r, c))
            if mark in "$*":
                boxes.add((r, c))
            if mark in ".*+":
                targets.add((r, c))
            if mark in "@+":
                player = (r, c)
    return walls, frozenset(boxes), targets, player


def slow_moves(walls, player, boxes):
    for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        ahead, beyond = (player[0] + down, player[1] + right), (player[0] + 2 * down, player[1] + 2 * right)
        if ahead in walls or (ahead in boxes and (beyond in walls or beyond in boxes)):
            yield player, boxes
        else:
            yield ahead, (boxes - {ahead} | {beyond} if ahead in boxes else boxes)


def slow_solution(picture):
    """The fewest steps, and how many states are met that are not solved."""
    walls, boxes, targets, player = parsed(picture)
    known, queue, fewest = {(player, boxes): 0}, deque([(player, boxes)]), None
    while queue:
        state = queue.popleft()
        if state[1] == targets:
            fewest = known[state] if fewest is None else fewest
            continue
        for after in slow_moves(walls, *state):
            if after not in known:
                known[after] = known[state] + 1
                queue.append(after)
    return fewest, sum(state[1] != targets for state in known)


@pytest.mark.parametrize("name", ["2a", "2b", "3a", "3b"])
def test_levels_are_as_long_as_they_say(name):
    fewest, picture = LEVELS[name]
    found, states = slow_solution(picture)
    assert found == fewest
    mdp = sokoban.sokoban(Level.drawn(picture), horizon_of(fewest), name)
    assert mdp.num_states == states
    assert mdp.horizon == -(-fewest * 5 // 4)
    assert SLACK == 1.25


def test_every_level_has_as_many_boxes_as_its_name_says():
    for name, (_, picture) in LEVELS.items():
        _, boxes, targets, _ = parsed(picture)
        assert len(boxes) == len(targets) == int(name[0])


def test_steps_are_those_of_the_slow_rules():
    picture = LEVELS["3b"][1]
    walls, boxes, targets, player = parsed(picture)
    level = Level.drawn(picture)
    moves, goal = moves_of(level), goal_of(level)
    place = {tuple(cell): number for number, cell in enumerate(level.floor.tolist())}

    def code(player, boxes):
        return place[player] | sum(1 << place[box] for box in boxes) << 6

    rng = np.random.default_rng(0)
    for _ in range(500):
        after = moves(np.array([code(player, boxes)]))[0]
        options = list(slow_moves(walls, player, boxes))
        assert after.tolist() == [code(*option) for option in options]
        player, boxes = options[rng.integers(4)]
        assert goal(np.array([code(player, boxes)])).sum() == len(boxes & targets)


@pytest.mark.parametrize("picture", ["#### #@-# ####", "##### #@$.# #.--# #####", "##### #$.-# #####"])
def test_a_level_that_is_none_is_refused(picture):
    with pytest.raises(InputError, match="needs one player, a box, a target for each box"):
        Level.drawn(picture)


def test_rewards_telescope():
    picture = LEVELS["2a"][1]
    level = Level.drawn(picture)
    mdp = sokoban.sokoban(level, 400, "level")
    rng = np.random.default_rng(2)
    for _ in range(20):
        state, total = 0, 0.0
        for action in rng.integers(4, size=60):
            total += mdp.rewards[state, action]
            after = int(mdp.transitions[state, action])
            if after == -1:
                assert total == 2 - goal_of(level)(mdp.codes[[0]]).sum()
                break
            state = after
        else:
            holds = goal_of(level)(mdp.codes[[0, state]]).sum(axis=1)
            assert total == holds[1] - holds[0]
