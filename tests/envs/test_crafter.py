"""Crafter on the real engine: the same world in every process, and masks that say what its pictures show."""

import importlib.util
import os
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest

from lcd.envs.benchmarks import get_benchmark, make_copies, reward_range
from lcd.envs.crafter.benchmark import CRAFTER, TASKS, Crafter
from lcd.envs.crafter.world import CELL, NAMES, NUMBER, SIGHT, Survival, WorldMasks
from lcd.envs.errors import InputError
from lcd.envs.masks import Moment
from lcd.envs.protocols import NeedsPackages, Pairs, SaysMasks, check_installed, offers
from tests.envs.contract import BenchmarkContract

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("crafter") is None and not os.environ.get("CI"), reason="Crafter is not installed"
)


class OneOfCrafter(Crafter):
    """One of its tasks, in a small world: they differ in what is paid alone."""

    knobs: ClassVar = {**Crafter.knobs, "area": 16}
    tasks = ("crafter/collect-wood",)


class TestCrafter(BenchmarkContract):
    benchmark = OneOfCrafter()


def begun(seed=3):
    env = Survival(10_000, 24)
    env.reset(seed=seed)
    return env


def labels_of(env):
    return WorldMasks()(Moment(lambda: None, None, {}, env))


def cell(labels, column, row):
    return labels[row * CELL : (row + 1) * CELL, column * CELL : (column + 1) * CELL]


PLAY = """
import hashlib, sys
import numpy as np
padding = [object() for _ in range(int(sys.argv[1]))]
from lcd.envs.crafter.world import Survival
env = Survival(10_000, 24)
rng, told = np.random.default_rng(0), hashlib.sha256()
env.reset(seed=5)
for _ in range(350):
    # Creatures come and go by chance whatever the player does; it must not die of them.
    env.inside._player.health = 9
    picture, *_ = env.step(rng.integers(0, 6))
    told.update(picture.tobytes())
print(told.hexdigest(), "gym" in sys.modules)
"""


def test_every_process_plays_the_same_world():
    """Where things lie in memory differs from process to process, and decided once what chance picked."""
    commands = [[sys.executable, "-c", PLAY, str(number)] for number in (1, 20_001)]
    running = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in commands]
    told = [process.communicate()[0].strip() for process in running]
    assert len(set(told)) == 1
    assert told[0].endswith(" False")


def test_masks_are_the_worlds_map_around_the_player():
    env = begun()
    inside = env.inside
    for action in np.random.default_rng(1).integers(1, 6, 40):
        _, _, _, _, _ = env.step(action)
        labels = labels_of(env)
        seen = 0
        for column in range(SIGHT[0]):
            for row in range(SIGHT[1]):
                place = inside._player.pos + np.array([column, row]) - np.array(SIGHT) // 2
                material, thing = inside._world[place]
                shown = {NAMES[label] for label in np.unique(cell(labels, column, row))}
                if thing is None:
                    assert shown == {material or "outside"}
                    seen += 1
                else:
                    assert shown <= {material, *NAMES[NUMBER["player faces left"] : NUMBER["has health"]]}
        assert seen > 40


def test_the_player_looks_where_it_goes_and_arrows_where_they_fly():
    env = begun()
    for action, side in ((1, "left"), (2, "right"), (3, "up"), (4, "down")):
        env.step(action)
        own = cell(labels_of(env), *(np.array(SIGHT) // 2)) == NUMBER[f"player faces {side}"]
        assert own.sum() == 4 * CELL
        middle = np.argwhere(own).mean(0) - (CELL - 1) / 2
        assert tuple(np.sign(middle)) == {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}[side]


def test_a_dot_for_each_thing_that_the_player_has():
    env = begun()
    env.inside._player.inventory.update(health=7, wood=3, iron_sword=1, drink=0)
    labels = labels_of(env)
    assert [(labels == NUMBER[f"has {item}"]).sum() // 4 for item in ("health", "wood", "iron_sword", "drink")] == [
        7,
        3,
        1,
        0,
    ]
    figure = np.array(CRAFTER.intensities("crafter/reward", "figure_ground"))[labels]
    assert (figure[SIGHT[1] * CELL :] == 255).sum() == 4 * sum(env.inside._player.inventory.values())


def test_semantic_tells_all_apart_and_figure_ground_what_can_be_walked_on():
    greys = CRAFTER.intensities("crafter/reward", "semantic")
    assert len(set(greys)) == len(NAMES)
    ground = {
        n for n, grey in zip(NAMES, CRAFTER.intensities("crafter/reward", "figure_ground"), strict=True) if not grey
    }
    assert ground == {"background", "grass", "sand", "path"}


def test_a_goal_is_paid_once_and_ends_the_episode():
    env = Survival(50, 24, "collect_sapling")
    env.reset(seed=0)
    player = env.inside._player
    target = tuple(player.pos + player.facing)
    env.inside._world[target] = "grass"
    paid = []
    for _ in range(50):
        _, reward, terminated, truncated, _ = env.step(5)
        paid.append(reward)
        if terminated or truncated:
            break
    assert terminated
    assert paid == [0.0] * (len(paid) - 1) + [1.0]
    env = make_copies(CRAFTER, "crafter/eat-cow", view="semantic", split="train", num_envs=1, seed=0, length=3, area=24)
    env.reset()
    assert [bool(env.step(np.array([0]))[3][0]) for _ in range(3)] == [False, False, True]


def test_ranges_and_what_it_offers_and_refuses(monkeypatch):
    assert get_benchmark("crafter") is CRAFTER
    for task, goal in TASKS.items():
        low, high = reward_range(CRAFTER, task, 0)
        assert low < high == (22 if goal is None else 1)
    assert all(offers(CRAFTER, what) for what in (Pairs, SaysMasks, NeedsPackages))
    with pytest.raises(InputError, match="crafter/reward has no knob 'lenght'; did you mean 'length'"):
        make_copies(CRAFTER, "crafter/reward", view="pixels", split="train", num_envs=1, seed=0, lenght=3)
    monkeypatch.setattr("lcd.envs.viewed_benchmark.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"crafter, which is not installed: pip install .*\[crafter\]"):
        check_installed(CRAFTER, CRAFTER.tasks)
