"""Half-cheetah and swimmer: Gymnasium's robots, changed."""

import gymnasium
import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco")

from lcd.envs.families.half_cheetah import FAMILY, HalfCheetahVectorEnv  # noqa: E402
from lcd.envs.families.swimmer import GOAL, SwimmerVectorEnv  # noqa: E402

from ..contract import equal, play, random_actions, rollout  # noqa: E402

STEPS = 40


def lockstep(ours, env, steps=STEPS):
    """Both from the same state at first; then as they go."""
    ours.reset()
    env.reset()
    state, positions = ours.states[:, 0], env.model.nq
    mujoco.mj_resetData(env.model, env.data)
    env.set_state(state[:positions], state[positions:])
    rewards = []
    for action in random_actions(ours, steps):
        observation, reward, *_ = env.step(action[0])
        observations, found, *_ = ours.step(action)
        np.testing.assert_array_equal(observations[0], observation.astype(np.float32))
        rewards.append((found[0], reward))
    return np.array(rewards).T


@pytest.mark.parametrize("point", [FAMILY.default, FAMILY.points[0], FAMILY.points[-1]])
def test_cheetahs_are_gymnasiums_with_fields_changed(point):
    env = gymnasium.make("HalfCheetah-v5").unwrapped
    model = env.model
    model.opt.gravity[2] = point["gravity"]
    torso = model.body("torso").id
    model.body_inertia[torso] *= point["torso_mass"] / model.body_mass[torso]
    model.body_mass[torso] = point["torso_mass"]
    model.geom_friction[:, 0] = point["friction"]
    mujoco.mj_setConst(model, mujoco.MjData(model))
    ours, theirs = lockstep(HalfCheetahVectorEnv(1, **point), env)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_the_default_swimmer_is_gymnasiums():
    env = gymnasium.make("Swimmer-v5").unwrapped
    mujoco.mj_setConst(env.model, mujoco.MjData(env.model))
    ours, _ = lockstep(SwimmerVectorEnv(1), env)
    assert (ours == -1).all()


def test_segments_have_the_sizes_of_the_point():
    env = SwimmerVectorEnv(2, seed=[0, 1], a=[0.05, 0.2], b=0.1, c=0.15)
    sizes = [model.geom_size[model.geom_type == mujoco.mjtGeom.mjGEOM_CAPSULE, 0] for model in env._models]
    assert np.allclose(sizes, [[0.05, 0.1, 0.15], [0.2, 0.1, 0.15]])
    # A capsule of density 1000: a cylinder of 1 m and a ball.
    expected = 1000 * (np.pi * 0.05**2 + 4 / 3 * np.pi * 0.05**3)
    assert env._models[0].body_mass[1] == pytest.approx(expected, rel=1e-3)


def test_a_swimmer_at_its_goal_is_done():
    env = SwimmerVectorEnv(2)
    env.reset()
    states = env.states
    states[0, 1] = GOAL + 0.5
    env.states = states
    _, rewards, terminations, _, infos = env.step(np.zeros((2, 2), np.float32))
    assert rewards.tolist() == [-1, -1]
    assert terminations.tolist() == [False, True]
    assert env.states[0, 1] < 1
    assert infos["_final_obs"].tolist() == [False, True]


@pytest.mark.parametrize("kind", [HalfCheetahVectorEnv, SwimmerVectorEnv])
def test_threads_change_nothing_and_states_continue(kind, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    alone = rollout(kind(16, seed=5), steps=STEPS)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    env = kind(16, seed=5)
    assert equal(alone, rollout(env, steps=STEPS))
    state = env.get_state()
    actions = random_actions(env, STEPS, seed=1)
    onward = play(env, actions)
    again = kind(16, seed=5)
    for other in (env, again):
        other.set_state(state)
        assert equal(onward, play(other, actions))
    env.close()


def test_pictures_show_the_robots():
    for kind in (HalfCheetahVectorEnv, SwimmerVectorEnv):
        env = kind(2, render_mode="rgb_array")
        env.reset()
        assert all((picture != 255).any() for picture in env.render())
