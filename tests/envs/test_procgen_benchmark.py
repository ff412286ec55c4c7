"""The benchmarks procgen and procgen-easy, shaping, and populations of games."""

from __future__ import annotations

import numpy as np
import pytest
from procgen_support import lasting_actions, needs_procgen

from lcd.config.budgets import choices
from lcd.envs.benchmarks import Benchmark, get_benchmark, reward_range
from lcd.envs.errors import InputError
from lcd.envs.population import make_points, make_population
from lcd.envs.procgen.knobs import ProcgenKnobs
from lcd.envs.procgen.mask_tables import GAMES
from lcd.envs.procgen.snapshot import WALL, Snapshot, keys_held, lanes
from lcd.envs.protocols import offers

# Cobbe et al. 2020: hard and easy, R_min and R_max.
PUBLISHED = {
    "coinrun": (5, 10, 5, 10),
    "starpilot": (1.5, 35, 2.5, 64),
    "caveflyer": (2, 13.4, 3.5, 12),
    "dodgeball": (1.5, 19, 1.5, 19),
    "fruitbot": (-0.5, 27.2, -1.5, 32.4),
    "chaser": (0.5, 14.2, 0.5, 13),
    "miner": (1.5, 20, 1.5, 13),
    "jumper": (1, 10, 3, 10),
    "leaper": (1.5, 10, 3, 10),
    "maze": (4, 10, 5, 10),
    "bigfish": (0, 40, 1, 40),
    "heist": (2, 10, 3.5, 10),
    "climber": (1, 12.6, 2, 12.6),
    "plunder": (3, 30, 4.5, 30),
    "ninja": (2, 10, 3.5, 10),
    "bossfight": (0.5, 13, 0.5, 13),
}


@pytest.mark.parametrize("name", ["procgen", "procgen-easy"])
def test_a_benchmark_of_16_games_with_the_published_ranges(name):
    benchmark = get_benchmark(name)
    assert offers(benchmark, Benchmark)
    assert benchmark.name == name
    assert tuple(benchmark.tasks) == tuple(f"procgen/{game}" for game in GAMES)
    assert set(GAMES) == set(PUBLISHED)
    for game, numbers in PUBLISHED.items():
        published = numbers[:2] if name == "procgen" else numbers[2:]
        assert reward_range(name, f"procgen/{game}", 0) == published
        assert (benchmark.r_min[f"procgen/{game}"], benchmark.r_max[f"procgen/{game}"]) == published


def test_ranges_follow_the_mode():
    assert reward_range("procgen", "procgen/starpilot", 0, {"mode": "easy"}) == (2.5, 64)
    with pytest.raises(InputError, match="mode is 'extreme', for which no range"):
        reward_range("procgen", "procgen/starpilot", 0, {"mode": "extreme"})
    with pytest.raises(InputError, match="num_level is no knob"):
        reward_range("procgen", "procgen/starpilot", 0, {"num_level": 3})


def test_both_modes_can_be_chosen():
    assert {"procgen", "procgen-easy"} <= set(choices("benchmark"))


@needs_procgen
@pytest.mark.parametrize(("name", "mode", "levels"), [("procgen", "hard", 500), ("procgen-easy", "easy", 200)])
def test_its_environments(name, mode, levels):
    benchmark = get_benchmark(name)
    for split, first, count in (("train", 0, levels), ("eval", levels, 2**31 - 1 - levels)):
        env = benchmark.make_vec("procgen/maze", view="semantic", split=split, num_envs=2, seed=0)
        assert (env.knobs.mode, *env.knobs.levels) == (mode, first, count)
    explored = benchmark.make_vec("procgen/maze", view="pixels", split="train", num_envs=2, seed=0, mode="exploration")
    assert len(set(explored.reset()[1]["level_seed"])) == 1


@needs_procgen
def test_a_population_gives_every_seed_what_it_gets_alone():
    env = make_population("procgen", "procgen/bossfight", seeds=[4, 9], copies=3, view="semantic", split="train")
    alone = get_benchmark("procgen").make_vec(
        "procgen/bossfight", view="semantic", split="train", num_envs=3, seed=9, num_threads=1
    )
    assert np.array_equal(env.reset()[0][3:], alone.reset()[0])
    actions = lasting_actions(6, 60)
    for action in actions[:30]:
        assert np.array_equal(env.step(action)[0][3:], alone.step(action[3:])[0])
    state = env.get_state()
    onward = [env.step(action)[0] for action in actions[30:]]
    env.set_state(state)
    assert all(np.array_equal(env.step(a)[0], seen) for a, seen in zip(actions[30:], onward, strict=True))


