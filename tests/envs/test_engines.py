"""The wrappers on MuJoCo, Atari and Procgen; each is an extra, and skipped where it is not installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.utils import batch_space

from lcd.envs.benchmarks import get_benchmark
from lcd.envs.errors import InputError
from lcd.envs.hardness.wrappers import HardnessVectorWrapper, HardnessWrapper
from lcd.envs.mujoco import MujocoHardness
from lcd.envs.population import make_population


@pytest.fixture
def cheetah():
    pytest.importorskip("mujoco")
    return lambda **knobs: MujocoHardness(gymnasium.make("HalfCheetah-v5"), **knobs)


def after(env, action, steps=5):
    env.reset(seed=0)
    total = 0.0
    for _ in range(steps):
        _, reward, *_ = env.step(np.full(env.action_space.shape, action, env.action_space.dtype))
        total += reward
    return env.unwrapped.data.qpos.copy(), total


def test_beyond_its_range_an_action_has_an_effect_only_with_wider_clamping(cheetah):
    plain, wide = cheetah(), cheetah(action_space_max=4.0)
    assert np.allclose(wide.action_space.high, 4 * plain.action_space.high)
    assert np.array_equal(after(plain, 1.0)[0], after(wide, 1.0)[0])
    assert np.array_equal(after(plain, 1.0)[0], after(plain, 4.0)[0])
    assert not np.allclose(after(wide, 1.0)[0], after(wide, 4.0)[0])


def test_half_the_range_is_half_the_range(cheetah):
    narrow = cheetah(action_space_max=0.5)
    assert np.allclose(narrow.action_space.high, 0.5)
    assert np.array_equal(after(narrow, 0.5)[0], after(cheetah(), 0.5)[0])


def test_a_smaller_time_unit_cuts_the_same_motion_finer(cheetah):
    plain, fine = cheetah(), cheetah(time_unit=0.2)
    (end, reward), (fine_end, fine_reward) = after(plain, 0.7, 4), after(fine, 0.7, 20)
    assert np.allclose(end, fine_end)
    assert fine_reward == pytest.approx(reward, rel=0.02)
    fine.reset(seed=0)
    steps, over = 0, False
    while not over:
        *_, terminated, truncated, _ = fine.step(fine.action_space.sample())
        steps, over = steps + 1, terminated or truncated
    assert steps == 5000


def test_noise_on_the_state_goes_into_the_motion(cheetah):
    env = HardnessWrapper(cheetah(), transition_noise=0.05)
    env.reset(seed=0)
    before = env.unwrapped.data.qpos.copy()
    observation, *_ = env.step(np.zeros(6, np.float32))
    inside = env.unwrapped.data
    assert np.allclose(observation, np.concatenate([inside.qpos[1:], inside.qvel]))
    assert np.abs(inside.qpos - before).max() > 0.02


def test_irrelevant_dimensions_beside_a_cheetah(cheetah):
    env = HardnessWrapper(cheetah(), irrelevant_features={"state_space_dim": 4})
    assert env.observation_space.shape == (21,)
    assert env.action_space.shape == (10,)
    assert env.reset(seed=0)[0].shape == env.step(env.action_space.sample())[0].shape == (21,)


@pytest.mark.parametrize("knobs", [{"time_unit": 0.3}, {"time_unit": 0}, {"action_space_max": -1}])
def test_impossible_mujoco_knobs(cheetah, knobs):
    with pytest.raises(InputError, match=next(iter(knobs))):
        cheetah(**knobs)


def test_only_mujoco_has_a_time_unit():
    with pytest.raises(InputError, match="time_unit"):
        MujocoHardness(gymnasium.make("CartPole-v1"), time_unit=0.5)


KNOBS = {"delay": 2, "reward_noise": 0.1, "transition_noise": 0.25, "image_transforms": "shift", "reward_scale": 2.0}


def check_harder_images(env, copies):
    observations, _ = env.reset(seed=0)
    for _ in range(20):
        observations, rewards, *_, infos = env.step(env.action_space.sample())
        assert env.observation_space.contains(observations)
        assert rewards.shape == infos["event_reward"].shape == (copies,)
        assert (rewards != infos["event_reward"]).all()


def test_atari():
    pytest.importorskip("ale_py")
    make = [lambda: gymnasium.make("ale_py:ALE/Breakout-v5", frameskip=4)] * 2
    env = HardnessVectorWrapper(SyncVectorEnv(make, autoreset_mode=AutoresetMode.SAME_STEP), **KNOBS)
    check_harder_images(env, 2)
    beside = HardnessVectorWrapper(
        SyncVectorEnv(make, autoreset_mode=AutoresetMode.SAME_STEP), irrelevant_features=True
    )
    assert beside.reset(seed=0)[0].shape == (2, 210, 160 + 210, 3)


class Procgen(VectorEnv):
    """Just enough of Gymnasium around the engine."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, copies):
        from gym3.libenv import CEnv

        home = Path(importlib.util.find_spec("procgen").origin).parent
        options = {
            "env_name": "coinrun",
            "num_levels": 1,
            "start_level": 0,
            "num_actions": 15,
            "use_sequential_levels": False,
            "debug_mode": 0,
            "rand_seed": 0,
            "num_threads": 1,
            "render_human": False,
            "resource_root": f"{home / 'data' / 'assets'}/",
            "center_agent": True,
            "use_generated_assets": False,
            "use_monochrome_assets": False,
            "restrict_themes": False,
            "use_backgrounds": True,
            "paint_vel_info": False,
            "distribution_mode": 0,
        }
        self.num_envs = copies
        self._engine = CEnv(copies, lib_dir=str(home / "data" / "prebuilt"), options=options)
        self.single_observation_space = spaces.Box(0, 255, (64, 64, 3), np.uint8)
        self.single_action_space = spaces.Discrete(15)
        self.observation_space = batch_space(self.single_observation_space, copies)
        self.action_space = batch_space(self.single_action_space, copies)

    def reset(self, *, seed=None, options=None):
        return self._engine.observe()[1]["rgb"].copy(), {}

    def step(self, actions):
        self._engine.act({"action": np.asarray(actions, np.int32)})
        rewards, shown, first = self._engine.observe()
        return shown["rgb"].copy(), rewards.astype(float), first.copy(), np.zeros(self.num_envs, bool), {}


def test_procgen():
    pytest.importorskip("gym3")
    if importlib.util.find_spec("procgen") is None:
        pytest.skip("procgen is not installed")
    check_harder_images(HardnessVectorWrapper(Procgen(3), **KNOBS), 3)


def test_procgen_made_harder_is_a_population_of_its_seeds():
    pytest.importorskip("gym3")
    benchmark, task = get_benchmark("hardness"), "hardness/procgen/coinrun:delay=2"
    actions = np.random.default_rng(0).integers(15, size=(40, 2))

    def played(seeds):
        env = make_population(benchmark, task, seeds=seeds, copies=2, view="pixels", split="train")
        first, _ = env.reset(seed=[seed + 10 for seed in seeds])
        steps = [env.step(np.tile(now, len(seeds))) for now in actions]
        env.close()
        return np.stack([first, *(step[0] for step in steps)]), np.stack([step[1] for step in steps])

    seen, paid = played([1, 2])
    alone, earned = played([2])
    assert np.array_equal(seen[:, 2:], alone)
    assert np.array_equal(paid[:, 2:], earned)
    assert not np.array_equal(seen[:, :2], alone)
