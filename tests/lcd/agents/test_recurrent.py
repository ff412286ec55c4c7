"""PPO with a memory: what it remembers, when it forgets, and that it learns what PPO without one cannot."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from lcd.agents import validate
from lcd.agents.evaluate import Evaluator
from lcd.agents.recurrent import RecurrentActorCritic, RecurrentPPO, RecurrentPPOConfig
from lcd.agents.rollout import Rollouts
from lcd.envs.ctgraph.benchmark import CTGRAPH
from lcd.envs.errors import InputError
from lcd.envs.population import make_population

TASK = "ctgraph/ct-su-b1"


def make(seeds=(0, 1), copies=4, rollout=16, split="train", **changes):
    env = make_population(CTGRAPH, TASK, seeds=seeds, copies=copies, view="state", split=split)
    config = RecurrentPPOConfig(copies=copies, rollout=rollout, minibatches=2, memory=8, width=8, **changes)
    agent = RecurrentPPO(config, env.single_observation_space.shape, 3, seeds, nn.Identity())
    return env, agent, Rollouts(env, list(seeds), agent, rollout, 3, 0.99, True)


def test_the_memory_is_a_gated_recurrent_unit():
    """Against PyTorch's own cell, whose blend has the same order of gates."""
    network = RecurrentActorCritic((5,), 3, "auto", width=6, memory=4)
    cell = nn.GRUCell(6, 4)
    with torch.no_grad():
        for ours, theirs in ((network.incoming, "ih"), (network.recurrent, "hh")):
            nn.init.normal_(ours.bias)
            getattr(cell, f"weight_{theirs}").copy_(ours.weight)
            getattr(cell, f"bias_{theirs}").copy_(ours.bias)
    seen, fresh = torch.randn(3, 7, 5), torch.rand(3, 7) < 0.3
    memory = start = torch.randn(3, 4)
    for t in range(7):
        memory = cell(network.encoder(seen[:, t]), torch.where(fresh[:, t, None], 0.0, memory))
    logits, values, found = network(seen, start, fresh)
    assert torch.allclose(found, memory, atol=1e-6)
    assert torch.allclose(logits[:, -1], network.policy(memory), atol=1e-6)
    assert torch.allclose(values[:, -1], network.value(memory)[:, 0], atol=1e-6)


@pytest.mark.parametrize("execution", ["vmap", "loop"])
def test_learning_sees_what_acting_saw(execution):
    """Walking through a whole rollout gives the log-probabilities and values of its single steps."""
    _, agent, rollouts = make(execution=execution)
    for _ in range(2):
        rollout = rollouts.collect()
        assert rollout["dones"].any()
        samples = agent.samples(dict(rollout))
        logits, values, memory = agent.networks(samples["inputs"], samples["memory"], samples["fresh"])
        log_probs = logits.log_softmax(-1).gather(-1, samples["actions"][..., None]).squeeze(-1)
        assert torch.allclose(log_probs, samples["log_probs"], atol=1e-5)
        assert torch.allclose(values, samples["values"], atol=1e-5)
        assert torch.allclose(memory, agent.recall()["memory"], atol=1e-5)


def test_what_was_seen_in_an_earlier_episode_does_not_matter():
    _, agent, _ = make(seeds=(0,), copies=2)
    agent.forget(2)
    first, then = torch.rand(2, 1, 2, 5)
    draws = torch.full((1, 2), 0.5)
    _, _, alone = agent.act(then, draws)
    agent.forget(2)
    agent.act(first, draws)
    agent.begin_episodes(np.array([[True, False]]))
    _, _, after = agent.act(then, draws)
    assert after[0, 0] == alone[0, 0]
    assert after[0, 1] != alone[0, 1]


def test_a_value_is_not_remembered():
    _, agent, rollouts = make()
    rollouts.collect()
    before = {name: value.clone() for name, value in agent.recall().items()}
    agent.value(torch.rand(2, 4, 5))
    assert all(torch.equal(before[name], value) for name, value in agent.recall().items())


def test_evaluation_leaves_the_memory_of_training_alone():
    _, agent, rollouts = make()
    rollouts.collect()
    before = {name: value.clone() for name, value in agent.recall().items()}
    held_out = make_population(CTGRAPH, TASK, seeds=[0, 1], copies=3, view="state", split="eval")
    evaluator = Evaluator(held_out, [0, 1], episodes=2)
    once = evaluator(agent, 5)
    assert all(torch.equal(before[name], value) for name, value in agent.recall().items())
    assert evaluator(agent, 5) == once


def test_a_rollout_goes_on_after_a_restart():
    _, _, rollouts = make()
    rollouts.collect()
    state = rollouts.state_dict()
    expected = rollouts.collect()
    _, _, others = make()
    others.load_state_dict(state)
    found = others.collect()
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_a_population_learns_what_each_of_its_seeds_learns_alone():
    weights = {}
    for seeds in ((0, 1), (0,), (1,)):
        _, agent, rollouts = make(seeds=seeds, execution="vmap")
        optimizer = agent.configure_optimizers()
        agent.optimizers = lambda optimizer=optimizer: optimizer
        agent.manual_backward = lambda loss: loss.backward()
        for index in range(2):
            rollout = rollouts.collect()
            rollouts.iteration += 1
            agent.training_step(rollout, index)
        weights[seeds] = list(agent.networks.weights)
    for place in (0, 1):
        for together, alone in zip(weights[0, 1], weights[place,], strict=True):
            assert torch.allclose(together[place], alone[0], atol=2e-5)


def test_a_wrong_hyper_parameter_is_one_sentence():
    assert validate("recurrent_ppo", {"memory": 16}).memory == 16
    for params, said in [({"memory": 0}, "at least 1"), ({"copies": 6, "minibatches": 4}, "divisor of copies")]:
        with pytest.raises(InputError, match=said):
            validate("recurrent_ppo", params)
