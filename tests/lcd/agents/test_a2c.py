"""A2C: its gradient is that of the policy's log-probability times the advantage."""

import pytest
import torch
from torch import nn

from lcd.agents import validate
from lcd.agents.a2c import A2C
from lcd.agents.networks import Mlp
from lcd.agents.settings import A2CConfig
from lcd.envs.errors import InputError


def test_more_than_one_look_at_a_rollout_is_refused():
    for wrong in ({"epochs": 2}, {"minibatches": 2}, {"layers": 0}):
        with pytest.raises(InputError, match=f"agent.{next(iter(wrong))}="):
            validate("a2c", wrong)


def test_an_mlp_has_as_many_layers_as_asked():
    network, inputs = Mlp((5,), 4, "torch", 3), torch.randn(7, 5)
    expected, layers = inputs, [layer for layer in network.layers if hasattr(layer, "weight")]
    assert len(layers) == 3
    for layer in layers:
        expected = torch.tanh(expected @ layer.weight.T + layer.bias)
    assert torch.allclose(network(inputs), expected, atol=1e-6)


def test_its_gradient_is_the_advantage_times_that_of_the_log_probability():
    torch.manual_seed(0)
    agent = A2C(A2CConfig(copies=4, rollout=6, width=8, entropy=0.05, layers=3), (4,), 3, [0, 7], nn.Identity())
    inputs, actions = torch.randn(2, 24, 4), torch.randint(3, (2, 24))
    outputs, values = agent.networks(inputs)[:2]
    policy = torch.distributions.Categorical(logits=outputs)
    log_probs, gains, targets = policy.log_prob(actions), torch.randn(2, 24), torch.randn(2, 24)
    plain = -(log_probs * gains).mean(1) + 0.5 * 0.5 * (values - targets).square().mean(1)
    expected = torch.autograd.grad((plain - 0.05 * policy.entropy().mean(1)).sum(), list(agent.networks.weights))
    batch = {
        "inputs": inputs,
        "actions": actions,
        "advantages": gains,
        "targets": targets,
        "weights": torch.ones(2, 24),
    }
    batch |= {"log_probs": log_probs.detach(), "values": values.detach()}
    agent.loss(agent.prepare(batch))["total"].sum().backward()
    for weight, slope in zip(agent.networks.weights, expected, strict=True):
        assert torch.allclose(weight.grad, slope, atol=1e-6)
