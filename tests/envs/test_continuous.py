"""The point mass keeps the contract, moves as mechanics says, and shows itself in images."""

from __future__ import annotations

from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from contract import EnvironmentContract

from lcd.envs.errors import InputError
from lcd.envs.hardness.continuous import HardnessContinuousVectorEnv


class ContinuousContract(EnvironmentContract):
    env_id = "lcd/hardness-continuous-v0"
    longest_episode = 12


class TestState(ContinuousContract):
    arguments: ClassVar = {
        "view": "state",
        "state_space_dim": 3,
        "relevant_indices": [0, 2],
        "transition_dynamics_order": 2,
        "transition_noise": 0.1,
        "reward_noise": lambda position, action, rng: rng.normal(),
        "delay": 2,
        "init_state_dist": lambda rng: rng.uniform(-5, 5, 3),
        "horizon": 12,
    }


class TestImages(ContinuousContract):
    arguments: ClassVar = {
        "view": "pixels",
        "state_space_dim": 4,
        "relevant_indices": [0, 1],
        "terminal_states": [[5.0, 5.0]],
        "target_radius": 2.0,
        "image_size": 24,
        "horizon": 12,
    }


def test_constant_force_moves_a_mass_as_newton_says():
    knobs = {"transition_dynamics_order": 2, "inertia": 4.0, "time_unit": 0.5, "state_space_max": 1e6, "horizon": 50}
    env = HardnessContinuousVectorEnv(1, init_state_dist=lambda rng: [100.0, 200.0], augmented_state=True, **knobs)
    env.reset()
    force = np.array([[1.0, -0.5]])
    for step in range(1, 41):
        *_, infos = env.step(force)
        time, acceleration = 0.5 * step, force[0] / 4
        position, velocity = infos["augmented_state"][0]
        assert np.allclose(position, [100, 200] + acceleration * time**2 / 2)
        assert np.allclose(velocity, acceleration * time)


def test_the_closed_form_does_not_depend_on_how_time_is_cut():
    ends = []
    for unit, steps in ((1.0, 3), (0.25, 12)):
        env = HardnessContinuousVectorEnv(
            1, transition_dynamics_order=3, time_unit=unit, init_state_dist=lambda rng: [1.0, 2.0], state_space_max=1e3
        )
        env.reset()
        for _ in range(steps):
            env.step(np.array([[0.3, 0.7]]))
        ends.append(env.positions)
    assert np.allclose(*ends)


def test_dense_rewards_add_up_to_the_distance_gained():
    env = HardnessContinuousVectorEnv(8, seed=3, target_point=[2.0, 1.0], transition_noise=0.2)
    env.reset()
    start = np.linalg.norm(env.positions - [2.0, 1.0], axis=1)
    total = np.zeros(8)
    for _ in range(20):
        _, rewards, terminated, _, _ = env.step(env.action_space.sample())
        assert not terminated.any()
        total += rewards
    assert np.allclose(total, start - np.linalg.norm(env.positions - [2.0, 1.0], axis=1))


def test_a_border_stops_the_point():
    start = {"init_state_dist": lambda rng: [9.9, 0.0]}
    env = HardnessContinuousVectorEnv(1, transition_dynamics_order=2, augmented_state=True, **start)
    env.reset()
    for _ in range(3):
        *_, infos = env.step(np.array([[1.0, 0.0]]))
        assert infos["augmented_state"][0, 0, 0] <= 10
    assert infos["augmented_state"][0, 0, 0] == 10
    assert infos["augmented_state"][0, 1, 0] == 0


def test_sparse_reward_and_end_at_the_target():
    env = HardnessContinuousVectorEnv(
        1, make_denser=False, init_state_dist=lambda rng: [1.5, 0.0], target_radius=0.6, term_state_reward=2.0
    )
    env.reset()
    assert env.step(np.array([[-0.5, 0.0]]))[1:3] == (0.0, False)
    _, reward, terminated, _, infos = env.step(np.array([[-1.0, 0.0]]))
    assert (reward[0], terminated[0]) == (3.0, True)
    assert np.allclose(infos["final_obs"], 0)


