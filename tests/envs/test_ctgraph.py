"""The CT-graph keeps the contract, moves and pays as the paper says, and shows what its views promise."""

from __future__ import annotations

import json
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from contract import EnvironmentContract
from ctgraph_chain import arrivals
from hypothesis import given, settings
from hypothesis import strategies as st

from lcd.envs.ctgraph.benchmark import CTGRAPH
from lcd.envs.ctgraph.compare import compare, expected_return, farthest
from lcd.envs.ctgraph.graph import CTGraphVectorEnv
from lcd.envs.ctgraph.knobs import GraphKnobs, merge
from lcd.envs.ctgraph.layout import DECISION, KINDS, nodes
from lcd.envs.ctgraph.scripted import policy_actions
from lcd.envs.errors import InputError
from lcd.envs.population import make_points, make_population

EVERYTHING = {
    "graph_shape": {"b": 2, "d": 2, "p": 0.5},
    "reward": {"fail_r": -0.5, "std_r": 0.5, "min_static_reward_episodes": 1, "max_static_reward_episodes": 4},
    "observations": {"MDP_D": True, "W_IDs": [10, 40], "H_IDs": [0, 2], "E_IDs": [3, 5]},
    "image_dataset": {"noise_on_read": 0.2, "rotation_on_read": 10},
}


class GraphContract(EnvironmentContract):
    env_id = "lcd/ctgraph-v0"
    longest_episode = 40


class TestState(GraphContract):
    arguments: ClassVar = {"view": "state", **EVERYTHING}


class TestPixels(GraphContract):
    arguments: ClassVar = {"view": "pixels", **EVERYTHING}


class TestFigureGround(GraphContract):
    arguments: ClassVar = {"view": "figure_ground", **EVERYTHING}


class TestSemantic(GraphContract):
    arguments: ClassVar = {"view": "semantic", **EVERYTHING}


def make(num_envs=1, view="state", seed=0, **knobs) -> CTGraphVectorEnv:
    env = CTGraphVectorEnv(num_envs, view=view, seed=seed, **knobs)
    env.reset()
    return env


def named(env, copy=0) -> tuple:
    """The present state as the twin of the tests names it."""
    kind, number = KINDS[env.kinds[copy]], int(env.numbers[copy])
    if kind in ("home", "fail"):
        return (kind,)
    paths = {(n.kind, n.number): n.path for n in nodes(env.knobs)}
    return kind, paths[env.kinds[copy], number]


@pytest.mark.parametrize(("b", "d", "p"), [(2, 1, 0.0), (2, 3, 0.0), (3, 2, 0.5), (4, 2, 0.9)])
def test_moves_like_the_definition(b, d, p):
    env = make(64, graph_shape={"b": b, "d": d, "p": p})
    rng = np.random.default_rng(0)
    seen = set()
    for step in range(300):
        before = [named(env, copy) for copy in range(0, 64, 8)]
        # Mostly navigating, so that all of the graph is reached.
        actions = policy_actions(env, "navigation" if step % 7 else "random", rng)
        _, rewards, terminations, truncations, _ = env.step(actions)
        assert not truncations.any()
        for state, copy in zip(before, range(0, 64, 8), strict=True):
            possible = [after for chance, after in arrivals(state, actions[copy], d, p) if chance > 0]
            ended = all(after[0] in ("end", "fail") for after in possible)
            if terminations[copy]:
                assert any(after[0] in ("end", "fail") for after in possible)
                assert named(env, copy) == ("home",)
                goal = ("end", tuple(env.goals[copy]))
                assert rewards[copy] == (goal in possible)
            else:
                assert not ended
                assert named(env, copy) in possible
                assert rewards[copy] == 0
            seen.add(state)
    # With p = 0.9 few of the copies looked at come deep within these steps.
    assert len({s for s in seen if s[0] in ("wait", "decision")}) >= min(20, 2 * b**d - 1)


@pytest.mark.parametrize("distribution", ["needle_in_haystack", "gradient"])
@pytest.mark.parametrize(("b", "d"), [(2, 3), (3, 2), (5, 1)])
def test_rewards_of_all_ends_and_goals(b, d, distribution):
    ends = np.array(list(product(range(1, b + 1), repeat=d)))
    for goal in ends:
        worth = compare(ends, goal, b, distribution)
        assert worth[(ends == goal).all(axis=1)] == [1.0]
        assert worth.min() == 0.0
        assert (np.sort(worth)[:-1] < 1).all()
        knobs = GraphKnobs.from_dict(
            {"graph_shape": {"b": b, "d": d, "p": 0.5}, "goal": goal, "reward": {"reward_distribution": distribution}}
        )
        assert expected_return(knobs, goal, "navigation") == pytest.approx(worth.mean(), abs=1e-12)
    corner = np.array([1] * d)
    assert farthest(corner, b) == farthest(np.array([b] * d), b) == b**d - 1


