"""The discrete toy and the CT-graph as tabular MDPs: step for step what their environments do."""

import numpy as np
import pytest

from lcd.envs.benchmarks import get_benchmark
from lcd.envs.ctgraph.graph import CTGraphVectorEnv
from lcd.envs.errors import InputError
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.hardness.mdp import HardnessKnobs, build_mdp
from lcd.envs.hardness.solve import expected_return
from lcd.envs.hardness.tabular import as_tabular
from lcd.envs.tabular.vector import TabularVectorEnv

COPIES, STEPS = 64, 60


def same_steps(one, other, actions: int) -> None:
    """Both give equal rewards and ends for the same random actions."""
    rng = np.random.default_rng(0)
    one.reset(), other.reset()
    paid = 0
    for _ in range(STEPS):
        chosen = rng.integers(actions, size=COPIES)
        _, rewards, terminated, truncated, _ = one.step(chosen)
        _, others, over, late, _ = other.step(chosen)
        assert np.allclose(rewards, others, atol=1e-6)
        # A step that the horizon ends anyway may end the episode in the tables.
        assert np.array_equal(terminated | truncated, over | late)
        paid += (rewards != 0).sum()
    assert paid


BEGIN_IN_0 = {"init_state_dist": [1, 0, 0, 0, 0], "state_space_size": 5, "action_space_size": 3, "horizon": 12}


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"delay": 3},
        {"sequence_length": 3, "reward_density": 0.5, "terminal_states": [4]},
        {"sequence_length": 2, "reward_every_n_steps": 3, "reward_density": 0.5},
        {"sequence_length": 2, "make_denser": True, "delay": 1, "reward_density": 0.5, "terminal_states": [3]},
        {"reward_scale": 2.0, "reward_shift": -0.5, "term_state_reward": -3.0, "reward_dist": [0.5, 2]},
        {"reward_function": lambda states, actions: float(states[0] == states[-1]) + actions[0], "sequence_length": 2},
    ],
)
def test_the_toy_does_the_same_as_a_table(knobs):
    knobs = {**BEGIN_IN_0, "terminal_states": [1], "reward_density": 0.6, **knobs}
    mdp = build_mdp(HardnessKnobs.from_dict(knobs), 1)
    tabular = as_tabular(mdp, "toy")
    same_steps(HardnessDiscreteVectorEnv(COPIES, seed=1, **knobs), TabularVectorEnv(COPIES, tabular), 3)


def test_the_graph_does_the_same_as_a_table():
    knobs = {
        "graph_shape": {"b": 3, "d": 2},
        "reward": {"fail_r": -0.5, "step_r": 0.1, "reward_distribution": "gradient"},
    }
    graph = get_benchmark("ctgraph")
    tabular = graph.tabular("ctgraph/ct-fo-b1", 4, **knobs)
    goal = graph.graph("ctgraph/ct-fo-b1", 4, **knobs)[1].tolist()
    env = CTGraphVectorEnv(COPIES, view="state", seed=4, goal=goal, **knobs)
    same_steps(env, TabularVectorEnv(COPIES, tabular), 4)


@pytest.mark.parametrize(
    ("task", "knobs", "sentence"),
    [
        ("toy/easy-sight-easy-reward", {"start": 0}, "transition_noise is 0.3, but a tabular MDP is deterministic"),
        ("toy/easy-sight-easy-reward", {"transition_noise": 0}, "start is missing"),
        ("toy/easy-sight-easy-reward", {"transition_noise": 0, "start": 6}, "start is 6"),
        ("toy/easy-sight-easy-reward", {"transition_noise": 0, "reward_noise": 0.5}, "reward_noise is 0.5"),
        ("hardness/discrete", {"irrelevant_features": True}, "irrelevant_features is true"),
        ("hardness/continuous", {}, "has no tabular MDP"),
        ("ctgraph/ct-fo-b2", {}, "graph_shape.p is 0.5"),
        ("ctgraph/ct-fo-b1", {"reward": {"std_r": 0.1}}, "reward.std_r is 0.1"),
        (
            "ctgraph/ct-fo-b1",
            {"reward": {"min_static_reward_episodes": 2, "max_static_reward_episodes": 4}},
            "a tabular MDP has one goal",
        ),
    ],
)
def test_what_is_left_to_chance_is_refused(task, knobs, sentence):
    with pytest.raises(InputError) as told:
        get_benchmark(task.partition("/")[0]).tabular(task, 0, **knobs)
    assert sentence in str(told.value)
    assert "\n" not in str(told.value)


def test_a_calibration_task_exports_the_toy_that_it_plays():
    calibration = get_benchmark("calibration")
    task = calibration.tasks[0]
    one = {"transition_noise": 0, "init_state_dist": [1, 0, 0, 0, 0, 0]}
    tabular = calibration.tabular(task, 5, **one)
    returns = []
    for start in range(6):
        mdp = calibration.tabular(task, 5, transition_noise=0, start=start)
        returns.append(longest(mdp))
    assert longest(tabular) == returns[0]
    knobs = HardnessKnobs.from_dict({**calibration.knobs(task), "transition_noise": 0})
    mean = expected_return(build_mdp(knobs, calibration.toy_seed(task, 5)))
    assert np.mean(returns) == pytest.approx(mean)


def longest(mdp) -> float:
    """The best return, by a plain backward induction."""
    values = np.zeros(mdp.num_states + 1)
    for _ in range(mdp.horizon):
        values[:-1] = (mdp.rewards + values[mdp.transitions]).max(axis=1)
        values[-1] = 0.0
    return float(values[0])
