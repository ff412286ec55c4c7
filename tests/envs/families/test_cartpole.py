"""Cartpoles: equal to Gymnasium's step by step, and together as alone."""

import gymnasium
import numpy as np
import pytest

from lcd.envs.families.cartpole import FAMILY, CarlCartpoleVectorEnv, CartpoleVectorEnv

from ..contract import EnvironmentContract

STEPS = 60


class TestCartpole(EnvironmentContract):
    env_id = "lcd.envs:lcd/cartpole-family-v0"
    arguments = {"masscart": 2.0}
    longest_episode = 300


def theirs(point: dict[str, float]) -> gymnasium.Env:
    env = gymnasium.make("CartPole-v1").unwrapped
    for name, value in point.items():
        setattr(env, name, value)
    env.total_mass = env.masspole + env.masscart
    env.polemass_length = env.masspole * env.length
    env.reset()
    return env


@pytest.mark.parametrize("number", [None, 0, 100, 288, 301, 444, 575])
def test_every_step_is_gymnasiums(number):
    point = dict(FAMILY.default if number is None else FAMILY.points[number])
    point = {name: float(value) for name, value in point.items()}
    ours, env = CartpoleVectorEnv(1, seed=number or 0, **point), theirs(point)
    rng = np.random.default_rng(number)
    ours.reset()
    for _ in range(STEPS):
        env.state = ours.states[:, 0]
        action = int(rng.integers(2))
        observation, reward, terminated, _, _ = env.step(action)
        observations, rewards, terminations, _, infos = ours.step(np.array([action]))
        assert (reward, terminated) == (rewards[0], terminations[0])
        env.steps_beyond_terminated = None
        if terminated:
            assert np.array_equal(infos["final_obs"][0], observation)
        else:
            assert np.array_equal(ours.states[:, 0], env.state)
            assert np.array_equal(observations[0], observation)


def test_carls_cartpoles_do_not_feel_the_carts_mass():
    """CARL sets attributes and derives nothing anew."""
    env = gymnasium.make("CartPole-v1").unwrapped
    env.masscart, env.length, env.force_mag, env.masspole = 10.0, 3.0, 50.0, 0.5
    env.reset()
    ours = CarlCartpoleVectorEnv(1, masscart=10, length=3, force_mag=50, masspole=0.5)
    light = CarlCartpoleVectorEnv(1, masscart=0.1, length=3, force_mag=50, masspole=0.5)
    ours.reset()
    light.reset()
    for number in range(STEPS):
        env.state = ours.states[:, 0]
        action = number // 2 % 2
        env.step(action)
        _, _, terminations, _, _ = ours.step(np.array([action]))
        light.step(np.array([action]))
        assert np.array_equal(light.states, ours.states)
        if not terminations[0]:
            assert np.array_equal(ours.states[:, 0], env.state)
