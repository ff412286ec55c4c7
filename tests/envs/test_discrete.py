"""The discrete toy keeps the contract, and its rewards follow from its tables."""

from __future__ import annotations

import subprocess
import sys
from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from contract import EnvironmentContract
from hypothesis import given, settings
from hypothesis import strategies as st

import lcd.envs
from lcd.envs.errors import InputError
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.hardness.mdp import HardnessKnobs, admissible_sequences, build_mdp
from lcd.envs.hardness.point import PointKnobs

EVERYTHING = {
    "sequence_length": 2,
    "delay": 3,
    "transition_noise": 0.2,
    "reward_noise": 0.5,
    "reward_density": 0.5,
    "horizon": 12,
    "image_transforms": "shift,scale,rotate,flip",
    "image_ro_quant": 45,
    "image_size": 16,
}


class DiscreteContract(EnvironmentContract):
    env_id = "lcd/hardness-discrete-v0"
    longest_episode = 12


class TestState(DiscreteContract):
    arguments: ClassVar = {"view": "state", **{k: v for k, v in EVERYTHING.items() if not k.startswith("image_")}}


class TestStateOfAllOfTableOne(DiscreteContract):
    arguments: ClassVar = {
        "view": "state",
        "action_space_size": [4, 3],
        "irrelevant_features": True,
        "diameter": 2,
        "sequence_length": 2,
        "delay": 1,
        "transition_noise": lambda state, action, rng: 0.1 + 0.2 * (action > 1),
        "reward_noise": lambda state, action, rng: rng.uniform(-1, 1),
        "make_denser": True,
        "reward_dist": [0.1, 1.0],
        "reward_scale": 2.0,
        "reward_shift": -0.1,
        "term_state_reward": -1.0,
        "horizon": 12,
    }


class TestPixelsWithAnIrrelevantHalf(DiscreteContract):
    arguments: ClassVar = {"view": "pixels", "texture": 0.5, "irrelevant_features": True, **EVERYTHING}


class TestPixels(DiscreteContract):
    arguments: ClassVar = {"view": "pixels", "texture": 0.5, "distractors": 2, "lookalikes": 1, **EVERYTHING}


class TestMovingPixels(DiscreteContract):
    arguments: ClassVar = {
        "view": "pixels",
        "texture": 0.5,
        "contrast": 0.7,
        "distractors": 1,
        "motion": 1.5,
        **EVERYTHING,
    }


class TestFigureGround(DiscreteContract):
    arguments: ClassVar = {"view": "figure_ground", "motion": 1.0, **EVERYTHING}


class TestSemantic(DiscreteContract):
    arguments: ClassVar = {"view": "semantic", "terminal_state_density": 0.0, **EVERYTHING}


def trajectories(env: HardnessDiscreteVectorEnv, steps: int, seed: int = 0):
    """Of every copy: a list of episodes, each (start, [(action, state, reward, event, terminated, truncated)])."""
    rng = np.random.default_rng(seed)
    observations, _ = env.reset()
    episodes = [[(int(o.argmax()), [])] for o in observations]
    for _ in range(steps):
        actions = rng.integers(env.knobs.action_space_size, size=env.num_envs)
        observations, rewards, terminated, truncated, infos = env.step(actions)
        events = infos.get("event_reward", rewards)
        for copy in range(env.num_envs):
            ended = terminated[copy] or truncated[copy]
            shown = infos["final_obs"][copy] if ended else observations[copy]
            step = (actions[copy], shown.argmax(), rewards[copy], events[copy], terminated[copy], truncated[copy])
            episodes[copy][-1][1].append(step)
            if ended:
                episodes[copy].append((int(observations[copy].argmax()), []))
    return episodes


def rewards_by_definition(knobs: HardnessKnobs, rewarded: set[tuple[int, ...]], reached: list[int]) -> list[float]:
    """What an episode pays at each step, straight from the words of the knobs."""
    paid = [0.0] * len(reached)
    for step in range(1, len(reached) + 1):
        last = tuple(reached[max(0, step - knobs.sequence_length) : step])
        if last in rewarded and step % knobs.reward_every_n_steps == 0 and step + knobs.delay <= len(reached):
            paid[step + knobs.delay - 1] += 1.0
    return paid