def test_gradient_follows_the_papers_weights():
    goal, decisions = np.array([1, 3, 2]), np.array([[2, 3, 2], [1, 2, 2], [1, 3, 1], [3, 1, 3]])
    divisor = 2 * 9 + 2 * 3 + 1 * 1
    expected = [1 - 9 / divisor, 1 - 3 / divisor, 1 - 1 / divisor, 1 - (2 * 9 + 2 * 3 + 1) / divisor]
    assert compare(decisions, goal, 3, "gradient") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("distribution", "of_a_step"), [("needle_in_haystack", 0.0), ("gradient", 0.0), ("gradient", 0.25)]
)
def test_returns_of_the_policies(distribution, of_a_step):
    knobs = {
        "graph_shape": {"b": 3, "d": 1, "p": 0.3},
        "reward": {"high_r": 2.0, "fail_r": -1.0, "step_r": of_a_step, "reward_distribution": distribution},
        "goal": [2],
    }
    rng = np.random.default_rng(0)
    for policy in ("random", "navigation", "optimal"):
        env = make(256, **knobs)
        returns, so_far = [], np.zeros(256)
        for _ in range(400):
            _, rewards, terminations, _, _ = env.step(policy_actions(env, policy, rng))
            so_far += rewards
            returns.append(so_far[terminations])
            so_far[terminations] = 0
        returns = np.concatenate(returns[40:])
        expected = expected_return(env.knobs, env.goals[0], policy)
        assert abs(returns.mean() - expected) <= 4 * returns.std() / np.sqrt(len(returns)) + 1e-12


def test_noise_is_added_at_ends_only():
    env = make(256, reward={"std_r": 0.3, "high_r": 3.0}, goal=[2, 1])
    rng = np.random.default_rng(0)
    at_goal, elsewhere = [], []
    for _ in range(120):
        _, rewards, terminations, _, infos = env.step(policy_actions(env, "navigation", rng))
        events = infos["event_reward"]
        assert (rewards[~terminations] == 0).all()
        assert set(np.unique(events)) <= {0.0, 3.0}
        at_goal.append(rewards[events == 3])
        elsewhere.append(rewards[terminations & (events == 0)])
    for found, mean in ((np.concatenate(at_goal), 3.0), (np.concatenate(elsewhere), 0.0)):
        # Multiplicative noise would leave the second at zero and widen the first.
        assert abs(found.mean() - mean) < 4 * 0.3 / np.sqrt(len(found))
        assert found.std() == pytest.approx(0.3, rel=0.1)
    failing = make(64, reward={"std_r": 0.3, "fail_r": -1.0})
    failing.step(np.zeros(64, dtype=int))
    _, rewards, terminations, _, infos = failing.step(np.ones(64, dtype=int))
    assert terminations.all()
    assert (rewards == -1).all()
    assert (infos["event_reward"] == -1).all()


def test_goals_are_shared_by_copies_and_splits_and_differ_between_seeds():
    knobs = {"graph_shape": {"b": 3, "d": 4}}
    train, held_out = make(4, seed=5, **knobs), make(2, seed=5, split="eval", **knobs)
    assert (train.goals == held_out.goals[0]).all()
    assert len({tuple(make(seed=s, **knobs).goals[0]) for s in range(8)}) > 4
    assert (make(seed=1, goal_seed=5, **knobs).goals == train.goals[:1]).all()
    assert make(goal=(3, 1, 2, 2), **knobs).goals.tolist() == [[3, 1, 2, 2]]


def test_goal_changes_within_a_run_and_copies_agree():
    knobs = {"reward": {"min_static_reward_episodes": 2, "max_static_reward_episodes": 5}, "graph_shape": {"d": 1}}
    env = make(3, **knobs)
    histories = [[] for _ in range(3)]
    for step in range(400):
        actions = np.where(env.kinds == DECISION, 1, 0)
        # One copy fails now and then, so that the copies' episodes do not keep step.
        if step % 5 == 0:
            actions[2] = 1
        before = env.goals
        _, _, terminations, _, _ = env.step(actions)
        for copy in np.flatnonzero(terminations):
            histories[copy].append(tuple(before[copy]))
    shortest = min(map(len, histories))
    assert shortest > 50
    assert histories[0][:shortest] == histories[1][:shortest] == histories[2][:shortest]
    stays = [len(list(same)) for _, same in groups(histories[0])]
    assert len(stays) > 10
    assert set(stays[:-1]) == {2, 3, 4}
    env.reset(seed=0)
    assert tuple(env.goals[0]) == histories[0][0]
    env.reset(options={"goal": [2]})
    assert (env.goals == 2).all()


