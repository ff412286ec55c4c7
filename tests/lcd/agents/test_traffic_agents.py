"""Controllers of traffic signals as agents: what they are evaluated at, and what trying plans finds."""

from __future__ import annotations

import numpy as np
import pytest

from lcd.agents import agents, validate
from lcd.agents.evaluate import Evaluator
from lcd.envs.errors import InputError
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.traffic.signal_vector import IntersectionVectorEnv

KNOBS = {"horizon": 200, "inflow": 500.0, "length": 100.0}
STEPS = 40


def learner(name, seeds, copies):
    kind = agents.resolve(f"traffic/{name}")
    env = IntersectionVectorEnv(len(seeds) * copies, seed=seeds, **KNOBS)
    return kind(validate(f"traffic/{name}", {"copies": copies}), env, seeds)


@pytest.fixture(scope="module")
def held_out():
    env = IntersectionVectorEnv(4, split="eval", seed=[1, 2], **KNOBS)
    yield Evaluator(env, [1, 2], 1, greedy=True)
    env.close()


@pytest.fixture(scope="module")
def curves(held_out):
    """What each agent is told at step 0 and at the end: (2, seeds)."""
    found = {}
    for name, plans in (("fixed_time", 0), ("max_pressure", 0), ("tuned_fixed_time", 6)):
        agent, returns = learner(name, [1, 2], 2), {}
        steps = max(1, plans) * STEPS * 2
        agent.learn(steps, steps, lambda step, a=agent, r=returns: r.update({step: held_out(a, 0)}))
        assert sorted(returns) == [0, steps]
        found[name] = np.array([[columns["return_mean"] for columns in returns[step]] for step in sorted(returns)])
        agent.env.close()
    return found


def test_evaluations_tell_the_mean_waiting_of_their_episodes(held_out):
    agent, infos = learner("fixed_time", [1, 2], 2), []
    env, step = held_out.stepper.env, held_out.stepper.env.step
    env.step = lambda actions: [outcome := step(actions), infos.append(outcome[-1])][0]
    held_out.measured = "waiting"
    try:
        found = held_out(agent, 0)
    finally:
        env.step, held_out.measured = step, None
    ended = [info["waiting"] for info in infos if "waiting" in info]
    assert len(ended) == 1
    assert [row["waiting"] for row in found] == pytest.approx(ended[0].reshape(2, 2).mean(1))
    assert min(row["waiting"] for row in found) > 0
    agent.env.close()


def test_rules_are_the_same_from_the_first_step_to_the_last(curves):
    for name in ("fixed_time", "max_pressure"):
        assert np.array_equal(*curves[name])


def test_tuning_begins_with_the_untuned_plan_and_finds_a_better_one(curves):
    assert np.array_equal(curves["tuned_fixed_time"][0], curves["fixed_time"][0])
    assert (curves["tuned_fixed_time"][1] > curves["fixed_time"][1]).all()


def test_max_pressure_loses_less_than_the_untuned_plan(curves):
    assert (curves["max_pressure"] > curves["fixed_time"]).all()


def test_seeds_together_are_each_alone():
    plans = []
    for seeds in ([5, 9], [5], [9]):
        agent = learner("tuned_fixed_time", seeds, 1)
        agent.learn(4 * STEPS, 4 * STEPS, lambda step: None)
        plans.append(agent.state_dict()["plan"].numpy())
        agent.env.close()
    assert np.array_equal(plans[0], np.concatenate(plans[1:]))


def test_other_environments_are_refused():
    toy = HardnessDiscreteVectorEnv(2, seed=[1, 2])
    with pytest.raises(InputError, match="control the intersections of benchmark=traffic"):
        agents.resolve("traffic/max_pressure")(validate("traffic/max_pressure", {"copies": 1}), toy, [1, 2])
