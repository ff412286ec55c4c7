"""Front-ends in policy learning: frozen, applied once, kept or made anew."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from torch import nn

from lcd.agents import agents, validate
from lcd.agents.frozen import GIB, FrozenFrontend, choose_what_to_keep, freeze
from lcd.agents.rollout import Rollouts
from lcd.envs.population import make_population

SPACE = Box(0, 255, (20, 20, 3), np.uint8)


class Edges(nn.Module):
    """A third party's: a convolution, batch norm and dropout, which would change in training mode."""

    channels, features, half_is_safe = 5, None, True

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layers = nn.Sequential(nn.Conv2d(3, 5, 3, stride=2), nn.BatchNorm2d(5), nn.Dropout(0.5), nn.Sigmoid())
        self.seen = 0

    def forward(self, observations):
        self.seen += len(observations)
        return self.layers(observations.permute(0, 3, 1, 2).float() / 255)


def images(number, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, (number, 20, 20, 3), dtype=np.uint8))


def test_it_neither_learns_nor_is_saved_nor_leaves_eval_mode():
    frozen = FrozenFrontend(Edges())
    whole = nn.ModuleList([frozen, nn.Linear(2, 2)])
    assert not [name for name in whole.state_dict() if name.startswith("0")]
    assert not list(frozen.parameters())
    whole.train()
    assert not frozen.frontend.training
    assert torch.equal(frozen(images(3)), frozen(images(3)))
    assert not frozen(images(3)).requires_grad
    whole.to(torch.float64)
    assert frozen.frontend.layers[0].weight.dtype == torch.float64


@pytest.mark.parametrize("precision", ["auto", "full"])
def test_what_is_kept_gives_the_features_back(precision):
    seen = images(12)
    features = FrozenFrontend(Edges(), precision)(seen)
    for keep in ("features", "observations"):
        frozen = FrozenFrontend(Edges(), precision, keep, batch=12)
        kept = frozen.kept(seen, frozen(seen))
        assert kept.dtype == {"features": torch.float16 if precision == "auto" else torch.float32}.get(
            keep, torch.uint8
        )
        assert torch.equal(frozen.features_of(kept.unflatten(0, (2, 6))), features.unflatten(0, (2, 6)))
        # Other batches, a part of one, and two leading axes more, as of an agent with a memory.
        again = frozen.features_of(kept[[7, 3, 3, 0, 1, 11, 5]].unflatten(0, (1, 1, 7)))
        torch.testing.assert_close(again, features[[7, 3, 3, 0, 1, 11, 5]][None, None], rtol=0, atol=1e-3)


def test_half_precision_is_for_front_ends_that_say_so_and_stays_finite():
    class Large(nn.Module):
        def forward(self, observations):
            return observations.flatten(1).float() * 1e6

    assert FrozenFrontend(Large())(images(1)).max() == 255e6
    assert FrozenFrontend(Large(), "half")(images(1)).max() == torch.finfo(torch.float16).max


@pytest.mark.parametrize(
    ("keep", "features", "memory_gb", "kept"),
    [
        ("auto", 1000, 1.0, "features"),  # smaller than the observations
        ("auto", 5000, 5000 * 4096 / GIB, "features"),  # fits exactly
        ("auto", 5000, 4999 * 4096 / GIB, "observations"),
        ("features", 5000, 0.0, "features"),
        ("observations", 1000, 1.0, "observations"),
    ],
)
def test_features_are_kept_where_they_fit(keep, features, memory_gb, kept):
    assert choose_what_to_keep(keep, features, 1200, 4096, memory_gb) == kept


def learn(agent_name, keep, rollouts=2, **params):
    """The networks of two seeds after some rollouts, the losses, and how many observations the front-end has seen."""
    config = validate(agent_name, {"copies": 4, "rollout": 6, "epochs": 3, "minibatches": 2, **params})
    frozen, shape = freeze(
        Edges(), SPACE, keep=keep, memory_gb=1.0, precision="auto", copies=8, steps=8 * config.rollout
    )
    env = make_population("toy", "toy/easy-sight-easy-reward", seeds=[0, 1], copies=4, view="pixels", split="train")
    agent = agents.resolve(agent_name)(config, shape, env.single_action_space.n, [0, 1], frozen)
    data = Rollouts(env, [0, 1], agent, config.rollout, rollouts, 0.9, normalise=True)
    optimizer = agent.configure_optimizers()
    agent.optimizers = lambda: optimizer
    agent.manual_backward = lambda loss: loss.backward()
    frozen.frontend.seen = 0
    for index, rollout in enumerate(data):
        agent.training_step(rollout, index)
    env.close()
    return torch.cat([weight.detach().flatten() for weight in agent.networks.weights]), frozen.frontend.seen


def test_each_observation_passes_once_unless_features_are_made_anew():
    # Two rollouts of 6 steps of 8 copies: 12 observations a copy, and the one after the last step.
    assert learn("ppo", "features")[1] == 8 * 13
    assert learn("ppo", "observations")[1] == 8 * (13 + 3 * 12)


@pytest.mark.parametrize("agent", ["ppo", "recurrent_ppo"])
def test_learning_is_the_same_whatever_is_kept(agent):
    kept, anew = learn(agent, "features")[0], learn(agent, "observations")[0]
    torch.testing.assert_close(kept, anew, rtol=0, atol=1e-4)
    other = learn(agent, "features", learning_rate=1e-2)[0]
    assert (kept - other).abs().max() > 1e-2
