"""The CT-graph's closed forms against the exact chain, the environment itself and the paper's tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ctgraph_chain import Chain, states

from lcd.envs import ctgraph
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.ctgraph.graph import CTGraphVectorEnv
from lcd.envs.ctgraph.scripted import policy_actions
from lcd.envs.errors import InputError

SHAPES = [(2, 1, 0.0), (2, 2, 0.5), (3, 2, 0.9), (2, 4, 0.9), (4, 3, 0.25), (5, 1, 0.99), (2, 3, 0.5), (3, 4, 0.0)]


@pytest.mark.parametrize(("b", "d", "p"), SHAPES)
def test_closed_forms_are_the_exact_chains(b, d, p):
    random, navigation = Chain(b, d, p, "random"), Chain(b, d, p, "navigation")
    ends = {s: x for s, x in random.absorbed().items() if s[0] == "end"}
    assert len(ends) == ctgraph.num_ends(b, d, p)
    for probability in ends.values():
        assert probability == pytest.approx(ctgraph.reward_probability(b, d, p), rel=1e-9)
    assert sum(ends.values()) == pytest.approx(ctgraph.end_probability(b, d, p), rel=1e-9)
    for state, probability in navigation.absorbed().items():
        expected = ctgraph.navigation_reward_probability(b, d, p) if state[0] == "end" else 0.0
        assert probability == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert random.length == pytest.approx(ctgraph.expected_length(b, d, p, "random"), rel=1e-9)
    assert navigation.length == pytest.approx(ctgraph.expected_length(b, d, p), rel=1e-9)
    assert ctgraph.expected_length(b, d, p, "optimal") == ctgraph.expected_length(b, d, p)
    found = states(b, d)
    assert len(found) == ctgraph.num_states(b, d, p)
    assert sum(s[0] == "wait" for s in found) == ctgraph.num_waits(b, d)
    assert sum(s[0] == "decision" for s in found) == ctgraph.num_decisions(b, d)
    first_wait = navigation.transient.index(("wait", ()))
    assert navigation.visits[first_wait] == pytest.approx(ctgraph.wait_visits(b, d, p), rel=1e-9)


@pytest.mark.parametrize(("b", "d", "p"), SHAPES)
def test_lengths_are_distributed_as_the_exact_chains(b, d, p):
    most = 120
    exact = Chain(b, d, p, "navigation").length_distribution(most)
    formula = ctgraph.length_probability(np.arange(most + 1), b, d, p)
    np.testing.assert_allclose(formula, exact, rtol=1e-9, atol=1e-12)
    assert ctgraph.length_probability(2 * d + 2, b, d, p) == pytest.approx((1 - p) ** (d + 1))


@pytest.mark.parametrize(("b", "d", "p"), [(2, 3, 0.5), (3, 2, 0.9)])
def test_the_distribution_adds_up_to_reward_probability_and_length(b, d, p):
    """The appendix's derivation, summed: with (1 - p) where the paper prints (1 + p)."""
    lengths = np.arange(2 * (d + 1), 2000)
    probability = ctgraph.length_probability(lengths, b, d, p)
    assert probability.sum() == pytest.approx(1.0, rel=1e-9)
    assert (lengths * probability).sum() == pytest.approx(ctgraph.expected_length(b, d, p), rel=1e-9)
    summed = (probability * float(b + 1) ** -(lengths - 1)).sum()
    assert summed == pytest.approx(ctgraph.reward_probability(b, d, p), rel=1e-9)


def test_table_2_up_to_its_misprints():
    rows = [
        (2, 1, 0.0, 3.70e-2, 7.40e-2, 2, 8),
        (2, 2, 0.9, 1.20e-5, 4.80e-5, 4, 16),  # the paper prints 4.78e-5
        (3, 2, 0.9, 2.10e-6, 1.89e-5, 9, 28),
        (2, 4, 0.9, 3.02e-9, 4.84e-8, 16, 64),
        (3, 10, 0.9, 3.75e-23, 2.22e-18, 59049, 177148),
        (2, 16, 0.5, 3.04e-20, 2.00e-15, 65536, 262144),  # the paper prints 1.99e-15
    ]
    for b, d, p, reward, end, ends, size in rows:
        # The paper cuts digits off in places: 2/27 is printed as 7.40e-2.
        assert ctgraph.reward_probability(b, d, p) == pytest.approx(reward, rel=0.0015)
        assert ctgraph.end_probability(b, d, p) == pytest.approx(end, rel=0.0015)
        assert ctgraph.num_ends(b, d, p) == round(1 / ctgraph.navigation_reward_probability(b, d, p)) == ends
        assert ctgraph.num_states(b, d, p) == size


