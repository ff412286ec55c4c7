"""Exact returns against a formula, brute force, an expectimax over whole histories, and simulation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import DiscreteReference, Rewarding

from lcd.envs.errors import InputError
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.hardness.mdp import DiscreteMDP, HardnessKnobs, build_mdp
from lcd.envs.hardness.solve import expected_return


@pytest.mark.parametrize("delay", [0, 1, 2, 4, 8])
@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("horizon", [20, 100])
def test_optimal_return_of_a_fixed_horizon(delay, length, horizon):
    knobs = HardnessKnobs(delay=delay, sequence_length=length, horizon=horizon, terminal_state_density=0.0)
    for seed in range(3):
        assert expected_return(build_mdp(knobs, seed)) == (horizon - delay) // length


@pytest.mark.parametrize("delay", [0, 4])
def test_terminal_states_do_not_keep_an_optimal_agent_from_the_most(delay):
    mdp = build_mdp(HardnessKnobs(delay=delay), 0)
    assert expected_return(mdp) == pytest.approx(100 - delay)
    assert expected_return(mdp, "random") < 10


def test_random_return_of_one_step_sequences():
    mdp = build_mdp(HardnessKnobs(terminal_state_density=0.0, horizon=40), 0)
    assert expected_return(mdp, "random") == pytest.approx(40 * 2 / 8)


def pays(mdp: DiscreteMDP, reached: list[int]) -> int:
    """The return of an episode that reached these states, by the words of the knobs."""
    knobs, rewarded = mdp.knobs, {tuple(s) for s in mdp.sequences.tolist()}
    return sum(
        tuple(reached[step - knobs.sequence_length : step]) in rewarded
        for step in range(knobs.sequence_length, len(reached) - knobs.delay + 1)
        if step % knobs.reward_every_n_steps == 0
    )


def by_all_histories(mdp: DiscreteMDP, best: bool) -> float:
    """Expectimax over whole histories: no compression that could be wrong."""
    knobs, states = mdp.knobs, mdp.knobs.state_space_size

    def value(start: int, reached: list[int]) -> float:
        state = reached[-1] if reached else start
        if len(reached) == knobs.horizon or (reached and mdp.terminal[state]):
            return pays(mdp, reached)
        onward = np.array([value(start, [*reached, after]) for after in range(states)])
        true = onward[mdp.transitions[state]]
        stray = (onward.sum() - true) / (states - 1)
        of_actions = (1 - knobs.transition_noise) * true + knobs.transition_noise * stray
        return of_actions.max() if best else of_actions.mean()

    return float(np.mean([value(start, []) for start in mdp.starts]))


@settings(max_examples=25, deadline=None)
@given(
    states=st.integers(2, 4),
    length=st.integers(1, 2),
    every=st.none() | st.integers(1, 2),
    delay=st.integers(0, 2),
    density=st.floats(0, 1),
    terminal=st.sampled_from([0.0, 0.34]),
    noise=st.sampled_from([0.0, 0.25]),
    seed=st.integers(0, 1000),
)
def test_against_all_histories(states, length, every, delay, density, terminal, noise, seed):
    if int(terminal * states) + length > states:
        length = 1
    knobs = HardnessKnobs(
        state_space_size=states,
        action_space_size=states,
        sequence_length=length,
        reward_every_n_steps=every,
        delay=delay,
        reward_density=density,
        terminal_state_density=terminal,
        transition_noise=noise,
        horizon=4,
    )
    mdp = build_mdp(knobs, seed)
    assert expected_return(mdp, "optimal") == pytest.approx(by_all_histories(mdp, best=True))
    assert expected_return(mdp, "random") == pytest.approx(by_all_histories(mdp, best=False))


def test_against_all_action_sequences():
    knobs = HardnessKnobs(
        state_space_size=5,
        action_space_size=3,
        sequence_length=2,
        reward_density=0.3,
        horizon=7,
        delay=1,
        terminal_state_density=0.2,
    )
    mdp = build_mdp(knobs, 3)
    best, mean = [], []
    for start in mdp.starts:
        returns = []
        for actions in product(range(3), repeat=7):
            state, reached = start, []
            for action in actions:
                state = mdp.transitions[state, action]
                reached.append(state)
                if mdp.terminal[state]:
                    break
            returns.append(pays(mdp, reached))
        best.append(max(returns))
        mean.append(np.mean(returns))
    assert expected_return(mdp) == pytest.approx(np.mean(best))
    assert expected_return(mdp, "random") == pytest.approx(np.mean(mean))


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"delay": 3, "terminal_state_density": 0.13, "reward_noise": 1.0},
        {"sequence_length": 2, "reward_every_n_steps": 1, "transition_noise": 0.2, "terminal_state_density": 0.13},
        {"sequence_length": 3, "reward_density": 0.3, "terminal_state_density": 0.0, "horizon": 20},
    ],
)
def test_random_agents_in_the_environment(knobs):
    copies = 2000
    env = HardnessDiscreteVectorEnv(copies, seed=6, **knobs)
    env.reset()
    rng = np.random.default_rng(0)
    running, returns = np.ones(copies, dtype=bool), np.zeros(copies)
    while running.any():
        _, rewards, terminated, truncated, _ = env.step(rng.integers(8, size=copies))
        returns += rewards * running
        running &= ~(terminated | truncated)
    standard_error = returns.std() / np.sqrt(copies)
    assert abs(returns.mean() - expected_return(env.mdps[0], "random")) < 4 * standard_error


def test_limits():
    with pytest.raises(InputError, match="delay is 30"):
        expected_return(build_mdp(HardnessKnobs(delay=30), 0))
    with pytest.raises(InputError, match="'optimal'"):
        expected_return(build_mdp(HardnessKnobs(), 0), "optimum")


def returns_of_the_reference(mdp: DiscreteMDP, best: bool) -> float:
    """Expectimax over whole histories of states and actions, each paid by the tests' slow reference."""
    knobs = mdp.knobs
    rewarded = dict(zip(map(tuple, mdp.sequences.tolist()), mdp.sequence_rewards.tolist(), strict=True))
    names = ("delay", "sequence_length", "reward_every_n_steps", "make_denser", "reward_scale", "reward_shift")
    plain = {name: getattr(knobs, name) for name in (*names, "term_state_reward", "reward_function")}
    ends = set(np.flatnonzero(mdp.terminal).tolist())

    def total(visited: list[int], taken: list[int]) -> float:
        copy = DiscreteReference(plain, mdp.transitions.tolist(), rewarded, ends, mdp.starts.tolist())
        copy.rewarding = Rewarding(plain)
        paid = 0.0
        for step in range(1, len(visited)):
            copy.visited, copy.taken = visited[: step + 1], taken[:step]
            paid += copy.rewarding.pay(copy.earned(), 0.0, visited[step] in ends)
        return paid

    def value(visited: list[int], taken: list[int]) -> float:
        state = visited[-1]
        if len(taken) == knobs.horizon or (taken and state in ends):
            return total(visited, taken)
        first = (state // knobs.set_size + 1) % knobs.sets * knobs.set_size
        values = []
        for action in range(knobs.action_space_size):
            onward = {s: value([*visited, s], [*taken, action]) for s in range(first, first + knobs.set_size)}
            true = onward[mdp.transitions[state, action]]
            others = (sum(onward.values()) - true) / (knobs.set_size - 1)
            values.append((1 - knobs.transition_noise) * true + knobs.transition_noise * others)
        return max(values) if best else float(np.mean(values))

    weights = None if knobs.init_state_dist is None else np.array(knobs.init_state_dist)[mdp.starts]
    return float(np.average([value([start], []) for start in mdp.starts.tolist()], weights=weights))


@pytest.mark.parametrize(
    "knobs",
    [
        {"diameter": 2, "sequence_length": 2, "delay": 1, "terminal_state_density": 0.5},
        {"make_denser": True, "sequence_length": 2, "transition_noise": 0.2, "reward_dist": [0.2, 1.0]},
        {"reward_shift": -0.3, "reward_scale": 2.0, "term_state_reward": 1.0, "terminal_states": [1], "delay": 1},
        {"reward_function": [[0.0, 1.0], [0.5, -1.0]], "transition_noise": 0.1, "terminal_states": [], "delay": 2},
        {
            "reward_function": lambda states, actions: states[0] + 0.5 * states[-1] * actions[0] - actions[-1],
            "sequence_length": 2,
            "init_state_dist": [0.75, 0.25],
            "terminal_states": [],
        },
        {"diameter": 2, "make_denser": True, "terminal_states": [3], "delay": 1, "reward_dist": [0.5, 1.0]},
    ],
)
def test_all_knobs_against_the_reference(knobs):
    defaults = {"action_space_size": 2, "horizon": 4, "terminal_state_density": 0.0}
    if "diameter" not in knobs:
        defaults["diameter"] = 1
    mdp = build_mdp(HardnessKnobs(**{**defaults, **knobs}), 3)
    assert expected_return(mdp, "optimal") == pytest.approx(returns_of_the_reference(mdp, best=True))
    assert expected_return(mdp, "random") == pytest.approx(returns_of_the_reference(mdp, best=False))


@pytest.mark.parametrize(("delay", "length", "sets"), [(0, 3, 4), (5, 2, 3), (8, 4, 2)])
def test_with_sets_an_episode_is_worth_as_many_sequences_as_fit(delay, length, sets):
    knobs = HardnessKnobs(
        action_space_size=4, diameter=sets, delay=delay, sequence_length=length, terminal_state_density=0.0
    )
    assert expected_return(build_mdp(knobs, 1)) == (100 - delay) // length


def test_noise_functions_without_chance_are_solved_and_others_refused():
    def chance(state, action, rng):
        return 0.5 if action else 0.0

    solved = expected_return(build_mdp(HardnessKnobs(transition_noise=chance, terminal_state_density=0.0), 0))
    assert solved < 100
    with pytest.raises(InputError, match="transition_noise"):
        expected_return(build_mdp(HardnessKnobs(transition_noise=lambda s, a, rng: rng.uniform()), 0))