def test_moving_along_a_line_costs_nothing_and_turning_does():
    env = HardnessContinuousVectorEnv(
        1, reward_function="move_along_a_line", sequence_length=4, init_state_dist=lambda rng: [0.0, 0.0]
    )
    env.reset()
    straight = [env.step(np.array([[0.4, 0.3]]))[1][0] for _ in range(6)]
    assert np.allclose(straight, 0)
    assert env.step(np.array([[-0.3, 0.4]]))[1][0] < -0.05


def test_images_show_point_target_and_regions_where_they_are():
    knobs = {"terminal_states": [[-8.0, -8.0]], "term_state_edge": 2.0, "init_state_dist": lambda rng: [5.0, -5.0]}
    env = HardnessContinuousVectorEnv(1, view="pixels", **knobs)
    image = env.reset()[0][0]
    assert image.shape == (100, 100, 3)
    blue, green, black = ((image == colour).all(-1) for colour in ((0, 0, 255), (0, 255, 0), (0, 0, 0)))
    rows, columns = np.nonzero(blue)
    assert (rows.mean(), columns.mean()) == pytest.approx((0.25 * 99, 0.75 * 99), abs=0.6)
    assert blue.sum() == pytest.approx(np.pi * 25, rel=0.1)
    assert np.mean(np.nonzero(green)) == pytest.approx(49.5, abs=0.6)
    assert black[5:14, 5:14].all()
    assert not black[20:].any()


def test_the_irrelevant_half_has_no_target():
    knobs = {"state_space_dim": 4, "relevant_indices": [0, 1], "init_state_dist": lambda rng: [5.0, 5.0, -5.0, 5.0]}
    image = HardnessContinuousVectorEnv(1, view="semantic", **knobs).reset()[0][0]
    assert image.shape == (100, 200, 3)
    left, right = image[:, :100], image[:, 100:]
    assert (left == (0, 255, 0)).all(-1).any()
    assert not (right == (0, 255, 0)).all(-1).any()
    assert np.mean(np.nonzero((right == (0, 0, 255)).all(-1))[1]) == pytest.approx(0.25 * 99, abs=0.6)


def test_rendering():
    env = gymnasium.make("lcd/hardness-continuous-v0", render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (100, 100, 3)


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"relevant_indices": [0, 2]}, ["relevant_indices", "2", "0 to 1"]),
        ({"relevant_indices": []}, ["relevant_indices"]),
        ({"relevant_indices": [0, 0]}, ["relevant_indices", "twice"]),
        ({"view": "pixels", "state_space_dim": 3}, ["view", "3"]),
        ({"target_point": [0.0]}, ["target_point", "2 numbers"]),
        ({"target_point": [0.0, 11.0]}, ["target_point", "11"]),
        ({"target_radius": 0}, ["target_radius", "0"]),
        ({"time_unit": -1}, ["time_unit", "-1"]),
        ({"inertia": [1.0, 0.0]}, ["inertia", "0"]),
        ({"inertia": [1.0]}, ["inertia", "2"]),
        ({"transition_noise": -1}, ["transition_noise", "-1"]),
        ({"reward_function": "move_to_point"}, ["reward_function", "move_to_a_point"]),
        ({"sequence_length": 2}, ["sequence_length", "move_along_a_line"]),
        ({"horizon": 2, "delay": 2}, ["horizon"]),
        ({"image_transforms": "shift"}, ["image_transforms"]),
        ({"action_range": 2}, ["action_range", "action_space_max"]),
    ],
)
def test_mistakes_are_told_in_a_sentence(knobs, words):
    with pytest.raises(InputError) as mistake:
        HardnessContinuousVectorEnv(**{"num_envs": 2, **knobs})
    assert all(word in str(mistake.value) for word in words), mistake.value


def test_nowhere_to_start():
    env = HardnessContinuousVectorEnv(2, target_radius=100)
    with pytest.raises(InputError, match="target_radius"):
        env.reset()


@pytest.mark.parametrize("actions", [np.zeros((2, 3)), np.full((2, 2), np.nan), np.zeros(2)])
def test_impossible_actions(actions):
    env = HardnessContinuousVectorEnv(2)
    env.reset()
    with pytest.raises(InputError, match="actions"):
        env.step(actions)
