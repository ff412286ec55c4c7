"""One copy in plain numbers is a vector environment's only copy, bit for bit: seen, paid, ended, kept, drawn."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_differential import discrete_knobs

from lcd.envs.ctgraph.graph import CTGraphEnv, CTGraphVectorEnv
from lcd.envs.ehc.benchmark import EHCBenchmark
from lcd.envs.errors import InputError
from lcd.envs.hardness.discrete import HardnessDiscreteEnv, HardnessDiscreteVectorEnv
from lcd.envs.streams import LoneStream, Streams, seed_sequence
from lcd.envs.tabular.mdp import TabularMDP
from lcd.envs.tabular.vector import TabularEnv, TabularVectorEnv

ALL_TRANSFORMS = "shift,scale,rotate,flip"


def in_step(single, vector, steps, rng):
    """Step both by the same actions, through ends and resets; the state that both have is compared at the end."""
    assert single._lone is not None
    assert np.array_equal(single.reset()[0], vector.reset()[0][0])
    ends = 0
    for _ in range(steps):
        action = rng.integers(single.action_space.n)
        observation, reward, terminated, truncated, infos = single.step(action)
        observations, rewards, terminations, truncations, more = vector.step(np.array([action]))
        assert (reward, terminated, truncated) == (rewards[0], terminations[0], truncations[0])
        assert type(reward) is float
        assert infos.get("event_reward") == (more["event_reward"][0] if "event_reward" in more else None)
        over = terminated or truncated
        shown = more["final_obs"] if over else observations
        assert np.array_equal(observation, shown[0])
        assert np.asarray(observation).dtype == shown.dtype
        if over:
            ends += 1
            assert np.array_equal(single.reset()[0], vector.reset()[0][0])
    mine, theirs = single.get_state(), vector.get_state()
    assert mine.keys() - theirs.keys() == {"running"} - theirs.keys()
    for name, value in theirs.items():
        assert np.array_equal(mine[name], value), name
        assert (mine[name].dtype, mine[name].shape) == (value.dtype, value.shape), name
    return ends


@settings(max_examples=100, deadline=None)
@given(knobs=discrete_knobs(), seed=st.integers(0, 1000))
def test_toys(knobs, seed):
    knobs |= {"irrelevant_features": False}
    if isinstance(knobs["action_space_size"], list):
        knobs["action_space_size"] = knobs["action_space_size"][0]
    try:
        single, vector = HardnessDiscreteEnv(seed=seed, **knobs), HardnessDiscreteVectorEnv(1, seed=seed, **knobs)
    except InputError:
        return
    if callable(knobs["transition_noise"]) or callable(knobs["reward_noise"]):
        assert single._lone is None
        return
    assert in_step(single, vector, 60, np.random.default_rng(seed)) > 1


@pytest.mark.parametrize(
    "knobs",
    [
        {"view": "pixels", "image_transforms": ALL_TRANSFORMS, "texture": 0.5, "distractors": 2},
        {"view": "semantic", "image_transforms": ALL_TRANSFORMS, "motion": 2.0, "reward_noise": 1.0},
        {"view": "figure_ground", "image_transforms": ALL_TRANSFORMS, "image_defaults": "mdp-playground"},
        {"view": "pixels", "image_transforms": ALL_TRANSFORMS, "contrast": 0.4, "image_sh_quant": 2},
        {"view": "semantic", "image_channels": 1, "image_transforms": "rotate"},
    ],
)
def test_toys_that_are_seen(knobs):
    single, vector = HardnessDiscreteEnv(seed=3, **knobs), HardnessDiscreteVectorEnv(1, seed=3, **knobs)
    assert in_step(single, vector, 60, np.random.default_rng(0)) > 1


@pytest.mark.parametrize(
    "knobs",
    [
        {"view": "state"},
        {"view": "state", "graph_shape": {"b": 3, "d": 2, "p": 0.5}, "observations": {"W_IDs": [2, 9]}},
        {"view": "state", "reward": {"std_r": 0.5, "step_r": 0.1, "fail_r": -0.25, "reward_distribution": "gradient"}},
        {"view": "state", "reward": {"min_static_reward_episodes": 2, "max_static_reward_episodes": 5}},
        {"view": "pixels", "image_dataset": {"noise_on_read": 0.05, "rotation_on_read": 10}},
    ],
)
def test_graphs(knobs):
    single, vector = CTGraphEnv(seed=5, **knobs), CTGraphVectorEnv(1, seed=5, **knobs)
    assert in_step(single, vector, 300, np.random.default_rng(1)) > 20
    goal = [2] * vector.knobs.graph_shape.d
    single.reset(options={"goal": goal})
    vector.reset(options={"goal": goal})
    assert in_step(single, vector, 100, np.random.default_rng(2)) > 5
    assert single.envs.goals.tolist() == [goal] or single.envs.knobs.reward.goal_changes


@pytest.mark.parametrize("knobs", [{}, {"sticky": 0.4}, {"observation": "number", "horizon": 7}])
def test_tabular_mdps(knobs):
    rng = np.random.default_rng(0)
    after = rng.integers(-1, 12, (12, 3), dtype=np.int32)
    mdp = TabularMDP(after, rng.normal(size=(12, 3)).astype(np.float32), start=0, horizon=9, name="random")
    single, vector = TabularEnv(mdp=mdp, seed=5, **knobs), TabularVectorEnv(1, mdp=mdp, seed=5, **knobs)
    assert in_step(single, vector, 200, rng) > 10


def test_pictures_of_a_tabular_mdp():
    task = EHCBenchmark().tasks[0]
    mdp = EHCBenchmark().tabular(task, 0)
    knobs = {"mdp": mdp, "view": "pixels", "horizon": 5}
    assert in_step(TabularEnv(**knobs), TabularVectorEnv(1, **knobs), 20, np.random.default_rng(0)) == 4


def test_draws_are_those_of_the_streams():
    rng = np.random.default_rng(0)
    for seed in range(20):
        streams = Streams.spawn([seed_sequence(seed, "train", 0)])[0]
        lone = LoneStream(streams)
        for _ in range(400):
            kind = rng.choice(["bits", "uniform", "integers", "normal"])
            if kind == "integers":
                high = int(rng.integers(1, 2**32))
                assert lone.integer(high) == streams.integers(high)[0]
            else:
                assert getattr(lone, kind)() == getattr(streams, kind)()[0], kind
            if rng.random() < 0.01:
                state = lone.get_state()
                assert all(np.array_equal(state[name], value) for name, value in streams.get_state().items())
                lone.set_state(state)


def test_the_vector_environment_is_where_the_copy_is():
    env = gymnasium.make("lcd/hardness-discrete-v0", terminal_state_density=0.0, seed=2).unwrapped
    env.reset()
    for action in (1, 5, 0):
        observation = env.step(action)[0]
        assert env.envs.states.tolist() == [observation.argmax()]
    env.envs.step(np.array([3]))
    after = env.envs.mdps[0].transitions[env.envs.states[0], 4]
    assert env.step(4)[0].argmax() == after


@pytest.mark.parametrize("action", [8, -1, 1.0, True, None, "3", [1], np.array([1]), np.float32(2), 2**70])
def test_wrong_actions_are_refused_as_those_of_many_copies(action):
    env = HardnessDiscreteEnv()
    env.reset()
    env.step(np.array(3))
    with pytest.raises(InputError, match=r"actions (go from|have the shape)"):
        env.step(action)


def test_what_needs_arrays_is_stepped_in_them():
    for knobs in ({"irrelevant_features": True}, {"augmented_state": True}, {"render_mode": "rgb_array"}):
        env = HardnessDiscreteEnv(seed=1, **knobs)
        assert env._lone is None
        assert ("augmented_state" in env.reset()[1]) == ("augmented_state" in knobs)
        env.step(env.action_space.sample())
    with pytest.raises(InputError, match="augmented_state is 'yes', but it must be true or false"):
        HardnessDiscreteEnv(augmented_state="yes")
