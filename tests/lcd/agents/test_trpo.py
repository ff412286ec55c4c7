"""Trust region policy optimisation: its linear algebra by hand, its steps, and that seeds are on their own."""

import numpy as np
import pytest
import torch
from fitting import fit
from known_tasks import Corridor
from torch import nn

from lcd.agents import validate
from lcd.agents.ppo import average
from lcd.agents.rollout import Rollouts
from lcd.agents.trpo import TRPO, conjugate_gradients
from lcd.envs.errors import InputError

SMALL = {"copies": 4, "rollout": 16, "minibatches": 2, "epochs": 4, "width": 16, "learning_rate": 3e-3}


def make(seeds, **settings):
    config = validate("trpo", SMALL | settings)
    agent = TRPO(config, (1,), 2, seeds, nn.Identity())
    rollouts = Rollouts(Corridor(4 * len(seeds)), seeds, agent, config.rollout, 30, config.gamma, normalise=True)
    return agent, rollouts


def test_conjugate_gradients_solve_each_seeds_own_equations():
    torch.manual_seed(0)
    roots = torch.randn(3, 6, 6, dtype=torch.float64)
    matrices = roots @ roots.mT + 0.5 * torch.eye(6, dtype=torch.float64)
    goal = torch.randn(3, 6, dtype=torch.float64)
    found = conjugate_gradients(lambda x: (matrices @ x[..., None]).squeeze(-1), goal, 8)
    assert torch.allclose(found, torch.linalg.solve(matrices, goal), rtol=1e-4)


def test_a_step_is_the_natural_gradient_within_the_trust_region(monkeypatch):
    """The direction is F⁻¹g, where F is the mean outer product of the score over actions and observations."""
    agent, rollouts = make([3], width=4, damping=0.1, conjugate_steps=30, max_divergence=1e-4)
    batch = agent.prepare(agent.assess(rollouts.collect()))
    steps = []
    monkeypatch.setattr(agent, "_search", lambda *given: steps.append(given[3]) or {})
    with agent.networks.only(slice(None)) as weights:
        theta = [x for name, x in zip(agent.networks.names, weights, strict=True) if name.startswith("actor.")]
        agent._improve(batch, theta)
        log_policy = agent.networks(batch["inputs"])[0].log_softmax(-1)[0]

        def row(value):
            return torch.cat([x.flatten() for x in torch.autograd.grad(value, theta, retain_graph=True)])

        scores = [p.exp().detach() * torch.outer(row(p), row(p)) for sample in log_policy for p in sample]
        fisher = torch.stack(scores).sum(0) / len(log_policy)
        log_probs = log_policy[torch.arange(len(log_policy)), batch["actions"][0]]
        gradient = row((log_probs * batch["advantages"][0]).mean())
    matrix = fisher + 0.1 * torch.eye(len(gradient))
    direction = torch.linalg.solve(matrix, gradient)
    expected = direction * (2e-4 / (direction @ matrix @ direction)).sqrt()
    assert torch.allclose(steps[0][0], expected, rtol=1e-3, atol=1e-6)


def test_steps_gain_something_and_stay_near():
    agent, rollouts = make([0, 1, 2])
    samples = agent.assess(rollouts.collect())
    batch = agent.prepare(dict(samples))
    before = agent.networks(batch["inputs"])[0].detach()
    moved = agent.improve(samples)
    after = agent.networks(batch["inputs"])[0].detach()
    apart = average(agent.policy.divergence(before, after), batch["weights"], batch["number"])
    assert torch.allclose(apart, moved["divergence"], atol=1e-6)
    assert (moved["gain"] > 0).all()
    assert ((apart > 1e-4) & (apart < 0.01)).all()


def test_it_learns():
    agent, rollouts = make([0, 1])
    fit(agent, rollouts)
    rollouts.episodes.pop()
    rollouts.collect()
    assert all(seed["return_mean"] > 2.8 for seed in rollouts.episodes.pop())


def test_a_seed_learns_what_it_learns_alone(monkeypatch):
    together, rollouts = make([5, 6, 5, 7])
    rollouts.total = 3
    fit(together, rollouts)
    monkeypatch.setattr("lcd.agents.ppo.SHARED_OUT", 1)
    shards, own = make([5, 6, 5, 7])
    own.total = 3
    fit(shards, own)
    for ours, theirs in zip(together.networks.weights, shards.networks.weights, strict=True):
        assert torch.allclose(ours, theirs, atol=2e-5)
    assert np.array_equal(rollouts.observations, own.observations)


@pytest.mark.parametrize("wrong", [{"max_divergence": 0.0}, {"shrink": 1.0}, {"minibatches": 3}, {"damping": -1.0}])
def test_a_wrong_setting_is_one_sentence(wrong):
    with pytest.raises(InputError, match=rf"agent.{next(iter(wrong))}="):
        validate("trpo", SMALL | wrong)