def test_figures_in_the_papers_text():
    assert ctgraph.expected_length(2, 2, 0.99) == pytest.approx(303)
    assert 1 / ctgraph.reward_probability(2, 2, 0.9) == pytest.approx(83349, rel=1e-4)
    assert ctgraph.reward_probability(2, 2, 0) == pytest.approx(1 / 243)  # the paper prints 1/32
    assert ctgraph.reward_probability(2, 2, 0.5) == pytest.approx(8.89e-4, rel=1e-3)  # the paper prints 8.88e-4
    assert ctgraph.expected_length(2, 3, 0.5) == 12  # the paper prints 11
    assert ctgraph.expected_length(2, 2, 0.5) == 9
    assert 1 / ctgraph.reward_probability(2, 3, 0.5) == pytest.approx(16875)
    assert 1 / ctgraph.reward_probability(2, 5, 0) == pytest.approx(177147)
    assert ctgraph.expected_search(2, 2) == 2.5


@pytest.mark.parametrize(("b", "d"), [(2, 2), (3, 2), (2, 4)])
def test_search_without_repetition_by_trying(b, d):
    """E[κ] by brute force: the goal's place in a random order of all ends."""
    rng = np.random.default_rng(0)
    places = np.array([rng.permutation(b**d).argmin() + 1 for _ in range(20000)])
    error = places.std() / math.sqrt(len(places))
    assert abs(places.mean() - ctgraph.expected_search(b, d)) < 4 * error


@pytest.mark.parametrize("policy", ["random", "navigation"])
@pytest.mark.parametrize(("b", "d", "p"), [(2, 1, 0.0), (2, 2, 0.5), (3, 1, 0.5), (2, 3, 0.0)])
def test_the_environment_by_monte_carlo(b, d, p, policy):
    lengths, goals, ends = play(b, d, p, policy, episodes=40000)
    within_error(lengths.mean(), ctgraph.expected_length(b, d, p, policy), lengths.std() / math.sqrt(len(lengths)))
    reward = ctgraph.reward_probability if policy == "random" else ctgraph.navigation_reward_probability
    assert reward(b, d, p) > 1e-4
    proportion(goals, reward(b, d, p))
    proportion(ends, ctgraph.end_probability(b, d, p) if policy == "random" else 1.0)
    if policy == "navigation":
        for length in range(2 * (d + 1), 2 * (d + 1) + 12):
            if (probability := ctgraph.length_probability(length, b, d, p)) > 1e-4:
                proportion(lengths == length, probability)


def play(b, d, p, policy, episodes):
    """Lengths of episodes, which of them ended at the goal, and which at any end."""
    env = CTGraphVectorEnv(512, view="state", seed=1, graph_shape={"b": b, "d": d, "p": p}, reward={"fail_r": -1.0})
    rng = np.random.default_rng(2)
    env.reset()
    age, found = np.zeros(512, dtype=int), []
    # Each copy plays as many episodes: those that end first would be the short ones.
    left = np.full(512, -(-episodes // 512))
    while left.any():
        _, rewards, terminations, _, _ = env.step(policy_actions(env, policy, rng))
        age += 1
        counted = terminations & (left > 0)
        found.append(np.stack([age[counted], rewards[counted]], axis=1))
        left -= counted
        age[terminations] = 0
    lengths, rewards = np.concatenate(found).T
    return lengths, rewards == 1.0, rewards >= 0.0


def within_error(found, expected, error):
    assert abs(found - expected) <= 4 * error + 1e-12


def proportion(hits, expected):
    within_error(hits.mean(), expected, math.sqrt(expected * (1 - expected) / len(hits)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((1, 2, 0.0), ["b is 1", "at least 2"]), ((2, 0, 0.0), ["d is 0"]), ((2, 2, 1.0), ["p is 1.0", "not, 1"])],
)
def test_mistakes(arguments, words):
    with pytest.raises(InputError) as mistake:
        ctgraph.reward_probability(*arguments)
    assert all(word in str(mistake.value) for word in words)


def test_known_graphs_are_as_hard_as_chance_says_and_alike_in_all_else():
    known = get_benchmark("calibration-ctgraph")
    levels = {task: truth.reward for task, truth in known.truth.items()}
    assert list(levels) == list(known.tasks) == list(known.about)
    assert all(math.isnan(truth.perception) for truth in known.truth.values())
    for task, level in levels.items():
        graph, goal = known.graph(task, 0)
        chain = Chain(graph.graph_shape.b, graph.graph_shape.d, graph.graph_shape.p, "random")
        assert 2**-level == pytest.approx(chain.absorbed()["end", tuple(goal)], rel=1e-9)
        assert known.reward_range(task, 0) == pytest.approx((2**-level, 1.0))
        assert graph.observations.MDP_D
        assert graph.observations.MDP_W
    assert min(levels.values()) < 5
    assert max(levels.values()) > 11