def groups(values):
    from itertools import groupby

    return groupby(values)


UPSTREAM = {
    "general_seed": 3,
    "graph_shape": {"d": 3, "b": 3, "p": 0.5},
    "reward": {
        "high_r": 2.0,
        "fail_r": -0.1,
        "std_r": 0.1,
        "reward_distribution": "linear",
        "min_static_reward_episodes": 10,
        "max_static_reward_episodes": 20,
    },
    "observations": {"MDP_D": False, "MDP_W": False, "W_IDs": [2, 2], "D_IDs": [3, 3], "graph_ends": [4, 4]},
    "image_dataset": {"seed": 2, "1D": True, "nr_of_images": 40, "noise_on_read": 51, "rotation_on_read": 10},
}
TABLE_3 = {
    "Seed": 3,
    "graph_shape": {"d": 3, "b": 3, "p": 0.5},
    "reward": UPSTREAM["reward"],
    "observations": {"MDP_D": False, "MDP_W": False, "W_IDS": [2, 2], "D_IDS": [3, 3], "E_IDs": [4, 4]},
    "image set": {"seed": 2, "1D": True, "nr_images": 40, "noise on read": 0.2, "rotation on read": 10},
}


def test_the_authors_file_and_table_3s_spellings(tmp_path):
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(UPSTREAM))
    knobs = GraphKnobs.from_dict({"config": str(file)})
    assert knobs == GraphKnobs.from_dict(TABLE_3)
    assert (knobs.graph_shape.d, knobs.reward.high_r, knobs.num_ids) == (3, 2.0, 40)
    assert knobs.reward.reward_distribution == "gradient"
    env = make(view=None, seed=None, config=str(file))
    assert env.view == "state"
    assert (env.goals == make(seed=3, **UPSTREAM).goals).all()
    changed = GraphKnobs.from_dict({"config": str(file), "graph_shape": {"d": 1}})
    assert (changed.graph_shape.d, changed.graph_shape.b) == (1, 3)
    assert merge({"graph_shape": {"d": 1}}, {"graph_shape": {"p": 0.5}})["graph_shape"] == {"d": 1, "p": 0.5}


@pytest.mark.parametrize(("in_file", "levels"), [(0.05, 0), (1, 1), (12.9, 12), (51, 51)])
def test_noise_in_a_file_is_in_whole_grey_levels_as_the_authors_code_takes_it(tmp_path, in_file, levels):
    file = tmp_path / "graph.json"
    file.write_text(json.dumps({**UPSTREAM, "image_dataset": {"nr_of_images": 40, "noise_on_read": in_file}}))
    assert GraphKnobs.from_dict({"config": str(file)}).image_dataset.noise_on_read == levels / 255
    brightest = {make(view=view, config=str(file)).reset()[0].max() for view in ("pixels", "figure_ground")}
    assert max(brightest) <= 255
    assert (len(brightest) > 1) == (levels > 0)
    beside = {"config": str(file), "image_dataset": {"noise_on_read": 0.05}}
    assert GraphKnobs.from_dict(beside).image_dataset.noise_on_read == 0.05


