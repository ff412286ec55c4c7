"""Gaussian policies against torch's own distributions, and PPO on a point mass."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces

from lcd.agents.distributions import Categorical, Gaussian
from lcd.agents.ppo import PPO, PPOConfig
from lcd.agents.rollout import Rollouts, uniforms
from lcd.envs.hardness.continuous import HardnessContinuousVectorEnv
from lcd.frontends import make

BOX = spaces.Box(np.array([-1, 0], np.float32), np.array([1, 4], np.float32))


def outputs(shape):
    return torch.randn(*shape, 2), torch.randn(2).expand(*shape, 2) * 0.3


def test_log_probabilities_and_entropies():
    mean, log_deviation = outputs((3, 50))
    actions = torch.randn(3, 50, 2)
    log_probs, entropies = Gaussian(BOX).evaluate(torch.cat([mean, log_deviation], -1), actions)
    oracle = torch.distributions.Normal(mean, log_deviation.exp())
    assert torch.allclose(log_probs, oracle.log_prob(actions).sum(-1), atol=1e-5)
    assert torch.allclose(entropies, oracle.entropy().sum(-1), atol=1e-5)


def test_without_draws_the_most_probable_actions_are_taken():
    mean, log_deviation = outputs((3, 50))
    assert torch.equal(Gaussian(BOX).sample(torch.cat([mean, log_deviation], -1), None)[0], mean)
    logits = torch.randn(3, 50, 5)
    actions, log_probs = Categorical(5).sample(logits, None)
    oracle = torch.distributions.Categorical(logits=logits)
    assert torch.equal(actions, oracle.probs.argmax(-1))
    assert torch.allclose(log_probs, oracle.log_prob(actions))


def test_samples_have_the_distribution():
    draws = uniforms([3], "exploration", 0, shape=(50_000, 2))
    mean, log_deviation = torch.tensor([0.5, -1.0]), torch.tensor([-0.7, 0.2])
    policy = Gaussian(BOX)
    both = torch.cat([mean, log_deviation]).expand(1, 50_000, 4)
    actions, log_probs = policy.sample(both, draws)
    assert torch.allclose(actions.mean((0, 1)), mean, atol=0.02)
    assert torch.allclose(actions.std((0, 1)), log_deviation.exp(), atol=0.02)
    assert torch.allclose(log_probs, policy.evaluate(both, actions)[0])


def test_commands_lie_in_the_box():
    told = Gaussian(BOX).commands(torch.tensor([[[0.0, 0.0], [-3.0, 0.5]]]))
    assert told.dtype == np.float32
    assert told.tolist() == [[0.0, 2.0], [-1.0, 3.0]]


def test_discrete_policies_against_torch():
    logits, actions = torch.randn(2, 9, 5), torch.randint(5, (2, 9))
    log_probs, entropies = Categorical(5).evaluate(logits, actions)
    oracle = torch.distributions.Categorical(logits=logits)
    assert torch.allclose(log_probs, oracle.log_prob(actions), atol=1e-6)
    assert torch.allclose(entropies, oracle.entropy(), atol=1e-6)


@pytest.mark.parametrize("seeds", [[0], [0, 1, 2]])
def test_a_rollout_in_a_continuous_space(seeds):
    env = HardnessContinuousVectorEnv(4 * len(seeds), seed=seeds)
    agent = PPO(PPOConfig(copies=4, rollout=8, minibatches=2), (2,), env.single_action_space, seeds, make("identity"))
    rollout = Rollouts(env, seeds, agent, 8, 1, 0.99, True).collect()
    assert rollout["actions"].shape == (len(seeds), 8, 4, 2)
    batch = {name: value.flatten(1, 2) for name, value in rollout.items() if name != "last_value"}
    batch |= {"advantages": torch.randn(len(seeds), 32), "targets": torch.zeros(len(seeds), 32)}
    losses = agent.loss(agent.prepare(batch))
    losses["total"].sum().backward()
    # Nothing has been learned yet, so that old and new probabilities are the same: the ratio is 1.
    gains = (batch["advantages"] - batch["advantages"].mean(1, keepdim=True)) / batch["advantages"].std(1, keepdim=True)
    assert torch.allclose(losses["policy"], -gains.mean(1), atol=1e-4)
