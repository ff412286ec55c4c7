"""Ranges of MiniGrid's tasks: a random agent's mean return, and the best return of a level by breadth-first search.

    python -m lcd.envs.minigrid.shortest [EPISODES] [LEVELS]     # what ranges.csv holds, on MiniGrid's own worlds

A reward is 1 − .9 · steps/limit, paid once: the shortest way is the best. Nothing needs to be put down on one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from lcd.envs.minigrid.benchmark import IDS, single

ACTIONS = (0, 1, 2, 3, 5)
"""Left, right, forward, pick up, toggle."""
MOST_STATES = 200_000


def best_return(env: Any) -> float:
    """The best return of the level that an environment has just begun; NaN where it is not found."""
    world = env.unwrapped
    # What an agent sees is of no interest here, and most of a step's time.
    world.gen_obs = dict
    things = [cell for cell in world.grid.grid if cell is not None and cell.type != "wall"]
    level = [_state(world, things)]
    known = {_key(level[0], things)}
    for steps in range(world.max_steps):
        following = []
        for state, action in ((state, action) for state in level for action in ACTIONS):
            _restore(world, things, state)
            world.step_count = steps
            _, reward, terminated, _, _ = world.step(action)
            if reward > 0:
                return float(reward)
            if not terminated:
                after = _state(world, things)
                if (key := _key(after, things)) not in known:
                    known.add(key)
                    following.append(after)
        level = following
        if not level or len(known) > MOST_STATES:
            break
    return math.nan


def _state(world: Any, things: list[Any]) -> tuple[Any, ...]:
    doors = [(vars(thing).get("is_open"), vars(thing).get("is_locked"), thing.cur_pos) for thing in things]
    return tuple(world.agent_pos), world.agent_dir, world.carrying, list(world.grid.grid), doors


def _key(state: tuple[Any, ...], things: list[Any]) -> tuple[Any, ...]:
    position, direction, carrying, _, doors = state
    held = None if carrying is None else id(carrying)
    places = tuple((opened, locked, None if at is None else tuple(at)) for opened, locked, at in doors)
    return tuple(int(n) for n in position), int(direction), held, places


def _restore(world: Any, things: list[Any], state: tuple[Any, ...]) -> None:
    position, world.agent_dir, world.carrying, cells, doors = state
    world.agent_pos = np.array(position)
    world.grid.grid = list(cells)
    for thing, (opened, locked, at) in zip(things, doors, strict=True):
        thing.cur_pos = at
        if opened is not None:
            thing.is_open, thing.is_locked = opened, locked


def best_returns(task: str, levels: int) -> Iterator[float]:
    """The best returns of the levels with the seeds from 0 on."""
    for seed in range(levels):
        env = single(task)
        env.reset(seed=seed)
        yield best_return(env)
        env.close()


def random_returns(task: str, episodes: int) -> Iterator[float]:
    """The returns of an agent that draws its actions, on the levels with the seeds from 0 on."""
    env, rng = single(task), np.random.default_rng(0)
    for seed in range(episodes):
        env.reset(seed=seed)
        world: Any = env.unwrapped
        world.gen_obs = dict
        total, over = 0.0, False
        while not over:
            _, reward, terminated, truncated, _ = world.step(int(rng.integers(world.action_space.n)))
            total, over = total + float(reward), terminated or truncated
        # The next level is begun by what sees.
        del world.gen_obs
        yield total


def main() -> None:
    """Print a line a task: means, and their standard errors."""
    episodes, levels = (int(word) for word in (*sys.argv[1:], *("256", "200")[len(sys.argv) - 1 :]))
    print("task,r_min,r_max,r_min_error,r_max_error")
    for task in IDS:
        low, high = np.array(list(random_returns(task, episodes))), np.array(list(best_returns(task, levels)))
        errors = (each.std(ddof=1) / math.sqrt(len(each)) for each in (low, high))
        print(task, *(f"{number:.4f}" for number in (low.mean(), high.mean(), *errors)), sep=",", flush=True)


if __name__ == "__main__":
    main()
