"""Procgen's masks: the paper's tables, no unknown pixel, views in lockstep, and the truth of what is shown."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from procgen_support import lasting_actions, needs_procgen

from lcd.envs.procgen.mask_tables import GAMES, MASKS, TABLES, expand
from lcd.envs.procgen.paint import paint, skin_of, skins

pytestmark = needs_procgen

# How many entity IDs the paper's tables 1 to 4 give each game: semantic, figure/ground.
IDS = {
    "bigfish": (2, 1),
    "bossfight": (7, 1),
    "caveflyer": (8, 1),
    "chaser": (7, 1),
    "climber": (4, 1),
    "coinrun": (8, 1),
    "dodgeball": (7, 1),
    "fruitbot": (8, 1),
    "heist": (6, 4),
    "jumper": (6, 3),
    "leaper": (6, 2),
    "maze": (3, 1),
    "miner": (5, 1),
    "ninja": (7, 2),
    "plunder": (8, 5),
    "starpilot": (11, 1),
}
# The twin rounds outlines otherwise; where lasers fade over each other it shows the upper one, the mask the stronger.
FALSE_SHARE, MISSING_SHARE = 1.5e-4, 1e-5


def environment(game: str, copies: int, **arguments):
    from lcd.envs.procgen.vector import ProcgenVectorEnv

    return ProcgenVectorEnv(copies, game=game, **arguments)


@pytest.mark.parametrize("game", GAMES)
def test_tables_have_the_papers_numbers_of_ids(game):
    assert tuple(len(TABLES[game].names(view)) - 1 for view in ("semantic", "figure_ground")) == IDS[game]


@pytest.mark.parametrize("game", GAMES)
def test_tables_name_sprites_that_exist_and_colours_apart(game):
    from lcd.envs.procgen.skins import wheel

    assert all((wheel() / "assets" / sprite).is_file() for sprite in TABLES[game].sprites)
    for view in MASKS:
        greys = TABLES[game].intensities(view)
        assert len(set(greys)) == len(greys)
        assert (greys[0], max(greys)) == (0, 255)
        assert paint(game, view).items() <= skin_of(game, view).items()
    shared = {"bossfight": 2, "starpilot": 2, "plunder": 2}
    owners = [sprite for entity in TABLES[game].entities for sprite in entity.sprites]
    assert max(owners.count(sprite) for sprite in owners) == shared.get(game, 1)


def test_a_few_skins_serve_all_games_and_masks():
    assert len(skins()) < 10
    assert tuple(expand("a{b,c}d{1,2}")) == ("abd1.png", "abd2.png", "acd1.png", "acd2.png")


def test_figure_ground_joins_what_the_paper_joins():
    leaper = TABLES["leaper"].labels("figure_ground")
    assert leaper["road"] == leaper["water"] == 1
    assert leaper["cars"] == leaper["player"] == leaper["finish line"] == 2
    plunder = TABLES["plunder"].labels("figure_ground")
    assert plunder["barriers"] == plunder["explosions"] == plunder["player projectiles"] == 5


@pytest.mark.parametrize("mode", ["easy", "hard"])
@pytest.mark.parametrize("game", GAMES)
def test_every_pixel_has_a_class_and_views_never_drift_apart(game, mode):
    """3 seeds of 2,080 frames. `PairedViews` raises where rewards, ends or levels differ between the views."""
    from lcd.envs.procgen.pairs import PairedViews

    copies, steps = 16, 130
    known, figures, lasers = _lookups(game)
    for seed in range(3):
        env = PairedViews(copies, seed, game=game, mode=mode)
        observations, _ = env.reset()
        for action in lasting_actions(copies, steps, seed):
            for view in MASKS:
                assert known[view][observations[view][..., 0]].all()
                assert (observations[view] == observations[view][..., :1]).all()
            semantic = observations["semantic"][..., 0]
            joined = figures[semantic] == observations["figure_ground"][..., 0]
            # Bossfight's lasers have the outline of another of the game's lasers where both sides were given one kind.
            assert joined.all() or (game == "bossfight" and joined[~lasers[semantic]].mean() > 0.99)
            observations, *_ = env.step(action)
        states = [of_view.get_state()["bytes"] for of_view in env.envs.values()]
        assert all(np.array_equal(states[0], other) for other in states[1:])
        env.close()


def _lookups(game: str) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """By grey: is it a label's? Which figure-ground grey has this semantic one? Is it of projectiles?"""
    table = TABLES[game]
    known = {view: np.isin(np.arange(256), table.intensities(view)) for view in MASKS}
    semantic = np.array(table.intensities("semantic"))
    figures = np.zeros(256, dtype=np.uint8)
    labels = list(table.labels("figure_ground").values())
    figures[semantic[1:]] = np.array(table.intensities("figure_ground"))[labels]
    lasers = np.isin(
        np.arange(256), [semantic[n] for n, name in enumerate(table.names("semantic")) if "project" in name]
    )
    return known, figures, lasers


def test_views_that_drift_apart_are_noticed():
    from lcd.envs.procgen.pairs import PairedViews

    env = PairedViews(4, 0, game="bigfish")
    env.reset()
    env.envs["semantic"].step(np.full(4, 7))
    with pytest.raises(RuntimeError, match="drifted apart"):
        all(env.step(action) for action in lasting_actions(4, 400))


