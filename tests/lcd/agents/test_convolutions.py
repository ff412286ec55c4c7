"""Convolutions below many members' networks: against PyTorch's own, and that members are on their own."""

import numpy as np
import pytest
import torch
from torch import nn

from lcd.agents import agents, validate
from lcd.agents.convolutions import CONVOLUTIONS, Encoder
from lcd.envs.errors import InputError
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv

SETTINGS = {"copies": 1, "buffer": 60, "start": 20, "train_every": 4, "updates": 1, "batch": 8, "width": 16}
IMAGES = {"encoder": "cnn", "layers": 1, "activation": "relu"}


def trained(name, seeds, view="semantic", **settings):
    env = HardnessDiscreteVectorEnv(len(seeds), view=view, seed=seeds)
    agent = agents.resolve(name)(validate(name, SETTINGS | IMAGES | settings), env, seeds)
    agent.learn(40, 40, lambda step: None)
    return agent


def test_convolutions_are_pytorchs():
    encoder, images = Encoder((100, 100, 1)), torch.rand(2, 3, 100 * 100)
    layers = encoder.first_layers([5, 6])
    assert encoder.features == 32 * 13 * 13
    for member in range(2):
        parts: list[nn.Module] = []
        for place, (made, kernel, stride, padding) in enumerate(CONVOLUTIONS):
            part = nn.Conv2d(1 if place == 0 else CONVOLUTIONS[place - 1][0], made, kernel, stride, padding)
            part.weight.data, part.bias.data = layers[2 * place][member], layers[2 * place + 1][member, 0]
            parts += [part, nn.ReLU()]
        expected = nn.Sequential(*parts, nn.Flatten())(images[member].view(3, 1, 100, 100))
        assert torch.allclose(encoder(layers, images)[member], expected, atol=1e-5)


@pytest.mark.parametrize("name", ["dqn", "rainbow"])
def test_members_that_see_images_learn_among_many_what_they_learn_alone_to_the_last_bit(name):
    together, alone = trained(name, [4, 7, 4, 7]), trained(name, [4, 7])
    own, others = alone.network.numbers, together.network.numbers
    assert torch.equal(others, own.repeat(2, 1))
    before = agents.resolve(name)(alone.config, alone.env, alone.seeds).network.layers
    moved = [not torch.equal(was, now) for was, now in zip(before, alone.network.layers, strict=True)]
    assert all(moved[: 2 * len(CONVOLUTIONS)])


def test_what_is_no_image_or_too_small_is_refused():
    with pytest.raises(InputError, match="give mlp"):
        trained("dqn", [1], view="state")
    with pytest.raises(InputError, match="larger images"):
        Encoder((2, 2, 3))
    assert np.isfinite(trained("dqn", [1]).network.numbers.detach()).all()
