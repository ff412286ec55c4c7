"""States, rewards and ends equal those of a slow reference that imports nothing of ours, over all knobs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import ContinuousReference, DiscreteReference, Recording

from lcd.envs.errors import InputError
from lcd.envs.hardness.continuous import HardnessContinuousVectorEnv
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv


class Recorder:
    """Streams that tell each copy's recording what it drew."""

    def __init__(self, streams, recordings: list[Recording]):
        self._streams, self._recordings = streams, recordings

    def __getattr__(self, name):
        method = getattr(self._streams, name)
        return method if name not in ("uniform", "integers", "normal") else lambda *a, **k: self._drawn(name, *a, **k)

    def _drawn(self, kind, *arguments, **named):
        drawn = getattr(self._streams, kind)(*arguments, **named)
        index = named.get(
            "index", arguments[1 if kind == "integers" else 0] if arguments[kind == "integers" :] else None
        )
        copies = range(len(self._recordings)) if index is None else np.asarray(index)
        for copy, values in zip(copies, drawn, strict=True):
            self._recordings[copy].draws += [(kind, value) for value in np.atleast_1d(values).tolist()]
        return drawn


def record(env, references) -> None:
    """Let the references read what the environment draws."""
    env._streams["dynamics"] = Recorder(env._streams["dynamics"], [r.recording for r in references])


def by_state(state, action, rng):
    return (1 + state + 2 * action) / 40


def of_path(states, actions):
    return float(states[0] == actions[-1]) + 0.25 * states[-1] - 0.125 * sum(actions)


@st.composite
def discrete_knobs(draw):
    sets = draw(st.sampled_from([None, 1, 2, 3]))
    actions = draw(st.integers(2, 4))
    knobs = {"action_space_size": actions, "horizon": draw(st.integers(9, 14))}
    if sets is None:
        knobs["state_space_size"] = actions + draw(st.integers(0, 2))
    else:
        knobs["diameter"] = sets
    states = knobs.get("state_space_size", actions * (sets or 1))
    knobs["irrelevant_features"] = draw(st.booleans())
    if knobs["irrelevant_features"] and sets is not None:
        knobs["action_space_size"] = [actions, draw(st.integers(2, 4))]
    knobs["sequence_length"] = draw(st.integers(1, 3))
    knobs["delay"] = draw(st.integers(0, 4))
    knobs["reward_every_n_steps"] = draw(st.sampled_from([None, 1, 2, 3]))
    knobs["reward_density"] = draw(st.floats(0, 1))
    knobs["terminal_state_density"] = draw(st.sampled_from([0.0, 0.26, 0.5]))
    knobs["transition_noise"] = draw(st.sampled_from([0, 0.3, 1.0, by_state]))
    knobs["reward_noise"] = draw(st.sampled_from([0, 0.7, by_state]))
    knobs["reward_scale"] = draw(st.sampled_from([1.0, -2.5]))
    knobs["reward_shift"] = draw(st.sampled_from([0.0, 0.3]))
    knobs["term_state_reward"] = draw(st.sampled_from([0.0, 1.5]))
    knobs["make_denser"] = draw(st.booleans())
    knobs["reward_dist"] = draw(st.sampled_from([None, [0.25, 1.0], lambda rng, so_far: 1 + len(so_far)]))
    if draw(st.booleans()):
        knobs["init_state_dist"] = [0.75, 0.25] + [0.0] * (states - 2)
        knobs["terminal_states"] = draw(st.sampled_from([[], [states - 1]]))
    if draw(st.integers(0, 3)) == 0:
        table = [[(s + a) / 8 for a in range(actions)] for s in range(states)]
        knobs["reward_function"] = of_path if knobs["sequence_length"] < 3 and draw(st.booleans()) else table
        knobs["make_denser"] = False
    if sets in (None, 1) and draw(st.integers(0, 3)) == 0:
        knobs["transition_function"] = draw(st.sampled_from([lambda s, a: (s + a + 1) % states]))
    return knobs


@settings(max_examples=150, deadline=None)
@given(knobs=discrete_knobs(), seed=st.integers(0, 1000))
def test_discrete(knobs, seed):
    try:
        env = HardnessDiscreteVectorEnv(4, seed=[seed, seed + 1], augmented_state=True, **knobs)
    except InputError:
        return
    references = [discrete_reference(env, copy, knobs) for copy in range(4)]
    record(env, references)
    env.reset()
    for reference in references:
        reference.reset()
    rng = np.random.default_rng(seed)
    for _ in range(30):
        assert env.states.tolist() == [r.state for r in references]
        actions = (
            np.array([rng.integers(env.single_action_space.nvec) for _ in references])
            if knobs["irrelevant_features"]
            else rng.integers(env.single_action_space.n, size=4)
        )
        _, rewards, terminated, truncated, infos = env.step(actions)
        for copy, reference in enumerate(references):
            outcome = reference.step(*np.atleast_1d(actions[copy]).tolist())
            assert (rewards[copy], terminated[copy], truncated[copy]) == (pytest.approx(outcome[0]), *outcome[1:])
            markov = infos["final_augmented_state" if any(outcome[1:]) else "augmented_state"][copy]
            length = len(markov)
            assert markov.tolist() == ([-1] * length + reference.visited)[-length:]
            if any(outcome[1:]):
                reference.reset()
            if knobs["irrelevant_features"]:
                assert env.irrelevant_states[copy] == reference.other
    assert not any(r.recording.draws for r in references)


