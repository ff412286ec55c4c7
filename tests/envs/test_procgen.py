"""Procgen's environments: the contract, knobs, levels, states, populations."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from contract import EnvironmentContract, rollout
from procgen_support import lasting_actions, needs_procgen

from lcd.envs.errors import InputError
from lcd.envs.population import SeedStack
from lcd.envs.procgen.knobs import EXPLORATION_LEVELS, GAMES_OF_MODE, LAST_LEVEL, ProcgenKnobs
from lcd.envs.procgen.mask_tables import GAMES

pytestmark = needs_procgen


def vector(game: str, copies: int = 4, **arguments: Any):
    from lcd.envs.procgen.vector import ProcgenVectorEnv

    return ProcgenVectorEnv(copies, game=game, **arguments)


class ProcgenContract(EnvironmentContract):
    final_frames = False

    def make_vec(self, num_envs: int | None = None, **arguments: Any):
        seeds = arguments.get("seed", 0)
        if isinstance(seeds, int):
            return super().make_vec(num_envs, **arguments)
        copies = (num_envs or self.copies) // len(seeds)
        return SeedStack([super(ProcgenContract, self).make_vec(copies, **{**arguments, "seed": s}) for s in seeds])


class TestPixels(ProcgenContract):
    env_id = "lcd/leaper-v0"
    longest_episode = 501


class TestDisguisedMask(ProcgenContract):
    """A game whose masks change the state when a level starts."""

    env_id = "lcd/bossfight-v0"
    arguments: ClassVar = {"view": "semantic", "mode": "easy"}
    longest_episode = 900


class TestMaskByLevel(ProcgenContract):
    env_id = "lcd/plunder-v0"
    arguments: ClassVar = {"view": "figure_ground"}
    longest_episode = 900


@pytest.mark.parametrize("game", GAMES)
def test_every_game_is_registered(game):
    env = gymnasium.make_vec(f"lcd/{game}-v0", num_envs=2, vectorization_mode="vector_entry_point", view="labels")
    observations, infos = env.reset(seed=1)
    assert observations.shape == (2, 64, 64, 1)
    assert observations.max() < len(env.unwrapped.label_names)
    assert infos["level_seed"].shape == (2,)
    env.close()


@pytest.mark.parametrize("game", ["bigfish", "coinrun", "starpilot"])
def test_pixels_are_those_of_the_stock_game(game):
    from gym3.libenv import CEnv

    from lcd.envs.procgen.skins import wheel

    env = vector(game, seed=5)
    actions = lasting_actions(4, 60)
    options = {**env.knobs.options(0), "resource_root": f"{wheel()}/assets/"}
    observations, _ = env.reset()
    options["rand_seed"] = env._engine._options["rand_seed"]
    stock = CEnv(4, str(wheel() / "prebuilt"), options=options)
    assert np.array_equal(observations, stock.observe()[1]["rgb"])
    for action in actions:
        observations, rewards, ended, _, infos = env.step(action)
        stock.act({"action": action.astype(np.int32)})
        stock_rewards, stock_observations, first = stock.observe()
        assert np.array_equal(observations, stock_observations["rgb"])
        assert np.array_equal(rewards, stock_rewards)
        assert np.array_equal(ended, first)
        assert infos["level_seed"].tolist() == [info["level_seed"] for info in stock.get_info()]
    stock.close()


@pytest.mark.parametrize(
    ("arguments", "low", "high"),
    [
        ({}, 0, 500),
        ({"split": "eval"}, 500, LAST_LEVEL),
        ({"num_levels": 7, "start_level": 40}, 40, 47),
        ({"num_levels": 7, "start_level": 40, "split": "eval"}, 47, LAST_LEVEL),
        ({"num_levels": 0}, 0, LAST_LEVEL),
        ({"mode": "exploration"}, EXPLORATION_LEVELS["maze"], EXPLORATION_LEVELS["maze"] + 1),
    ],
)
def test_levels_of_a_split(arguments, low, high):
    env = vector("maze", 16, **arguments)
    seen = {int(level) for _ in range(12) for level in env.reset()[1]["level_seed"] if env.step(np.full(16, 4))}
    assert low <= min(seen) <= max(seen) < high
    assert len(seen) > min(5, (high - low) // 2)


def test_seeds_seed():
    starts = {seed: vector("heist", 8).reset(seed=seed)[1]["level_seed"].tolist() for seed in range(4)}
    assert len({tuple(levels) for levels in starts.values()}) == 4
    assert vector("heist", 8).reset(seed=2)[1]["level_seed"].tolist() == starts[2]
    assert vector("heist", 8, split="eval").reset(seed=2)[1]["level_seed"].tolist() != starts[2]


def test_infos_tell_levels_completion_and_returns():
    env = vector("leaper", 32, mode="easy", seed=1)
    _, infos = env.reset()
    level, returns, completed = infos["level_seed"], np.zeros(32), 0
    for _ in range(300):
        actions = np.full(32, 5)  # up
        _, rewards, ended, truncated, infos = env.step(actions)
        returns += rewards
        assert np.array_equal(infos["prev_level_seed"], level)
        assert np.array_equal(infos["original_return"], returns)
        assert np.array_equal(infos["level_complete"], rewards > 0)
        assert not truncated.any()
        completed += infos["level_complete"].sum()
        level, returns = infos["level_seed"], np.where(ended, 0, returns)
    assert completed > 3


@pytest.mark.parametrize("game", ["bossfight", "starpilot", "plunder", "climber"])
def test_states_are_the_stock_games_under_every_view(game):
    views = ("pixels", "semantic", "figure_ground")
    envs = {view: vector(game, seed=3, view=view) for view in views}
    actions = lasting_actions(4, 160)
    for env in envs.values():
        env.reset()
        for action in actions[:100]:
            env.step(action)
    states = {view: env.get_state() for view, env in envs.items()}
    for view in views[1:]:
        assert np.array_equal(states[view]["bytes"], states["pixels"]["bytes"])
    onward = [envs["semantic"].step(action)[:3] for action in actions[100:]]
    other = vector(game, seed=77, view="semantic")
    other.set_state(states["pixels"])
    for action, (observations, rewards, ended) in zip(actions[100:], onward, strict=True):
        again = other.step(action)
        assert np.array_equal(again[0], observations)
        assert np.array_equal(again[1], rewards)
        assert np.array_equal(again[2], ended)


def test_options_reach_the_game():
    plain = rollout(vector("coinrun"), seed=1, steps=5)["observations"]
    for option in ("use_backgrounds", "center_agent"):
        assert not np.array_equal(rollout(vector("coinrun", **{option: False}), 1, 5)["observations"], plain)
    options = ("use_monochrome_assets", "restrict_themes", "use_generated_assets", "paint_vel_info")
    for option in options:
        assert not np.array_equal(rollout(vector("coinrun", **{option: True}), 1, 5)["observations"], plain)
    mask = rollout(vector("coinrun", view="semantic"), 1, 5)["observations"]
    for drawn in ({"use_backgrounds": False}, {"use_monochrome_assets": True}, {"paint_vel_info": True}):
        assert np.array_equal(rollout(vector("coinrun", view="semantic", **drawn), 1, 5)["observations"], mask)


def test_sequential_levels_go_on_within_an_episode():
    env = vector("leaper", 32, mode="easy", seed=1, use_sequential_levels=True, view="semantic")
    env.reset()
    completed = 0
    for _ in range(200):
        _, _, ended, _, infos = env.step(np.full(32, 5))
        assert not (ended & infos["level_complete"]).any()
        completed += infos["level_complete"].sum()
    assert completed > 3


def test_masks_know_levels_that_begin_within_an_episode():
    """With sequential levels, a level may begin without an episode's end; laser colours must be right there too."""
    env = vector("starpilot", 8, seed=2, use_sequential_levels=True, view="semantic")
    env.reset()
    greys = {0, *(255 * n // 11 for n in range(12))}
    for action in lasting_actions(8, 200):
        assert set(np.unique(env.step(action)[0])) <= greys


@pytest.mark.parametrize("mode", ["easy", "extreme", "memory", "exploration"])
def test_modes(mode):
    for game in GAMES:
        if game in GAMES_OF_MODE[mode]:
            ProcgenKnobs(game, mode=mode)
        else:
            with pytest.raises(InputError, match=f"mode is '{mode}', which {game} does not have"):
                ProcgenKnobs(game, mode=mode)
    game = GAMES_OF_MODE[mode][0]
    greys = {255 * n // (len(vector(game, view="labels", mode=mode).label_names) - 1) for n in range(12)}
    env = vector(game, mode=mode, view="semantic")
    assert set(np.unique(rollout(env, 1)["observations"])) <= greys


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"game": "heits"}, "game is 'heits'.*did you mean 'heist'"),
        ({"view": "pixel"}, "view is 'pixel'.*did you mean 'pixels'"),
        ({"mode": "hrad"}, "mode is 'hrad'.*did you mean 'hard'"),
        ({"num_levels": -1}, "num_levels is -1"),
        ({"num_levels": 0, "split": "eval"}, "split='eval' has none left"),
        ({"mode": "exploration", "num_levels": 3}, "one level that is fixed"),
        ({"restrict_themes": 1}, "restrict_themes is 1, but it must be true or false"),
        ({"view": "semantic", "use_generated_assets": True}, "only view='pixels' shows generated"),
        ({"game": "bossfight", "view": "semantic", "restrict_themes": True}, "restrict_themes is True"),
        ({"game": "miner", "shaping": "subgoals"}, "only heist, leaper and maze"),
        ({"num_level": 3}, "num_level is no knob of a Procgen environment; did you mean 'num_levels'"),
        ({"num_threads": -1}, "num_threads is -1"),
        ({"render_mode": "human"}, "render_mode is 'human'"),
        ({"key_reward": "much"}, "key_reward is 'much'"),
    ],
)
def test_mistakes(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        vector(**{"game": "heist", **arguments})


def test_wrong_actions_and_states():
    env, other = vector("heist"), vector("maze")
    env.reset()
    other.reset()
    for actions in ([15, 0, 0, 0], [0, -1, 0, 0], [0, 0]):
        with pytest.raises(InputError, match="actions must be 4 whole numbers from 0 to 14"):
            env.step(np.array(actions))
    with pytest.raises(InputError, match="The state is of maze"):
        env.set_state(other.get_state())
    generated = vector("heist", use_generated_assets=True)
    generated.reset()
    with pytest.raises(InputError, match="use_generated_assets"):
        generated.get_state()


def test_rendering():
    env = vector("heist", view="labels", render_mode="rgb_array")
    assert vector("heist").render() is None
    env.reset()
    frames = env.render()
    assert len(frames) == 4
    assert frames[0].shape == (64, 64, 3)
    single = gymnasium.make("lcd/heist-v0", render_mode="rgb_array")
    single.reset(seed=0)
    assert single.render().shape == (64, 64, 3)


def test_a_single_copy_goes_on_to_the_next_level_without_skipping_one():
    single = gymnasium.make("lcd/leaper-v0", seed=3, mode="easy").unwrapped
    vectored = vector("leaper", 1, seed=3, mode="easy")
    levels = [single.reset()[1]["level_seed"]]
    expected = [vectored.reset()[1]["level_seed"][0]]
    while len(levels) < 4:
        _, _, ended, _, _ = single.step(5)
        _, _, also, _, infos = vectored.step(np.array([5]))
        assert ended == also[0]
        if ended:
            levels.append(single.reset()[1]["level_seed"])
            expected.append(infos["level_seed"][0])
    assert levels == expected


def test_the_number_of_threads_changes_nothing():
    one, four = (rollout(vector("starpilot", num_threads=n), seed=1) for n in (0, 4))
    assert all(np.array_equal(one[name], four[name]) for name in one)


def test_environments_import_without_procgen():
    hide = (
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('procgen', 'gym3', 'cffi', 'imageio'): raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
    )
    code = (
        f"{hide}import gymnasium, lcd.envs\n"
        "from lcd.envs.benchmarks import get_benchmark\n"
        "from lcd.envs.errors import InputError\n"
        "assert 'lcd/heist-v0' in gymnasium.registry\n"
        "benchmark = get_benchmark('procgen')\n"
        "try: benchmark.make_vec('procgen/heist', view='pixels', split='train', num_envs=1, seed=0)\n"
        "except InputError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "pip install" in done.stdout