@pytest.mark.parametrize(("given", "steps"), [(None, 3), (True, 3), (False, 1), (2, 2)])
def test_steps_between_rewards_may_be_table_1s_boolean(given, steps):
    knobs = {"sequence_length": 3} | ({} if given is None else {"reward_every_n_steps": given})
    assert HardnessKnobs.from_dict(knobs).reward_every_n_steps == steps
    along = {"reward_function": "move_along_a_line", **knobs}
    assert PointKnobs.from_dict(along).reward_every_n_steps == (1 if given is None else steps)


@settings(max_examples=60, deadline=None)
@given(
    states=st.integers(3, 7),
    fewer_actions=st.integers(0, 2),
    length=st.integers(1, 3),
    every=st.none() | st.integers(1, 3),
    delay=st.integers(0, 4),
    density=st.floats(0, 1),
    terminal=st.sampled_from([0.0, 0.2]),
    noise=st.sampled_from([0.0, 0.3]),
    reward_noise=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 10_000),
)
def test_every_step_follows_from_the_tables(
    states, fewer_actions, length, every, delay, density, terminal, noise, reward_noise, seed
):
    env = HardnessDiscreteVectorEnv(
        num_envs=4,
        seed=[seed, seed + 1],
        state_space_size=states,
        action_space_size=max(2, states - fewer_actions),
        sequence_length=length,
        reward_every_n_steps=every,
        delay=delay,
        reward_density=density,
        terminal_state_density=terminal,
        transition_noise=noise,
        reward_noise=reward_noise,
        horizon=9,
    )
    for copy, episodes in enumerate(trajectories(env, 40, seed)):
        mdp = env.mdps[copy // 2]
        rewarded = {tuple(s) for s in mdp.sequences.tolist()}
        for start, steps in episodes:
            assert not mdp.terminal[start]
            reached = [int(s[1]) for s in steps]
            before = [start, *reached][:-1]
            events = [s[3] for s in steps]
            assert events == rewards_by_definition(env.knobs, rewarded, reached)[: len(steps)]
            for number, (state, step) in enumerate(zip(before, steps, strict=True), start=1):
                action, after, reward, event, terminated, truncated = step
                assert noise > 0 or after == mdp.transitions[state, action]
                assert reward_noise > 0 or reward == event
                assert terminated == mdp.terminal[after]
                assert truncated == (number == 9 and not terminated)


@pytest.mark.parametrize("actions", [3, 8])
def test_tables_are_regular(actions):
    mdp = build_mdp(HardnessKnobs(action_space_size=actions), seed=5)
    assert mdp.transitions.shape == (8, actions)
    assert all(len(set(row)) == actions for row in mdp.transitions)
    assert mdp.terminal.sum() == 2
    assert not mdp.terminal[mdp.starts].any()
    assert len(mdp.starts) == 6


@pytest.mark.parametrize(("length", "density"), [(1, 0.25), (2, 0.1), (3, 0.03), (4, 0.0)])
def test_number_of_rewarded_sequences(length, density):
    mdp = build_mdp(HardnessKnobs(sequence_length=length, reward_density=density), seed=1)
    possible = np.prod([6 - i for i in range(length)])
    assert len(mdp.sequences) == max(1, int(density * possible))
    assert len({tuple(s) for s in mdp.sequences.tolist()}) == len(mdp.sequences)
    assert mdp.rewards.sum() == len(mdp.sequences)


def test_admissible_sequences_by_brute_force():
    mdp = build_mdp(HardnessKnobs(action_space_size=3, sequence_length=3), seed=2)
    successors = [set(row.tolist()) for row in mdp.transitions]
    expected = {
        (a, b, c)
        for a in range(8)
        for b in range(8)
        for c in range(8)
        if len({a, b, c}) == 3 and not mdp.terminal[[a, b, c]].any() and b in successors[a] and c in successors[b]
    }
    assert {tuple(s) for s in admissible_sequences(mdp.transitions, mdp.terminal, 3).tolist()} == expected


def test_transition_noise_is_uniform_over_the_other_states():
    env = HardnessDiscreteVectorEnv(
        500, transition_noise=0.4, terminal_state_density=0.0, state_space_size=5, action_space_size=5, horizon=1000
    )
    env.reset()
    counts = np.zeros((5, 5))
    for _ in range(100):
        before = env.states
        actions = env.action_space.sample()
        env.step(actions)
        np.add.at(counts, (env.mdps[0].transitions[before, actions], env.states), 1)
    shares = counts / counts.sum(axis=1, keepdims=True)
    assert np.abs(shares - (0.6 * np.eye(5) + 0.1 * (1 - np.eye(5)))).max() < 0.02


def test_reward_noise_has_its_standard_deviation():
    env = HardnessDiscreteVectorEnv(1000, reward_noise=0.7)
    env.reset()
    noise = []
    for _ in range(20):
        _, rewards, *_, infos = env.step(env.action_space.sample())
        noise.append(rewards - infos["event_reward"])
    assert abs(np.mean(noise)) < 4 * 0.7 / np.sqrt(20_000)
    assert abs(np.std(noise) - 0.7) < 0.015


def test_the_view_changes_nothing_but_what_is_seen():
    runs = []
    for view in ("state", "pixels", "figure_ground", "semantic"):
        env = HardnessDiscreteVectorEnv(3, view=view, seed=4, transition_noise=0.3, reward_noise=1.0, texture=0.5)
        env.reset()
        actions = np.random.default_rng(0).integers(8, size=(50, 3))
        runs.append([np.concatenate([env.step(a)[1], env.states]) for a in actions])
    assert all(np.array_equal(runs[0], run) for run in runs[1:])


def test_a_seed_of_reset_never_changes_the_tables():
    env = HardnessDiscreteVectorEnv(2, seed=1)
    before = env.mdps[0].transitions.copy()
    env.reset(seed=99)
    assert np.array_equal(env.mdps[0].transitions, before)
    fixed = [HardnessDiscreteVectorEnv(2, seed=s, mdp_seed=5).mdps[0].transitions for s in (1, 2)]
    assert np.array_equal(*fixed)


def test_gymnasium_makes_it():
    assert gymnasium.make_vec("lcd/hardness-discrete-v0", num_envs=64).num_envs == 64
    env = gymnasium.make_vec(
        "lcd/hardness-discrete-v0",
        num_envs=64,
        vectorization_mode="vector_entry_point",
        view="semantic",
        split="train",
    )
    assert env.reset(seed=0)[0].shape == (64, 24, 24, 3)
    sync = gymnasium.make_vec("lcd/hardness-discrete-v0", num_envs=2, vectorization_mode="sync")
    assert sync.reset(seed=0)[0].shape == (2, 8)
    lcd.envs.register()


def test_importing_the_environments_stays_cheap():
    heavy = ("torch", "pandas", "gym", "scipy", "lcd.envs.hardness")
    assert run_python(f"import sys, lcd.envs; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_gymnasium_imports_us_by_name():
    make = "gymnasium.make_vec('lcd.envs:lcd/hardness-discrete-v0', num_envs=3)"
    assert run_python(f"import gymnasium; print({make}.num_envs)") == "3"


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_rendering():
    env = gymnasium.make("lcd/hardness-discrete-v0", render_mode="rgb_array", view="state")
    env.reset(seed=0)
    assert env.render().shape == (64, 64, 3)
    vector = HardnessDiscreteVectorEnv(2, view="pixels", render_mode="rgb_array", texture=0.3)
    observations, _ = vector.reset()
    assert np.array_equal(vector.render()[1], observations[1])
    assert HardnessDiscreteVectorEnv(2).render() is None


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"dealy": 1}, ["dealy", "'delay'"]),
        ({"view": "pixel"}, ["view", "'pixels'"]),
        ({"split": "test"}, ["split", "test"]),
        ({"delay": -1}, ["delay", "-1"]),
        ({"delay": 1.5}, ["delay", "1.5"]),
        ({"reward_density": 1.5}, ["reward_density", "1.5"]),
        ({"transition_noise": "x"}, ["transition_noise", "'x'"]),
        ({"reward_noise": -0.1}, ["reward_noise", "-0.1"]),
        ({"terminal_state_density": 1.0}, ["terminal_state_density", "1.0"]),
        ({"action_space_size": 9}, ["action_space_size", "9"]),
        ({"diameter": 2, "state_space_size": 8}, ["state_space_size is 8", "16"]),
        ({"diameter": 1, "state_space_size": 8, "action_space_size": 4}, ["state_space_size is 8", "4"]),
        ({"state_space_size": [8, 4]}, ["state_space_size", "irrelevant_features"]),
        ({"irrelevant_features": True, "diameter": 2, "state_space_size": [16, 9]}, ["state_space_size", "9"]),
        ({"image_transforms": "shift"}, ["image_transforms", "'shift'", "pixels"]),
        ({"diameter": 9, "action_space_size": 1, "transition_noise": 0.1}, ["transition_noise", "0.1"]),
        (
            {"action_space_size": 2, "diameter": 4, "terminal_state_density": 0.5, "sequence_length": 5},
            ["sequence_length"],
        ),
        ({"terminal_states": [8]}, ["terminal_states", "8"]),
        ({"terminal_states": range(8)}, ["terminal"]),
        ({"init_state_dist": [1, 0]}, ["init_state_dist", "8"]),
        ({"init_state_dist": [1] + [0] * 7, "terminal_states": [0]}, ["init_state_dist", "state 0"]),
        ({"transition_function": [[0] * 8] * 7}, ["transition_function", "8 rows"]),
        ({"transition_function": lambda s, a: 8}, ["transition_function", "7"]),
        ({"transition_function": lambda s, a: s, "diameter": 2}, ["transition_function", "diameter"]),
        ({"reward_function": [[0] * 8] * 8, "make_denser": True}, ["make_denser", "reward_function"]),
        ({"reward_function": lambda s, a: 0.0, "sequence_length": 3}, ["sequence_length", "actions"]),
        ({"reward_function": lambda s, a: np.nan}, ["reward_function", "finite"]),
        ({"reward_dist": [1, 0]}, ["reward_dist", "[1, 0]"]),
        ({"reward_scale": np.inf}, ["reward_scale", "inf"]),
        ({"make_denser": "yes"}, ["make_denser", "'yes'"]),
        ({"image_radius": 0.6}, ["image_radius", "0.6"]),
        ({"view": "pixels", "image_folder": "nowhere"}, ["image_folder", "nowhere", "8"]),
        ({"sequence_length": 7}, ["sequence_length", "7"]),
        ({"horizon": 3, "delay": 3}, ["horizon", "3"]),
        ({"mdp_seed": -1}, ["mdp_seed", "-1"]),
        ({"seed": -1}, ["seed", "-1"]),
        ({"num_envs": 3, "seed": [1, 2]}, ["num_envs", "3"]),
        ({"image_transforms": "shfit"}, ["image_transforms", "'shift'"]),
        ({"image_scale_range": (2, 1)}, ["image_scale_range", "(2, 1)"]),
        ({"image_size": 4}, ["image_size", "4"]),
        ({"contrast": 0}, ["contrast", "0"]),
        ({"motion": -1}, ["motion", "-1"]),
        ({"image_transforms": "shift,scale", "image_scale_range": (1, 1.49)}, ["image_size", "1.49"]),
        ({"image_transforms": "rotate", "image_ro_quant": 0}, ["image_ro_quant", "0"]),
        ({"image_transforms": "scale", "image_sc_quant": 0}, ["image_sc_quant", "0"]),
        ({"action_space_size": 1, "sequence_length": 6, "mdp_seed": 0}, ["sequence_length", "6"]),
    ],
)
def test_mistakes_are_told_in_a_sentence(knobs, words):
    with pytest.raises(InputError) as mistake:
        HardnessDiscreteVectorEnv(**{"num_envs": 2, **knobs})
    assert all(word in str(mistake.value) for word in words)
    assert "\n" not in str(mistake.value)


@pytest.mark.parametrize("actions", [[8, 0], [-1, 0], [0], [0.5, 1.0]])
def test_impossible_actions(actions):
    env = HardnessDiscreteVectorEnv(2)
    env.reset()
    with pytest.raises(InputError, match="actions"):
        env.step(np.array(actions))
