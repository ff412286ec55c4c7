"""Tasks whose optimum is known are solved, whatever the shape of a rollout."""

import numpy as np
import pytest
import torch
from fitting import fit
from known_tasks import Bandit, Chain, Grid
from scipy.stats import mannwhitneyu
from torch import nn

from lcd.agents.evaluate import Evaluator
from lcd.agents.ppg import PPG
from lcd.agents.ppo import PPO
from lcd.agents.rollout import Rollouts
from lcd.agents.settings import VARIANTS

COMMON = {"learning_rate": 5e-3, "width": 16, "gamma": 0.95, "entropy": 0.003, "epochs": 4}
PHASES = {"value_epochs": 4, "phase": 4, "auxiliary_epochs": 2, "auxiliary_rollouts": 8}


def make_agent(kind, task, seeds, **changes):
    config = {**COMMON, **(PHASES if kind is PPG else {}), **changes}
    return kind(kind.Config(**config), (task.size,), task.actions, seeds, nn.Identity())


def train(agent, task, seeds, steps):
    """Train each seed for so many steps; returns the held-out mean return of each."""
    config = agent.config
    total = steps // (config.copies * config.rollout)
    env = task(config.copies * len(seeds), seed=1)
    rollouts = Rollouts(env, seeds, agent, config.rollout, total, config.gamma, True)
    evaluator = Evaluator(task(32 * len(seeds), seed=2), seeds, episodes=4)
    fit(agent, rollouts)
    return np.array([row["return_mean"] for row in evaluator(agent, rollouts.step)])


@pytest.mark.parametrize(("task", "steps"), [(Bandit, 4096), (Chain, 8192), (Grid, 32768)])
@pytest.mark.parametrize("kind", [PPO, PPG])
def test_the_optimum_is_reached(kind, task, steps):
    seeds = [0, 1, 2, 3]
    agent = make_agent(kind, task, seeds, copies=16, rollout=16)
    returns = train(agent, task, seeds, steps)
    # 128 episodes of the bandit have a standard error of .035; the others pay what the policy is worth.
    margin = 0.12 if task is Bandit else 0.05
    assert (returns > task(1).best - margin).all(), returns
    if task is Chain:
        with torch.no_grad():
            assert (agent.networks(torch.eye(task.size).expand(len(seeds), -1, -1))[0][:, :5].argmax(-1) == 1).all()


def test_greedy_evaluation_is_exact_where_the_task_is_deterministic():
    agent = make_agent(PPO, Chain, [0, 1], copies=16, rollout=16)
    sampled, greedy = (Evaluator(Chain(8, seed=2), [0, 1], episodes=4, greedy=each) for each in (False, True))
    seen, act = [], agent.act
    agent.act = lambda features, draws: (seen.append(draws is None), act(features, draws))[1]
    for evaluator, expected in ((sampled, {False}), (greedy, {True})):
        evaluator(agent, 0)
        assert set(seen) == expected
        seen.clear()
    config = agent.config
    env = Chain(config.copies * 2, seed=1)
    fit(agent, Rollouts(env, [0, 1], agent, config.rollout, 8192 // (16 * 16), config.gamma, True))
    assert [row["return_mean"] for row in greedy(agent, 1)] == pytest.approx([Chain.best] * 2)


@pytest.mark.parametrize("variant", VARIANTS[1:])
def test_every_variant_reaches_the_optimum(variant):
    returns = train(make_agent(PPG, Chain, [0, 1], copies=16, rollout=16, variant=variant), Chain, [0, 1], 8192)
    assert (returns > Chain.best - 0.05).all(), returns


@pytest.mark.parametrize(
    ("task", "steps", "shapes"),
    [
        (Bandit, 1024, [(8, 32), (32, 8), (8, 16)]),
        # The rollouts are longer than an optimal episode, so that neither is cut much more than the other.
        (Chain, 4096, [(8, 64), (32, 16), (8, 32)]),
    ],
)
@pytest.mark.parametrize("kind", [PPO, PPG])
def test_more_copies_and_shorter_rollouts_learn_equally(kind, task, steps, shapes):
    """In the middle of learning, where another batch size, the last shape, makes a difference that the test sees."""
    seeds = list(range(48))
    same, other, smaller = (
        train(make_agent(kind, task, seeds, copies=copies, rollout=rollout, learning_rate=2e-3), task, seeds, steps)
        for copies, rollout in shapes
    )
    assert same.mean() < task.best - 0.02
    assert mannwhitneyu(same, other).pvalue > 0.01
    assert mannwhitneyu(same, smaller).pvalue < 1e-4
