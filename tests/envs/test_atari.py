"""Atari's masks on the real games: what memory says is where things are drawn."""

import importlib.util
import os

import numpy as np
import pytest

from lcd.envs.atari.benchmark import ATARI, RANGES, Atari, MemoryMasks
from lcd.envs.atari.memory_tables import GAMES
from lcd.envs.atari.objects import ObjectMasks
from lcd.envs.benchmarks import make_copies
from lcd.envs.errors import InputError
from lcd.envs.masks import Moment
from lcd.envs.protocols import check_installed
from tests.envs.contract import BenchmarkContract

ale_py = pytest.importorskip("ale_py")


class OnlyPong(Atari):
    """Making a game takes longer than playing it."""

    tasks = ("atari/Pong",)


class TestAtari(BenchmarkContract):
    benchmark = OnlyPong()


def played(game, steps=160):
    """Screens, memories and the moments' labels of a game played by chance, which keeps its actions for a while."""
    console = ale_py.ALEInterface()
    console.setInt("random_seed", 3)
    console.loadROM(ale_py.roms.get_rom_path(game.lower()))
    console.reset_game()
    actions, rng = console.getMinimalActionSet(), np.random.default_rng(3)
    for step in range(4 * steps):
        if step % 8 == 0:
            action = actions[rng.integers(len(actions))]
        console.act(action)
        if console.game_over():
            console.reset_game()
        if step % 4 == 0:
            screen = console.getScreenRGB()
            yield screen, GAMES[game].labels(screen, console.getRAM())


# Game, class, its colour, and the rows and columns in which nothing else has it.
DRAWN = [
    ("Pong", "player", 0x5CBA5C, (34, 194), (0, 160)),
    ("Pong", "enemy", 0xD5824A, (34, 194), (0, 160)),
    ("Pong", "ball", 0xECECEC, (34, 194), (0, 160)),
    ("Breakout", "player", 0xC84848, (189, 193), (8, 152)),
    ("Breakout", "ball", 0xC84848, (93, 189), (8, 152)),
    ("Breakout", "bricks 6", 0x4248C8, (87, 93), (8, 152)),
    ("Freeway", "player", 0xFCFC54, (106, 195), (40, 60)),
    ("Freeway", "car", 0xA71A1A, (24, 40), (8, 40)),
    ("Freeway", "car", 0xD2D240, (168, 184), (8, 40)),
    ("Boxing", "player", 0xD6D6D6, (36, 178), (32, 128)),
    ("Boxing", "enemy", 0x000000, (36, 178), (32, 128)),
]


@pytest.mark.parametrize("game", GAMES)
def test_labels_are_where_things_are_drawn(game):
    moments = list(played(game))
    screens, labels = (np.array(part) for part in zip(*moments, strict=True))
    colours = (screens[..., 0].astype(int) << 16) + (screens[..., 1].astype(int) << 8) + screens[..., 2]
    names = GAMES[game].names
    assert not labels[:, : GAMES[game].field[0]].any()
    for _, name, colour, rows, columns in [each for each in DRAWN if each[0] == game]:
        region = np.zeros(colours.shape, bool)
        region[:, slice(*rows), slice(*columns)] = True
        drawn, labelled = (colours == colour) & region, (labels == names.index(name)) & region
        assert drawn.any(), name
        assert (drawn & labelled).sum() >= 0.9 * drawn.sum(), name
        if name != "car":  # wheels have another colour
            assert (drawn & labelled).sum() >= 0.9 * labelled.sum(), name