@settings(max_examples=30, deadline=None)
@given(
    b=st.integers(2, 4),
    d=st.integers(1, 4),
    own=st.tuples(st.booleans(), st.booleans()),
    first=st.integers(0, 5),
    size=st.integers(1, 9),
)
def test_sets_that_are_not_given_stay_clear_of_the_others(b, d, own, first, size):
    given_set = {} if own[0] else {"W_IDs": [first, first + size - 1]}
    knobs = GraphKnobs.from_dict(
        {"graph_shape": {"b": b, "d": d}, "observations": {"MDP_W": own[0], "MDP_D": own[1], **given_set}}
    )
    covered = [i for low, high in knobs.id_sets.values() for i in range(low, high + 1)]
    assert len(covered) == len(set(covered))
    assert max(covered) + 1 == knobs.num_ids
    assert sum(1 for _ in nodes(knobs)) == len({(n.kind, n.number) for n in nodes(knobs)})


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"graph_shape": {"b": 1}}, ["graph_shape.b is 1", "at least 2"]),
        ({"graph_shape": {"d": 0}}, ["graph_shape.d is 0"]),
        ({"graph_shape": {"p": 1}}, ["graph_shape.p is 1"]),
        ({"graph_shape": {"q": 1}}, ["graph_shape.q", "no knob"]),
        ({"graph_shape": 3}, ["graph_shape is 3", "b, d, p"]),
        ({"graph_shap": {}}, ["'graph_shap'", "did you mean 'graph_shape'"]),
        ({"graph_shape": {"d": 30}}, ["graph_shape.d is 30", "closed forms"]),
        ({"goal": [1]}, ["goal is [1]", "d=2", "b=2"]),
        ({"goal": [0, 1]}, ["goal is [0, 1]", "1 to b=2"]),
        ({"goal": [1, 3]}, ["[1, 3]"]),
        ({"reward": {"high_r": -1}}, ["reward.high_r is -1"]),
        ({"reward": {"fail_r": "x"}}, ["reward.fail_r is 'x'"]),
        ({"reward": {"std_r": -1}}, ["reward.std_r is -1"]),
        ({"reward": {"step_r": -0.1}}, ["reward.step_r is -0.1", "at least 0"]),
        ({"reward": {"reward_distribution": "gradien"}}, ["did you mean 'gradient'"]),
        ({"reward": {"min_static_reward_episodes": 5, "max_static_reward_episodes": 5}}, ["is 5", "below"]),
        ({"observations": {"MDP_W": 1}}, ["observations.MDP_W is 1", "true or false"]),
        ({"observations": {"W_IDs": 3}}, ["observations.W_IDs is 3"]),
        ({"observations": {"W_IDs": [3, 2]}}, ["W_IDs is [3, 2]"]),
        ({"observations": {"MDP_W": True, "W_IDs": [2, 4]}}, ["W_IDs is [2, 4]", "asks for 7"]),
        ({"image_dataset": {"nr_of_images": 4}}, ["nr_of_images is 4", "up to 4"]),
        ({"image_dataset": {"noise_on_read": -1}}, ["noise_on_read is -1"]),
        ({"image_set": {}, "image_dataset": {}}, ["given twice"]),
        ({"config": "nowhere.json"}, ["nowhere.json", "cannot be read"]),
    ],
)
def test_mistakes_are_one_sentence(knobs, words):
    with pytest.raises(InputError) as mistake:
        CTGraphVectorEnv(**knobs)
    assert all(word in str(mistake.value) for word in words), str(mistake.value)
    assert "\n" not in str(mistake.value)


def test_unknown_reset_options_are_refused():
    with pytest.raises(InputError, match="did you mean 'goal'"):
        make().reset(options={"goals": [1, 2]})


def test_depth_and_wait_are_a_family_with_closed_formulas_at_every_point():
    family = CTGRAPH.family("ctgraph/depth-1")
    assert len(family.points) == 9
    assert family.context_of({"graph_shape.d": 1, "graph_shape.p": 0}) == ""
    for point in family.points:
        nested = {"graph_shape": {name.partition(".")[2]: value for name, value in point.items()}}
        exact = CTGRAPH.reward_range("ctgraph/depth-1", 0, **point)
        assert exact == CTGRAPH.reward_range("ctgraph/depth-1", 0, **nested)
        # The random policy needs the one end of b^d whose decisions are all right, and never acts while it waits.
        assert exact[1] == 1
        assert exact[0] < 1 / 2 ** point["graph_shape.d"] + 1e-12


def test_points_side_by_side_are_what_each_is_alone():
    points = [{"graph_shape.d": 1}, {"graph_shape.d": 2, "graph_shape.p": 0.5}]
    how = {"seeds": [3, 4], "copies": 2, "view": "semantic", "split": "train"}
    both = make_points("ctgraph", "ctgraph/depth-1", points=points, **how)
    alone = [make_population("ctgraph", "ctgraph/depth-1", **how, **point) for point in points]
    actions = np.random.default_rng(0).integers(0, 3, (30, 8))
    assert np.array_equal(both.reset()[0], np.concatenate([env.reset()[0] for env in alone]))
    for each in actions:
        expected = [env.step(part) for env, part in zip(alone, np.split(each, 2), strict=True)]
        for got, *wanted in zip(both.step(each)[:4], *(one[:4] for one in expected), strict=True):
            assert np.array_equal(got, np.concatenate(wanted))
    with pytest.raises(InputError, match="differ cannot be trained together: single_observation_space"):
        make_points("ctgraph", "ctgraph/depth-1", points=points, **{**how, "view": "state"})
    with pytest.raises(InputError, match="single_action_space"):
        make_points("ctgraph", "ctgraph/depth-1", points=[{"graph_shape.b": b} for b in (2, 3)], **how)


@pytest.mark.parametrize(
    ("knobs", "told"),
    [
        ({"graph_shape.d": 1, "graph_shape": {"d": 2}}, "graph_shape.d is given twice"),
        ({"graph_shape.depth": 1}, "'graph_shape.depth' is no knob"),
        ({"goal.d": 1}, "'goal' is no knob"),
    ],
)
def test_knobs_with_dots_are_checked_like_others(knobs, told):
    with pytest.raises(InputError, match=told):
        GraphKnobs.from_dict(knobs)
