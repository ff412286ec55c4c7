"""Tables learn what textbooks say, all seeds at once exactly as each alone."""

from __future__ import annotations

import numpy as np
import pytest

from lcd.agents import agents, validate
from lcd.agents.evaluate import Evaluator
from lcd.agents.learner import spaces_for
from lcd.envs.ctgraph.graph import CTGraphVectorEnv
from lcd.envs.errors import Diverged, InputError
from lcd.envs.hardness.continuous import HardnessContinuousVectorEnv
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv

NAMES = ("q_learning", "double_q_learning", "sarsa")


def learner(name, seeds, copies=1, knobs=None, **params):
    kind = agents.resolve(f"tabular/{name}")
    toy = HardnessDiscreteVectorEnv(len(seeds) * copies, seed=seeds, **(knobs or {}))
    config = validate(f"tabular/{name}", {"copies": copies, **params})
    return kind(config, spaces_for(kind, toy), seeds)


class Watched:
    """Remembers every step that an environment makes."""

    def __init__(self, env):
        self.env, self.steps = env, []

    def __getattr__(self, name):
        return getattr(self.env, name)

    def reset(self, **arguments):
        observations, infos = self.env.reset(**arguments)
        self.last = observations.copy()
        return observations, infos

    def step(self, actions):
        outcome = self.env.step(actions)
        observations, rewards, terminated, truncated, infos = outcome
        reached = observations.copy()
        ended = terminated | truncated
        if ended.any():
            reached[ended] = infos["final_obs"][ended]
        self.steps.append((self.last, actions.copy(), rewards, reached, terminated, truncated))
        self.last = observations.copy()
        return outcome


@pytest.mark.parametrize("name", NAMES)
def test_a_table_that_is_not_finite_is_its_own_seeds(name):
    agent = learner(name, [4, 6])
    agent.require_finite(9)
    agent.values[-1, -1, 0] = np.nan
    with pytest.raises(Diverged, match=r"^a learned number of seed 6 is not finite at step 9$"):
        agent.require_finite(9)


@pytest.mark.parametrize("name", ["q_learning", "sarsa"])
def test_tables_follow_the_textbook(name):
    agent = learner(name, [4], knobs={"transition_noise": 0.2, "horizon": 9}, learning_rate=0.3, gamma=0.9, epsilon=0.4)
    agent.env = Watched(agent.env)
    agent.learn(300, 1000, lambda step: None)
    table = np.zeros((8, 8))
    steps = agent.env.steps
    for number, (state, action, reward, reached, terminated, truncated) in enumerate(steps):
        s, a, after = state[0], action[0], reached[0]
        if terminated[0]:
            future = 0.0
        elif name == "q_learning" or truncated[0] or number + 1 == len(steps):
            future = table[after].max()
        else:
            future = table[after, steps[number + 1][1][0]]
        if number + 1 == len(steps) and name == "sarsa":
            break
        table[s, a] += 0.3 * (reward[0] + 0.9 * future - table[s, a])
        if number + 2 == len(steps) and name == "sarsa":
            kept = table.copy()
    if name == "q_learning":
        assert np.allclose(agent.values[0], table)
    else:
        changed = np.abs(agent.values[0] - kept) > 1e-12
        assert changed.sum() <= 1


@pytest.mark.parametrize("name", NAMES)
def test_seeds_together_are_seeds_alone(name):
    together = learner(name, [3, 5, 9])
    together.learn(400, 1000, lambda step: None)
    for group, seed in enumerate((3, 5, 9)):
        alone = learner(name, [seed])
        alone.learn(400, 1000, lambda step: None)
        assert np.array_equal(alone.values, together.values[:, 8 * group : 8 * group + 8])


@pytest.mark.parametrize("name", NAMES)
def test_they_solve_the_toy(name):
    agent = learner(name, [0, 1, 2, 3], epsilon=0.2, initial=1.0)
    stops = []
    agent.learn(12_000, 4000, stops.append)
    assert stops == [0, 4000, 8000, 12_000]
    held_out = spaces_for(type(agent), HardnessDiscreteVectorEnv(8, seed=[0, 1, 2, 3], split="eval"))
    returns = [row["return_mean"] for row in Evaluator(held_out, [0, 1, 2, 3], 2)(agent, 0)]
    # SARSA values its own exploring, so that one seed in four may rather stay away from what is worth most.
    assert np.median(returns) > 90


def test_overestimation_is_what_double_q_learning_avoids():
    """With pure noise for rewards the best of noisy estimates looks good; the double estimate does not."""
    knobs = {"reward_noise": 2.0, "reward_density": 0.0, "terminal_state_density": 0.0, "reward_scale": 1.0}
    best = {}
    for name in ("q_learning", "double_q_learning"):
        agent = learner(name, list(range(20)), knobs=knobs | {"reward_function": [[0.0] * 8] * 8}, epsilon=1.0)
        agent.learn(3000, 10_000, lambda step: None)
        best[name] = agent.values.mean(0).max(1).mean()
    assert best["double_q_learning"] < 0.5 * best["q_learning"]


def test_irrelevant_features_become_one_table():
    agent = learner("q_learning", [1], knobs={"irrelevant_features": True, "action_space_size": [8, 3]})
    assert agent.values.shape == (1, 8 * 3, 8 * 3)
    agent.learn(200, 1000, lambda step: None)
    assert (agent.values != 0).any()


def test_a_ct_graph_whose_states_are_all_seen_is_solved_by_a_table():
    kind, seeds = agents.resolve("tabular/q_learning"), [0, 1]
    knobs = {"graph_shape": {"d": 2, "p": 0.3}, "observations": {"MDP_D": True, "MDP_W": True}}
    graphs = CTGraphVectorEnv(8, view="state", seed=seeds, **knobs)
    numbered = spaces_for(kind, graphs)
    assert np.array_equal(numbered.reset()[0], graphs.observation_ids)
    settings = {"copies": 4, "epsilon": 0.3, "initial": 1.0, "learning_rate": 0.3}
    agent = kind(validate("tabular/q_learning", settings), numbered, seeds)
    agent.learn(8000, 8000, lambda step: None)
    held_out = spaces_for(kind, CTGraphVectorEnv(8, view="state", seed=seeds, split="eval", **knobs))
    assert [row["return_mean"] for row in Evaluator(held_out, seeds, 2)(agent, 0)] == [1.0, 1.0]
    with pytest.raises(InputError, match="tabular"):
        spaces_for(kind, CTGraphVectorEnv(2, view="pixels"))


def test_tables_need_numbered_states_and_actions():
    kind = agents.resolve("tabular/sarsa")
    with pytest.raises(InputError, match="tabular"):
        spaces_for(kind, HardnessContinuousVectorEnv(2))
    with pytest.raises(InputError, match="epsilon"):
        validate("tabular/sarsa", {"epsilon": 1.5})
