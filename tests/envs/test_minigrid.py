"""MiniGrid and BabyAI on the real engine: what is drawn is what MiniGrid draws, and masks keep its symbols apart."""

import gymnasium
import numpy as np
import pytest

from lcd.envs.benchmarks import get_benchmark, make_copies, reward_range
from lcd.envs.errors import InputError
from lcd.envs.minigrid import tiles
from lcd.envs.minigrid.benchmark import IDS, MINIGRID, MiniGrid, single
from lcd.envs.minigrid.shortest import best_return
from tests.envs.contract import BenchmarkContract

wrappers = pytest.importorskip("minigrid.wrappers")


class Some(MiniGrid):
    """One of each kind: worlds are stepped copy by copy, and there are many."""

    tasks = ("minigrid/LavaGapS5", "minigrid/DoorKey-5x5", "minigrid/GoToRedBallGrey")


class TestMiniGrid(BenchmarkContract):
    benchmark = Some()


@pytest.mark.parametrize("task", IDS)
def test_every_task_can_be_played(task):
    env = make_copies(MINIGRID, task, view="semantic", split="eval", num_envs=1, seed=0)
    assert env.observation_space.contains(env.reset()[0])
    assert env.observation_space.contains(env.step(env.action_space.sample())[0])


@pytest.mark.parametrize("task", ["minigrid/DoorKey-5x5", "minigrid/LavaGapS5", "minigrid/GoToRedBall"])
def test_pixels_are_what_minigrid_draws(task):
    theirs = wrappers.RGBImgPartialObsWrapper(gymnasium.make(IDS[task]), tile_size=tiles.TILE)
    ours = single(task)
    rng = np.random.default_rng(0)
    for seed in range(3):
        shown, codes = theirs.reset(seed=seed)[0]["image"], ours.reset(seed=seed)[0]
        for _ in range(60):
            assert np.array_equal(tiles.drawn(codes[None], "pixels")[0], shown)
            # More walking than turning, and every key that is met picked up.
            action = int(rng.choice([0, 1, 2, 2, 2, 3, 5]))
            (shown, *mine), (codes, *others) = theirs.step(action), ours.step(action)
            shown = shown["image"]
            assert mine[:3] == others[:3]
            if mine[1] or mine[2]:
                break


def test_semantic_tells_all_codes_apart_and_figure_ground_things_from_ground():
    """Two codes that mean something else have other tiles; a colour that only pixels have is lost on purpose."""
    atlas = tiles.atlas("semantic")[: tiles.TYPES * tiles.COLOURS * tiles.STATES]
    coloured, number = (2, 4, 5, 6, 7, 8, 9), {}
    for kind in coloured:
        for colour in range(tiles.COLOURS):
            for state in range(tiles.STATES if kind == 4 else 1):
                place = int(tiles.number_of(*(np.array(each) for each in (kind, colour, state))))
                assert number.setdefault(atlas[place].tobytes(), (kind, colour, state)) == (kind, colour, state)
    figure = tiles.atlas("figure_ground")
    shapes = {}
    for kind, state in [(4, 0), (4, 1), (4, 2), (5, 0), (6, 0), (7, 0), (8, 0), (9, 0)]:
        place = int(tiles.number_of(*(np.array(each) for each in (kind, 1, state))))
        assert set(np.unique(figure[place])) <= {0, 255}
        shapes.setdefault(figure[place].tobytes(), []).append((kind, state))
    # Doors that are open, closed and locked, keys, balls, boxes: each has a shape of its own.
    assert all(len(alike) == 1 for alike in shapes.values()), shapes


def test_what_is_carried_is_shown():
    codes = np.ones((2, 7, 7, 3), np.uint8) * [1, 0, 0]
    codes[1, 3, 6] = (5, 4, 0)
    for view in MINIGRID.views:
        free, holding = tiles.drawn(codes, view)
        assert not np.array_equal(free, holding)


def test_ends_of_episodes_are_drawn_too():
    env = make_copies(MINIGRID, "minigrid/LavaGapS5", view="semantic", split="train", num_envs=8, seed=0)
    env.action_space.seed(0)
    env.reset()
    for _ in range(60):
        shown, _, terminated, truncated, infos = env.step(env.action_space.sample())
        if (ended := terminated | truncated).any():
            assert infos["final_obs"].shape == shown.shape
            assert np.array_equal(infos["final_obs"][~ended], shown[~ended])
            break
    else:
        pytest.fail("no episode ended")


def test_the_shortest_way_is_as_short_as_it_is():
    """In an empty room from a corner to the other: two walks of 3 and a turn, by MiniGrid's own formula."""
    env = gymnasium.make("MiniGrid-Empty-6x6-v0")
    env.reset(seed=0)
    assert best_return(env) == pytest.approx(1 - 0.9 * 7 / env.unwrapped.max_steps)


@pytest.mark.parametrize("task", ["minigrid/DoorKey-5x5", "minigrid/Unlock"])
def test_no_way_is_shorter_than_the_shortest(task):
    """Its actions exist: random play from the same start never beats it, and a replay of MiniGrid's own pays it."""
    env = single(task)
    env.reset(seed=4)
    best = best_return(env)
    assert 0.8 < best < 1
    rng, found = np.random.default_rng(1), []
    env = single(task)
    for _ in range(12):
        env.reset(seed=4)
        for _ in range(200):
            _, reward, terminated, truncated, _ = env.step(int(rng.integers(0, 6)))
            if terminated or truncated:
                break
        found.append(reward)
    assert max(found) <= best + 1e-9


def test_ranges_are_shipped_for_every_task():
    for task in IDS:
        low, high = reward_range(MINIGRID, task, 0)
        assert -0.1 < low < high < 1


def test_knobs_are_minigrids_and_wrong_ones_are_one_sentence():
    env = make_copies(MINIGRID, "minigrid/DoorKey-5x5", view="pixels", split="train", num_envs=1, seed=0, max_steps=7)
    assert env.unwrapped.envs[0].unwrapped.max_steps == 7
    with pytest.raises(InputError, match="minigrid/DoorKey-5x5 cannot be made with"):
        make_copies(MINIGRID, "minigrid/DoorKey-5x5", view="pixels", split="train", num_envs=1, seed=0, depth=7)


def test_it_is_found_by_its_name_and_says_what_masks_are():
    assert get_benchmark("minigrid") is MINIGRID
    assert "symbolic observation" in MINIGRID.masks_are