def test_views_are_stacks_of_grey_and_masks_have_every_class_in_a_grey_of_its_own():
    env = ATARI.make_pairs("atari/Breakout", split="train", num_envs=1, seed=0, views=("pixels", "semantic", "labels"))
    shown, _ = env.reset()
    for _ in range(3):
        shown, *_ = env.step(np.array([1]))
    assert {view: each.shape for view, each in shown.items()} == {
        "pixels": (1, 84, 84, 4), "semantic": (1, 84, 84, 4), "labels": (1, 84, 84, 4)
    }  # fmt: skip
    greys = ATARI.intensities("atari/Breakout", "semantic")
    assert np.array_equal(np.array(greys)[shown["labels"]], shown["semantic"])
    names = ATARI.label_names("atari/Breakout", "semantic")
    seen = {names[label] for label in np.unique(shown["labels"])}
    assert seen >= {"background", "player", *(f"bricks {row}" for row in range(1, 7))}
    assert set(ATARI.label_names("atari/Breakout", "figure_ground")) == {"background", "figure"}
    assert str(MemoryMasks("Pong")) == "the console's memory"


def test_knobs_and_ranges():
    env = make_copies(ATARI, "atari/Freeway", view="semantic", split="train", num_envs=1, seed=0, longest=3, frames=1)
    assert env.single_observation_space.shape == (84, 84, 1)
    env.reset()
    assert [bool(env.step(np.array([0]))[3][0]) for _ in range(3)] == [False, False, True]
    with pytest.raises(InputError, match="atari/Pong has no knob 'stiky'; did you mean 'sticky'"):
        make_copies(ATARI, "atari/Pong", view="pixels", split="train", num_envs=1, seed=0, stiky=0.1)
    assert not any(low >= high for low, high in RANGES.values())


needs_ocatari = pytest.mark.skipif(
    importlib.util.find_spec("ocatari") is None and not os.environ.get("CI"), reason="OCAtari is not installed"
)


@needs_ocatari
@pytest.mark.parametrize(
    ("game", "classes"),
    [("Pong", {"player": "Player", "ball": "Ball"}), ("Breakout", {"player": "Player", "ball": "Ball"})],
)
def test_ocatari_finds_things_where_our_tables_do(game, classes):
    """Two that were made apart: what a table of ours labels is in the library's box of that thing."""
    env = ATARI.single(f"atari/{game}", {"sticky": 0.25, "longest": 500})
    tables, boxes = MemoryMasks(game), ObjectMasks(game)
    screen, _ = env.reset(seed=0)
    env.action_space.seed(0)
    ours, both = dict.fromkeys(classes, 0), dict.fromkeys(classes, 0)
    for _ in range(120):
        # Fire, so that there is a ball.
        screen, *_ = env.step(1 if env.action_space.sample() == 1 else env.action_space.sample())
        one, other = (masks(Moment(lambda: screen, None, {}, env.unwrapped)) for masks in (tables, boxes))  # noqa: B023
        for mine, theirs in classes.items():
            own = one == tables.names.index(mine)
            ours[mine] += own.sum()
            both[mine] += (own & (other == boxes.names.index(theirs))).sum()
    for mine in classes:
        assert ours[mine] > 0
        assert both[mine] >= 0.9 * ours[mine], mine


@needs_ocatari
@pytest.mark.parametrize("task", [task for task in RANGES if task.removeprefix("atari/") not in GAMES])
def test_games_of_ocatari_have_labels_that_begin_anew_with_each_episode(task):
    env = ATARI.make_pairs(task, split="train", num_envs=1, seed=0, views=("pixels", "semantic", "labels"))
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(25)]
    played_twice = []
    for _ in range(2):
        shown = [env.reset(seed=[7])[0]["labels"].copy()]
        shown += [env.step(action)[0]["labels"].copy() for action in actions]
        played_twice.append(np.array(shown))
    assert np.array_equal(*played_twice)
    names = ATARI.label_names(task, "semantic")
    assert len({names[label] for label in np.unique(played_twice[0])}) >= 3


def test_without_ocatari_its_games_are_refused_and_ours_are_not(monkeypatch):
    there = importlib.util.find_spec
    monkeypatch.setattr("lcd.envs.atari.benchmark.find_spec", lambda name: None if name == "ocatari" else there(name))
    check_installed(ATARI, ["atari/Pong"])
    with pytest.raises(InputError, match=r"atari/Bowling takes its masks from OCAtari.* pip install --no-deps ocatari"):
        check_installed(ATARI, ["atari/Bowling"])
