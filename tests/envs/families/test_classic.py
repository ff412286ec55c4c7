"""Pendulums, mountain cars and the quadcopter: equal to Gymnasium's where it has them, and solvable where we say so."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from lcd.envs.families import mountain_car, pendulum, quad
from lcd.envs.families.mountain_car import MountainCarVectorEnv
from lcd.envs.families.pendulum import PendulumVectorEnv, SwingUpVectorEnv, from_upright
from lcd.envs.families.quad import QuadVectorEnv

from ..contract import EnvironmentContract

NUMPY_2 = int(np.__version__.split(".")[0]) >= 2
"""Before NumPy 2 a Python number times one of 32 bits had 64: Gymnasium's environments then differ in the last bits."""


class TestPendulum(EnvironmentContract):
    env_id = "lcd.envs:lcd/pendulum-family-v0"
    arguments = {"gravity": 5.0}
    longest_episode = 200

    def test_single_copy_passes_gymnasiums_checker(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Its torques go from -2 to 2, as Gymnasium's own do.
            warnings.filterwarnings("ignore", ".*symmetric and normalized space.*")
            check_env(gymnasium.make(self.env_id, **self.arguments).unwrapped)


class TestSwingUp(EnvironmentContract):
    env_id = "lcd.envs:lcd/pendulum-five-family-v0"
    longest_episode = 200


class TestMountainCar(EnvironmentContract):
    env_id = "lcd.envs:lcd/mountain-car-family-v0"
    longest_episode = 999


class TestQuad(EnvironmentContract):
    env_id = "lcd.envs:lcd/quad-family-v0"
    longest_episode = 150


def lockstep(ours, env, steps, seed, most):
    """Both from the same state at every step, with the same actions."""
    rng = np.random.default_rng(seed)
    ours.reset()
    env.reset()
    for _ in range(steps):
        env.state = ours.states[:, 0]
        action = rng.uniform(-most, most, 1).astype(np.float32)
        observation, reward, terminated, _, _ = env.step(action)
        observations, rewards, terminations, truncations, infos = ours.step(action[None])
        assert rewards[0] == pytest.approx(reward, rel=1e-14)
        assert terminations[0] == terminated
        if terminations[0] or truncations[0]:
            assert np.array_equal(infos["final_obs"][0], observation)
            continue
        if NUMPY_2:
            assert np.array_equal(ours.states[:, 0], env.state)
            assert np.array_equal(observations[0], observation)
        else:
            assert np.allclose(observations[0], observation, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("point", [pendulum.FAMILY.default, *pendulum.FAMILY.points[::37]])
def test_pendulums_are_gymnasiums(point):
    env = gymnasium.make("Pendulum-v1").unwrapped
    env.m, env.l, env.g = (float(point[name]) for name in ("mass", "length", "gravity"))
    lockstep(PendulumVectorEnv(1, seed=1, **point), env, 250, 2, 2.5)


@pytest.mark.parametrize("point", [mountain_car.FAMILY.default, *mountain_car.FAMILY.points[::7]])
def test_mountain_cars_are_gymnasiums(point):
    env = gymnasium.make("MountainCarContinuous-v0").unwrapped
    for name, value in point.items():
        setattr(env, name, float(value))
    ours = MountainCarVectorEnv(1, seed=1, **point)
    lockstep(ours, env, 300, 2, 1.0)
    # Up the hill, so that goals are reached: the engine pulls wherever the car goes.
    reached = 0
    for _ in range(600):
        env.state = ours.states[:, 0]
        action = np.array([1.0 if env.state[1] >= 0 else -1.0], np.float32)
        _, reward, terminated, _, _ = env.step(action)
        _, rewards, terminations, _, _ = ours.step(action[None])
        assert (rewards[0], terminations[0]) == (pytest.approx(reward), terminated)
        reached += terminated
    assert reached, "every car of the grid can be driven up"


def returns(env, policy):
    """Each copy's return of its first episode."""
    env.reset()
    earned, over = np.zeros(env.num_envs), np.zeros(env.num_envs, dtype=bool)
    while not over.all():
        _, rewards, terminations, truncations, _ = env.step(policy(env.states)[:, None].astype(np.float32))
        earned += np.where(over, 0.0, rewards)
        over |= terminations | truncations
    return earned


@pytest.mark.parametrize("point", pendulum.FIVE.points)
def test_each_of_the_five_pendulums_can_be_swung_up(point):
    inertia, weight = point["mass"] * point["length"] ** 2 / 3, point["mass"] * 10.0 * point["length"] / 2
    most = SwingUpVectorEnv.TORQUE

    def swing_then_hold(states):
        angle, speed = from_upright(states[0]), states[1]
        hold = -weight * np.sin(angle) - inertia * (30 * angle + 8 * speed)
        energy = 0.5 * inertia * speed**2 + weight * np.cos(angle)
        swing = np.where(energy < weight, np.sign(speed) * most, 0.0)
        return np.where((np.abs(hold) < most) | (np.abs(angle) < 0.35), hold, swing) / most

    earned = returns(SwingUpVectorEnv(32, seed=3, **point), swing_then_hold)
    assert (earned > -200).all()
    if point == pendulum.FIVE.points[pendulum.FIVE.marks["simplified"]]:
        assert (earned > -25).all()


def test_a_pendulum_that_hangs_costs_every_step():
    earned = returns(SwingUpVectorEnv(4, seed=3, mass=3, length=10), lambda states: 0 * states[0])
    assert (earned == -200).all()


@pytest.mark.parametrize("point", quad.FAMILY.points)
def test_every_course_can_be_flown(point):
    sink_at = quad.LOWER_AT + point["lower"] - 1.2

    def over_then_below(states):
        distance, height, speed = states
        below = (distance >= sink_at) & (distance < 19.2) & (point["upper"] > 0)
        target = np.where(below, 2.5, np.where(distance < 19.2, 7.0, 5.0))
        return 0.6 * (target - height) - 0.45 * speed

    assert returns(QuadVectorEnv(32, seed=1, **point), over_then_below) == pytest.approx(1.0)


def test_where_quadcopters_crash():
    """Flying on crashes at the lower obstacle, rising at the ceiling: the return is the share that was flown."""
    flat = returns(QuadVectorEnv(8, seed=1, upper=1.0, lower=5.0), lambda states: 0 * states[0])
    assert flat == pytest.approx((quad.LOWER_AT / 0.2 - 1) / quad.STEPS)
    high = returns(QuadVectorEnv(8, seed=1, upper=1.0, lower=5.0), lambda states: 2.5 * (7 - states[1]) - 2 * states[2])
    assert high == pytest.approx((quad.UPPER_AT / 0.2 - 1) / quad.STEPS)
    assert (returns(QuadVectorEnv(8, seed=1), lambda states: 1 + 0 * states[0]) < 0.2).all()