def test_paired_views_continue_from_a_state():
    from lcd.envs.procgen.pairs import PairedViews

    env = PairedViews(4, 0, game="bossfight")
    assert env.observation_space.contains(env.reset()[0])
    actions = lasting_actions(4, 120)
    for action in actions[:80]:
        env.step(action)
    state = env.get_state()
    onward = [env.step(action)[0] for action in actions[80:]]
    env.set_state(state)
    for action, expected in zip(actions[80:], onward, strict=True):
        observations = env.step(action)[0]
        assert all(np.array_equal(observations[view], expected[view]) for view in expected)


@pytest.mark.parametrize("mode", ["easy", "hard"])
@pytest.mark.parametrize("game", GAMES)
def test_masks_show_what_the_state_says(game, mode):
    """Against a drawing of every entity and cell: a class is nowhere it is not, and missing nowhere it is in sight."""
    from procgen_twin import disagreements

    copies = 6
    env = environment(game, copies, seed=11, view="labels", mode=mode)
    env.reset()
    nowhere, missing, pixels = 0, 0, 0
    for number, action in enumerate(lasting_actions(copies, 180, 4)):
        observations, *_ = env.step(action)
        if number % 20 == 0:
            state = env.get_state()
            parts = np.split(state["bytes"], np.cumsum(state["lengths"])[:-1])
            for labels, data in zip(observations[..., 0].astype(int), parts, strict=True):
                false, absent = disagreements(labels, data.tobytes())
                nowhere, missing, pixels = nowhere + false.sum(), missing + absent.sum(), pixels + labels.size
    assert nowhere <= FALSE_SHARE * pixels
    assert missing <= MISSING_SHARE * pixels


def test_the_twin_notices_a_wrong_mask():
    from procgen_twin import disagreements

    env = environment("heist", 1, seed=1, view="labels")
    labels = env.reset()[0][0, ..., 0].astype(int)
    data = env.get_state()["bytes"].tobytes()
    assert not np.any(disagreements(labels, data))
    moved = np.roll(labels, 3, axis=1)
    assert all(wrong.sum() > 20 for wrong in disagreements(moved, data))


def test_bossfight_lasers_are_of_whoever_fired():
    """Who never fires has no projectiles in sight; who does has them only after having fired."""
    quiet = environment("bossfight", 24, seed=2, view="labels")
    quiet.reset()
    enemy = 0
    for action in lasting_actions(24, 150):
        labels = quiet.step(np.where(action > 8, 4, action))[0]
        assert not (labels == 2).any()
        enemy += (labels == 4).sum()
    assert enemy > 1000
    firing = environment("bossfight", 24, seed=2, view="labels")
    firing.reset()
    waited, players = np.full(24, 99), 0
    for action in lasting_actions(24, 150, 1):
        labels, _, ended, *_ = firing.step(action)
        waited = np.where(ended, 99, np.where(action == 9, 0, waited + 1))
        seen = (labels == 2).any(axis=(1, 2, 3))
        players += seen.sum()
        assert (waited[seen] <= 30).all()
    assert players > 200


def test_starpilot_flyers_fly_as_fast_as_their_class():
    """Slow flyers move 0.4 and fast ones 0.6 units of 4 pixels a step; told from masks of four successive steps."""
    env = environment("starpilot", 48, seed=6, view="labels")
    env.reset()
    history, speeds = [], {3: [], 4: []}
    for number in range(300):
        history.append(env.step(np.full(48, number % 2 * 3))[0][..., 0])
        for label in speeds if number > 6 else ():
            for copy in range(48):
                boxes = [_lone_blob(frames[copy], label) for frames in history[-6:]]
                if all(box is not None for box in boxes):
                    steps = [np.hypot(*(b - a)) for a, b in pairwise(boxes)]
                    if max(steps) < 4:
                        speeds[label].append(np.hypot(*(boxes[-1] - boxes[0])) / 5)
    assert min(len(found) for found in speeds.values()) > 20
    assert abs(np.median(speeds[3]) - 1.6) < 0.15
    assert abs(np.median(speeds[4]) - 2.4) < 0.2
    assert np.mean(np.array(speeds[3]) < 2) > 0.95
    assert np.mean(np.array(speeds[4]) > 2) > 0.95


def _lone_blob(labels: np.ndarray, label: int) -> np.ndarray | None:
    """The middle of the only thing of a class, if it is one flyer that lies wholly in sight."""
    rows, columns = np.nonzero(labels == label)
    if not len(rows) or np.ptp(rows) > 4 or np.ptp(columns) > 4:
        return None
    if min(rows.min(), columns.min()) < 2 or max(rows.max(), columns.max()) > 61 or len(rows) < 6:
        return None
    return np.array([rows.min() + rows.max(), columns.min() + columns.max()]) / 2


def test_plunder_enemies_are_whose_destruction_is_rewarded():
    env = environment("plunder", 48, seed=3, view="labels", mode="easy")
    before = env.reset()[0][..., 0]
    struck = {True: [], False: []}
    for action in lasting_actions(48, 300, 2):
        labels, rewards, ended, *_ = env.step(np.where(action > 8, 9, action))
        labels = labels[..., 0]
        for copy in np.flatnonzero(~ended):
            fresh = (labels[copy] == 6) & (before[copy] != 6)
            was = before[copy][fresh]
            if (before[copy] != 6).all() and np.isin(was, (1, 3)).any():
                enemy = (was == 3).sum() > (was == 1).sum()
                struck[bool(rewards[copy] > 0)].append(bool(enemy))
        before = labels
    assert min(len(hits) for hits in struck.values()) > 20
    # Ships of neighbouring lanes overlap, so that now and then the one that is hit lies below.
    assert np.mean(struck[True]) > 0.95
    assert np.mean(struck[False]) < 0.05