def snapshots(env) -> list[Snapshot]:
    """The state of every copy."""
    state = env.get_state()
    parts = np.split(state["bytes"], np.cumsum(state["lengths"])[:-1])
    return [Snapshot(part.tobytes()) for part in parts]


def in_sight(env, kinds: tuple[int, ...]) -> np.ndarray:
    """(kinds, copies): how many entities of a type there are."""
    types = [state.entities["type"] for state in snapshots(env)]
    return np.array([[(of_copy == kind).sum() for of_copy in types] for kind in kinds])


def shaped(game: str, copies: int = 12, split: str = "train", view: str = "pixels", **knobs):
    return get_benchmark("procgen-easy").make_vec(
        f"procgen/{game}", view=view, split=split, num_envs=copies, seed=2, shaping="subgoals", **knobs
    )


@needs_procgen
@pytest.mark.parametrize(
    ("game", "mode"),
    [
        ("maze", "easy"),
        ("maze", "hard"),
        ("maze", "memory"),
        ("leaper", "hard"),
        ("heist", "hard"),
        ("heist", "memory"),
    ],
)
def test_all_sub_goals_of_a_level_are_worth_less_than_its_goal(game, mode):
    env = get_benchmark("procgen").make_vec(
        f"procgen/{game}", view="pixels", split="train", num_envs=32, seed=0, mode=mode, num_levels=0
    )
    env.reset()
    usual, states = ProcgenKnobs(game), snapshots(env)
    most = {
        "maze": lambda state: usual.cell_reward * (state.grid != WALL).sum(),
        "leaper": lambda state: usual.lane_reward * len(lanes(state)),
        "heist": lambda state: (usual.key_reward + usual.door_reward) * len(keys_held(state)),
    }[game]
    worth = [float(most(state)) for state in states]
    assert 0 < max(worth) < 10
    if game == "maze":  # a perfect maze of n x n: cells at even places, and one opening fewer between them
        side = {"easy": 15, "hard": 25, "memory": 31}[mode]
        assert max(worth) == pytest.approx(usual.cell_reward * (2 * ((side + 1) // 2) ** 2 - 1))


@needs_procgen
def test_heist_rewards_every_key_and_every_door():
    env = shaped("heist", key_reward=3.0, door_reward=0.25)
    env.reset()
    counts = in_sight(env, (2, 1))
    keys, doors = 0, 0
    for action in lasting_actions(12, 400):
        _, rewards, ended, _, infos = env.step(action)
        now = in_sight(env, (2, 1))
        taken = np.where(ended, 0, counts - now)
        extra = rewards - infos["original_reward"]
        # A copy's last step of an episode is not counted: the state that it led to is gone.
        assert np.array_equal(extra[~ended], (3.0 * taken[0] + 0.25 * taken[1])[~ended])
        assert np.array_equal(infos["event_reward"], infos["original_reward"])
        keys, doors, counts = keys + taken[0].sum(), doors + taken[1].sum(), now
    assert keys > 3
    assert doors > 1


@needs_procgen
def test_maze_rewards_cells_that_are_new_in_the_episode():
    env = shaped("maze", view="labels", cell_reward=0.5)
    seen = [{_corner(labels)} for labels in env.reset()[0]]
    paid = 0
    for action in lasting_actions(12, 300):
        observations, rewards, ended, _, infos = env.step(action)
        extra = rewards - infos["original_reward"]
        for copy, labels in enumerate(observations):
            place = _corner(labels)
            if ended[copy]:
                seen[copy] = set()
            else:
                assert extra[copy] == 0.5 * (place not in seen[copy])
                paid += extra[copy] > 0
            seen[copy].add(place)
    assert paid > 50


def _corner(labels: np.ndarray) -> tuple[int, int]:
    """The cell of an easy maze (15 a side) in which the player's pixels lie."""
    rows, columns = np.nonzero(labels[..., 0] == 1)
    return int(rows.mean() / 64 * 15), int(columns.mean() / 64 * 15)


@needs_procgen
def test_leaper_rewards_each_lane_once():
    env = shaped("leaper", copies=32, lane_reward=2.0)
    env.reset()
    sums, best = np.zeros(32), []
    for number, action in enumerate(lasting_actions(32, 400)):
        _, rewards, ended, _, infos = env.step(np.where(action < 5, 5, action) if number % 2 else action)
        sums += rewards - infos["original_reward"]
        best += sums[ended].tolist()
        sums[ended] = 0
    # An easy level has three lanes of road and three rows of river at most.
    assert max(best) >= 4
    assert max(best) <= 12
    assert all(total % 2 == 0 for total in best)


@needs_procgen
def test_shaping_is_off_at_evaluation_and_never_thinned():
    held_out = shaped("maze", split="eval")
    held_out.reset()
    for action in lasting_actions(12, 60):
        _, rewards, _, _, infos = held_out.step(action)
        assert np.array_equal(rewards, infos["original_reward"])
    thinned = make_population(
        *("procgen-easy", "procgen/maze"),
        seeds=[2], copies=12, view="pixels", split="train", reward_p=0.25, shaping="subgoals", cell_reward=0.5,
    )  # fmt: skip
    whole = shaped("maze", cell_reward=0.5)
    thinned.reset()
    whole.reset()
    for action in lasting_actions(12, 400):
        _, kept, *_, told = thinned.step(action)
        _, rewards, *_, infos = whole.step(action)
        assert np.array_equal(told["original_reward"], infos["original_reward"])
        extra = rewards - infos["original_reward"]
        events = kept - extra
        assert np.isin(events[infos["original_reward"] > 0], (0, 40)).all()
        assert not events[infos["original_reward"] == 0].any()


@needs_procgen
def test_shaping_continues_from_a_state():
    env = shaped("maze")
    env.reset()
    actions = lasting_actions(12, 120)
    for action in actions[:80]:
        env.step(action)
    state = env.get_state()
    onward = [env.step(action)[1] for action in actions[80:]]
    other = shaped("maze")
    other.set_state(state)
    assert all(np.array_equal(other.step(a)[1], seen) for a, seen in zip(actions[80:], onward, strict=True))


@needs_procgen
@pytest.mark.parametrize("game", ["heist", "leaper", "maze"])
def test_copies_that_are_not_read_have_reached_nothing(game):
    """Reading the state of every copy at every step gives the same rewards."""
    sparing, eager = shaped(game), shaped(game)
    sparing.reset()
    eager.reset()
    for action in lasting_actions(12, 250, 5):
        eager._subgoals.asleep[:], eager._subgoals.last = 0, None
        assert np.array_equal(sparing.step(action)[1], eager.step(action)[1])


@pytest.mark.parametrize(("name", "levels"), [("procgen", 500), ("procgen-easy", 200)])
def test_each_training_level_is_a_point_that_is_evaluated_on_itself(name, levels):
    benchmark = get_benchmark(name)
    family = benchmark.family("procgen/maze")
    assert len(family.points) == levels
    assert np.array_equal(family.distribution, np.full(levels, 1 / levels))
    for split in ("train", "eval"):
        made = [
            ProcgenKnobs(game="maze", split=split, **point).levels for point in (family.points[0], family.points[7])
        ]
        assert made == [(0, 1), (7, 1)]
        # What the default point says is what the task is anyway.
        own = {"game": "maze", "split": split, "num_levels": levels}
        assert ProcgenKnobs(**{**own, **family.default}).levels == ProcgenKnobs(**own).levels
    assert ProcgenKnobs(game="maze", split="eval", start_level=5, num_levels=10, held_out=False).levels == (5, 10)
    assert ProcgenKnobs(game="maze", split="eval", num_levels=0, held_out=False).levels == (0, 0)
    with pytest.raises(InputError, match="held_out is 2, but it must be true or false"):
        ProcgenKnobs(game="maze", held_out=2)


@needs_procgen
def test_a_point_plays_its_level_alone_held_out_too():
    points = [get_benchmark("procgen").family("procgen/maze").points[level] for level in (3, 11)]
    for split in ("train", "eval"):
        how = {"seeds": [0], "copies": 2, "view": "pixels", "split": split}
        env = make_points("procgen", "procgen/maze", points=points, **how)
        _, infos = env.reset()
        assert infos["level_seed"].tolist() == [3, 3, 11, 11]
        env.close()