def discrete_reference(env, copy, knobs):
    mdp = env.mdps[copy // 2]
    rewarded = dict(zip(map(tuple, mdp.sequences.tolist()), mdp.sequence_rewards.tolist(), strict=True))
    other = None if mdp.irrelevant is None else mdp.irrelevant.tolist()
    own = {**knobs, "diameter": knobs.get("diameter", 1)}
    ends = np.flatnonzero(mdp.terminal).tolist()
    return DiscreteReference(own, mdp.transitions.tolist(), rewarded, ends, mdp.starts.tolist(), other)


def pull_back(position, action, rng):
    return [-0.1 * x for x in position]


def as_far_out(position, action, rng):
    return 0.01 * float(abs(position[0]))


@st.composite
def point_knobs(draw):
    dim = draw(st.integers(2, 4))
    relevant = draw(st.sampled_from([[0, 1], [1, 0], [dim - 1, 0]]))
    line = draw(st.booleans())
    length = draw(st.integers(1, 4)) if line else 1
    return {
        "state_space_dim": dim,
        "relevant_indices": relevant,
        "state_space_max": draw(st.sampled_from([3.0, 10.0])),
        "action_space_max": draw(st.sampled_from([0.5, 2.0])),
        "transition_dynamics_order": draw(st.integers(1, 3)),
        "inertia": draw(st.sampled_from([1.0, 2.5, [1.0 + i for i in range(dim)]])),
        "time_unit": draw(st.sampled_from([0.1, 1.0, 1.5])),
        "reward_function": "move_along_a_line" if line else "move_to_a_point",
        "sequence_length": length,
        "target_point": draw(st.sampled_from([None, [1.0, -2.0]])),
        "target_radius": draw(st.sampled_from([0.05, 1.0])),
        "make_denser": draw(st.booleans()),
        "action_loss_weight": draw(st.sampled_from([0.0, 0.3])),
        "terminal_states": draw(st.sampled_from([None, [[2.0, 2.0], [-2.0, 1.0]]])),
        "term_state_edge": draw(st.sampled_from([0.5, 2.0])),
        "term_state_reward": draw(st.sampled_from([0.0, -4.0])),
        "reward_every_n_steps": draw(st.integers(1, 3)),
        "delay": draw(st.integers(0, 3)),
        "transition_noise": draw(st.sampled_from([0, 0.4, pull_back])),
        "reward_noise": draw(st.sampled_from([0, 0.6, as_far_out])),
        "reward_scale": draw(st.sampled_from([1.0, 3.0])),
        "reward_shift": draw(st.sampled_from([0.0, -0.2])),
        "horizon": draw(st.integers(7, 12)),
    }


@settings(max_examples=100, deadline=None)
@given(knobs=point_knobs(), seed=st.integers(0, 1000))
def test_continuous(knobs, seed):
    env = HardnessContinuousVectorEnv(3, seed=seed, augmented_state=True, **knobs)
    references = [ContinuousReference(knobs) for _ in range(3)]
    record(env, references)
    env.reset()
    for reference in references:
        reference.reset()
    rng = np.random.default_rng(seed)
    for _ in range(25):
        assert np.allclose(env.positions, [r.positions[-1] for r in references])
        # Somewhat beyond the range, where actions count as its border.
        actions = 1.3 * knobs["action_space_max"] * rng.uniform(-1, 1, (3, knobs["state_space_dim"]))
        _, rewards, terminated, truncated, infos = env.step(actions)
        for copy, reference in enumerate(references):
            outcome = reference.step(actions[copy].tolist())
            expected = (pytest.approx(outcome[0], rel=1e-6, abs=1e-7), *outcome[1:])
            assert (rewards[copy], terminated[copy], truncated[copy]) == expected
            markov = infos["final_augmented_state" if any(outcome[1:]) else "augmented_state"][copy]
            assert np.allclose(markov, reference.derivatives)
            if any(outcome[1:]):
                reference.reset()
    assert not any(r.recording.draws for r in references)
