"""The benchmark ctgraph, and tasks of one graph family made, compared and put in order."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from ctgraph_chain import states
from hypothesis import given, settings
from hypothesis import strategies as st

from lcd.envs import ctgraph
from lcd.envs.benchmarks import Benchmark, get_benchmark, reward_range
from lcd.envs.ctgraph.benchmark import CTGRAPH, NAMED
from lcd.envs.ctgraph.graph import CTGraphVectorEnv
from lcd.envs.ctgraph.knobs import GraphKnobs
from lcd.envs.ctgraph.layout import nodes, shown_ids
from lcd.envs.ctgraph.scripted import policy_actions
from lcd.envs.ctgraph.tasks import all_goals, curriculum, nested, sample_tasks, similar_goals, similarity
from lcd.envs.errors import InputError
from lcd.envs.population import make_population
from lcd.envs.protocols import offers


def test_the_benchmark():
    assert offers(CTGRAPH, Benchmark)
    assert get_benchmark("ctgraph") is CTGRAPH
    shapes = [CTGRAPH.graph(task, 0)[0] for task in CTGRAPH.tasks]
    assert {graph.graph_shape.d for graph in shapes} >= {1, 2, 3, 5}
    assert {graph.graph_shape.p for graph in shapes} == {0.0, 0.5, 0.9}


@pytest.mark.parametrize("task", CTGRAPH.tasks)
def test_every_task_runs_and_knows_its_range(task):
    graph, goal = CTGRAPH.graph(task, 3)
    shape = graph.graph_shape
    expected = ctgraph.reward_probability(shape.b, shape.d, shape.p)
    assert reward_range("ctgraph", task, 3) == (pytest.approx(expected), 1.0)
    assert (CTGRAPH.r_min[task](3), CTGRAPH.r_max[task](3)) == reward_range("ctgraph", task, 3)
    assert goal.tolist() == [1, 2, 1, 2, 1][: shape.d]
    spaces = set()
    for view in ("pixels", "figure_ground", "semantic"):
        env = make_population(CTGRAPH, task, seeds=[0, 4], copies=2, view=view, split="eval")
        observations, _ = env.reset()
        env.step(env.action_space.sample())
        spaces.add((observations.shape, observations.dtype))
    assert len(spaces) == 1


def test_the_papers_configurations():
    """Figures of section 3, with the misprints put right."""
    expected = {
        "ct-fo-b1": (3, 7, 4, 6, 1 / 243),
        "ct-fo-b2": (7, 15, 8, 12, 1 / 16875),
        "ct-su-b1": (3, 7, 4, 6, 1 / 243),
        "ct-co-b1": (3, 7, 4, 6, 1 / 243),
        "ct-posr-b1": (3, 7, 4, 9, 8.89e-4),
        "depth-5": (31, 63, 32, 12, 1 / 177147),
    }
    for name, (decisions, waits, ends, length, reward) in expected.items():
        shape = CTGRAPH.graph(f"ctgraph/{name}", 0)[0].graph_shape
        numbers = (shape.b, shape.d, shape.p)
        found = (ctgraph.num_decisions(*numbers), ctgraph.num_waits(*numbers), ctgraph.num_ends(*numbers))
        assert found == (decisions, waits, ends)
        assert ctgraph.expected_length(*numbers) == length
        assert ctgraph.reward_probability(*numbers) == pytest.approx(reward, rel=1e-3)
    sizes = {"ct-fo-b1": 16, "ct-su-b1": 5, "ct-co-b1": 104, "wait-0.9-ids-500": 504}
    for name, ids in sizes.items():
        assert CTGRAPH.graph(f"ctgraph/{name}", 0)[0].num_ids == ids
    assert len(NAMED) == 7


def test_knobs_go_over_a_tasks_own():
    task = "ctgraph/ct-su-b1"
    graph, goal = CTGRAPH.graph(task, 0, graph_shape={"d": 3}, observations={"W_IDs": [5, 9]})
    assert (graph.graph_shape.d, graph.graph_shape.b, graph.observations.D_IDs) == (3, 2, (2, 2))
    assert goal.tolist() == [1, 2, 1]
    assert len({tuple(CTGRAPH.graph(task, seed, goal=None)[1]) for seed in range(40)}) == 4
    low, high = reward_range("ctgraph", task, 0, {"reward": {"fail_r": -1.0, "high_r": 3.0}})
    assert low == pytest.approx(3 / 243 - (1 - 4 / 243))
    assert high == 3


def test_config_files_go_between_a_tasks_knobs_and_the_users(tmp_path):
    (tmp_path / "graph.json").write_text('{"graph_shape": {"d": 4, "b": 3}}')
    graph, _ = CTGRAPH.graph("ctgraph/ct-posr-b1", 0, config=str(tmp_path / "graph.json"), graph_shape={"b": 2})
    assert (graph.graph_shape.d, graph.graph_shape.b, graph.graph_shape.p) == (4, 2, 0.5)


@pytest.mark.parametrize("vary", [("goal",), ("images",), ("ids",), ("shape",), ("goal", "images", "ids", "shape")])
def test_sampled_tasks(vary):
    base = {"graph_shape": {"b": 3, "d": 2}, "goal": [1, 1], "observations": {"W_IDs": [3, 7]}}
    tasks = sample_tasks(6, seed=1, vary=vary, base=base)
    assert tasks == sample_tasks(6, seed=1, vary=vary, base=base)
    assert tasks != sample_tasks(6, seed=2, vary=vary, base=base) or vary == ("ids",)
    graphs = [GraphKnobs.from_dict(task) for task in tasks]
    envs = [CTGraphVectorEnv(2, view="state", **task) for task in tasks]
    assert len({(e.single_observation_space.shape, e.single_action_space.n) for e in envs}) == 1
    fixed = {
        "goal": {graph.goal for graph in graphs},
        "images": {graph.image_dataset.seed for graph in graphs},
        "ids": {tuple(graph.id_sets.values()) for graph in graphs},
        "shape": {graph.graph_shape for graph in graphs},
    }
    for name, found in fixed.items():
        varied = name in vary or (name == "goal" and "shape" in vary)
        assert (len(found) > 1) == varied
    if vary == ("goal",):
        assert len(fixed["goal"]) == 6
    if "ids" in vary:
        assert all(similarity(a, b)["ids"] == 0 for a, b in combinations(tasks, 2))


def test_all_goals_come_before_one_comes_again():
    goals = [tuple(task["goal"]) for task in sample_tasks(8, seed=0, base={"graph_shape": {"d": 2}})]
    assert len(set(goals[:4])) == len(set(goals[4:])) == 4
    assert [task["goal"] for task in all_goals()] == [[1, 1], [1, 2], [2, 1], [2, 2]]


@pytest.mark.parametrize(
    ("count", "shared", "b", "d"), [(2, 2, 2, 3), (3, 1, 3, 3), (4, 1, 2, 3), (1, 2, 2, 2), (3, 0, 3, 1)]
)
def test_similar_goals(count, shared, b, d):
    tasks = similar_goals(count, shared, seed=3, base={"graph_shape": {"b": b, "d": d}})
    goals = [tuple(task["goal"]) for task in tasks]
    assert len(set(goals)) == count
    assert len({goal[:shared] for goal in goals}) == 1
    if 1 < count <= b:
        assert all(similarity(x, y)["goal"] == pytest.approx(shared / d) for x, y in combinations(tasks, 2))
    with pytest.raises(InputError, match="not as many goals"):
        similar_goals(b ** (d - shared) + 1, shared, seed=3, base={"graph_shape": {"b": b, "d": d}})


def test_nested_graphs_share_states_goals_and_ids():
    tasks = nested([1, 2, 4], goal=[2, 1, 1, 2], base={"observations": {"MDP_W": True, "MDP_D": True}})
    graphs = [GraphKnobs.from_dict(task) for task in tasks]
    assert [graph.goal for graph in graphs] == [(2,), (2, 1), (2, 1, 1, 2)]
    shown = [{(node.kind, node.path): node.ids for node in nodes(graph)} for graph in graphs]
    for shallow, deep in combinations(shown, 2):
        common = [state for state in shallow if state in deep]
        assert len(common) == 2 + sum(2**level for level in range(max(len(p) for _, p in shallow) + 1)) + sum(
            2**level for level in range(max(len(p) for _, p in shallow))
        )
        assert all(shallow[state] == deep[state] for state in common)
    similar = similarity(tasks[1], tasks[2])
    assert similar["goal"] == 0.5
    # Fully observable, so that every one of the 16 and 64 states shows an id of its own.
    assert similar["ids"] == 16 / 64
    for graph in graphs:
        assert shown_ids(graph) == {i for node in nodes(graph) for i in range(node.ids[0], node.ids[1] + 1)}


@settings(max_examples=25, deadline=None)
@given(one=st.tuples(st.integers(2, 3), st.integers(1, 4)), other=st.tuples(st.integers(2, 3), st.integers(1, 4)))
def test_shared_states_by_counting(one, other):
    of_one, of_other = set(states(*one)), set(states(*other))
    tasks = [{"graph_shape": {"b": b, "d": d}, "goal": [1] * d} for b, d in (one, other)]
    expected = len(of_one & of_other) / len(of_one | of_other)
    assert similarity(*tasks)["states"] == pytest.approx(expected)


def test_similarity_of_goals_and_ids():
    def task(goal, w, seed=1):
        return {
            "goal": goal,
            "graph_shape": {"d": len(goal)},
            "observations": {"W_IDs": w, "D_IDs": [2, 2], "E_IDs": [40, 40]},
            "image_dataset": {"seed": seed},
        }

    for one, other in product(product((1, 2), repeat=3), repeat=2):
        prefix = next((i for i, (x, y) in enumerate(zip(one, other, strict=True)) if x != y), 3)
        assert similarity(task(one, [3, 3]), task(other, [3, 3]))["goal"] == prefix / 3
    # home, fail, one decision and one end id, and of the wait ids 5 of 15.
    assert similarity(task((1,), [3, 12]), task((1,), [8, 17]))["ids"] == pytest.approx((4 + 5) / (4 + 15))
    assert similarity(task((1,), [3, 12]), task((1,), [3, 12], seed=2))["ids"] == 0
    with pytest.raises(InputError, match="goal is null"):
        similarity({}, {})


def test_a_curriculum_names_its_stages():
    stages = curriculum("ctgraph/ct-su-b1", all_goals(), steps=100)
    assert [stage["name"] for stage in stages] == [f"ctgraph/ct-su-b1-goal-{goal}" for goal in (11, 12, 21, 22)]
    assert {stage["steps"] for stage in stages} == {100}
    twice = curriculum("ctgraph/ct-su-b1", [{"goal": [1, 1]}, {"goal": [1, 1]}], steps=[5, 6])
    assert len({stage["name"] for stage in twice}) == 2


def test_branchings_cannot_be_mixed():
    from lcd.envs.ctgraph.tasks import with_equal_spaces

    with pytest.raises(InputError, match=r"graph_shape\.b is 2 and 3"):
        with_equal_spaces([{"graph_shape": {"b": 2}}, {"graph_shape": {"b": 3}}])


@pytest.mark.parametrize("task", ["ctgraph/ct-fo-b2", "ctgraph/depth-5", "ctgraph/wait-0.9-ids-500"])
def test_the_optimal_policy_always_earns_r_max(task):
    env = CTGRAPH.make_vec(task, view="state", split="train", num_envs=16, seed=2)
    rng, returns = np.random.default_rng(0), []
    env.reset()
    while len(returns) < 50:
        _, rewards, terminations, _, _ = env.step(policy_actions(env, "optimal", rng))
        returns += rewards[terminations].tolist()
    assert set(returns) == {1.0}
