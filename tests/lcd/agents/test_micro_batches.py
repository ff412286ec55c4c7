"""Gradients added up over micro-batches are the whole minibatch's; reduced precision keeps them and their norms."""

import pytest
import torch
from fitting import fit
from gymnasium.vector import AutoresetMode
from known_tasks import Corridor
from lightning.pytorch.plugins.precision import MixedPrecision
from torch import nn

from lcd.agents import agents, validate
from lcd.agents.ppo import PPO, PPOConfig
from lcd.agents.recurrent import RecurrentPPO, RecurrentPPOConfig
from lcd.agents.rollout import Rollouts
from lcd.envs.errors import InputError

HOW = {"copies": 4, "rollout": 16, "minibatches": 2, "epochs": 1, "max_grad_norm": 0.0}


def learned(kind, config, plugins=(), seeds=(0, 1), **named):
    """The parameters after two iterations in an environment whose resets weigh nothing, and the last losses."""
    agent = kind(config, (1,), 2, list(seeds), nn.Identity())
    env = Corridor(4 * len(seeds), mode=AutoresetMode.NEXT_STEP)
    rollouts = Rollouts(env, list(seeds), agent, config.rollout, 2, config.gamma, normalise=True)
    fit(agent, rollouts, plugins=list(plugins), **named)
    return torch.cat([weight.detach().flatten() for weight in agent.networks.weights]), agent.losses


@pytest.mark.parametrize("size", [1, 7, 16, 31])
@pytest.mark.parametrize("normalised", ["minibatch", "rollout"])
def test_micro_batches_add_up_to_the_minibatch(size, normalised):
    """Also where they differ in size and in how many of their steps weigh nothing."""
    whole, losses = learned(PPO, PPOConfig(**HOW, normalise_advantages=normalised, micro_batch=1000))
    parts, of_parts = learned(PPO, PPOConfig(**HOW, normalise_advantages=normalised, micro_batch=size))
    assert torch.allclose(whole, parts, atol=1e-5)
    for name, loss in losses.items():
        assert torch.allclose(loss, of_parts[name], atol=1e-5), name


@pytest.mark.parametrize("room", [0, 10_000, 30_000, 1 << 40])
def test_a_gpu_learns_from_as_many_at_once_as_it_has_room_for(room, monkeypatch):
    """Whatever the room, the minibatch is the same to the rounding of sums; where there is plenty, to the last bit."""
    whole, losses = learned(PPO, PPOConfig(**HOW, micro_batch=1000))
    monkeypatch.setattr("lcd.agents.ppo.room_on", lambda device: room)
    parts, of_parts = learned(PPO, PPOConfig(**HOW))
    assert torch.equal(whole, parts) == (room == 1 << 40)
    assert torch.allclose(whole, parts, atol=1e-5)
    for name, loss in losses.items():
        assert torch.allclose(loss, of_parts[name], atol=1e-5), name


def test_a_footprint_is_what_layers_compute_and_keep():
    """Of a small CNN by hand: two convolutions, a hidden layer and two heads on images of 3 x 12 x 12."""
    made = PPO(PPOConfig(width=8), (3, 12, 12), 4, [0, 1], nn.Identity()).footprint
    places, channels, taps = (4 * 4, 2 * 2), (16, 32), (3 * 25, 16 * 9)
    products = sum(n * c * t for n, c, t in zip(places, channels, taps, strict=True)) + 128 * 8 + 8 * 5
    assert made.forward == 2 * products
    # Backward is as much for the weights, and as much for what goes in but for the pixels.
    assert made.training == 2 * (3 * products - 16 * 16 * 75)
    # Each layer keeps what it is given, and each ReLU what it gives.
    assert made.activations == 4 * (3 * 12 * 12 + 16 * 16 + 4 * 32 + 8)
    assert made.weights == 75 * 16 + 16 + 144 * 32 + 32 + 128 * 8 + 8 + 8 * 5 + 5
    assert made.fitting(made.held(2) + 1000 * 2 * made.activations, seeds=2) == 750
    assert made.fitting(made.held(2) + 1000 * 2 * made.activations, seeds=2, half=True) == 1500
    assert made.fitting(0, seeds=2) == 1


@pytest.mark.parametrize(("agent", "megabytes"), [("ppo", 1.22), ("ppg", 2.44)])
def test_impala_keeps_what_was_measured_of_it(agent, megabytes):
    """On 3 x 64 x 64, by hooks on its layers; PPG has two networks."""
    config = validate(agent, {"encoder": "impala", "width": 256})
    made = agents.resolve(agent)(config, (3, 64, 64), 15, [0], nn.Identity()).footprint
    assert round(made.activations / 1e6, 2) == megabytes
    # Half of the paper's three seeds with minibatches of 8,192 fit into its card of 24 GB, and none has to be given.
    assert (made.fitting(24 * 10**9, seeds=3) >= 4096) == (agent == "ppo")


def test_a_memory_has_a_footprint_too():
    small, large = (
        RecurrentPPO(RecurrentPPOConfig(**HOW, memory=units, width=8), (1,), 2, [0], nn.Identity()).footprint
        for units in (8, 16)
    )
    # Two products with three gates each: of the encoder's width and of the memory; the heads; the encoder.
    assert small.forward == 2 * (3 * 8 * 8 + 3 * 8 * 8 + 8 * 3 + 1 * 8 + 8 * 8)
    assert large.forward == 2 * (3 * 16 * 8 + 3 * 16 * 16 + 16 * 3 + 1 * 8 + 8 * 8)
    assert large.activations > small.activations


def test_micro_batches_of_a_memory_are_whole_rollouts():
    whole, _ = learned(RecurrentPPO, RecurrentPPOConfig(**HOW))
    parts, _ = learned(RecurrentPPO, RecurrentPPOConfig(**HOW, micro_batch=5))
    assert torch.allclose(whole, parts, atol=1e-5)


def test_norms_in_half_precision_are_of_unscaled_gradients():
    """Lightning scales fp16's losses by 65,536: what each seed's gradient is clipped to must not know of it."""
    config = PPOConfig(**{**HOW, "max_grad_norm": 0.05}, micro_batch=8)
    _, exact = learned(PPO, config)
    scaler = torch.amp.GradScaler("cpu")
    half, close = learned(PPO, config, [MixedPrecision("16-mixed", "cpu", scaler)])
    assert scaler.get_scale() == 65_536
    assert torch.isfinite(half).all()
    assert torch.allclose(exact["grad_norm"], close["grad_norm"], rtol=0.05)


def test_fp16_on_a_cpu_is_refused_in_one_sentence():
    """Lightning would train in bf16 instead and only warn."""
    with pytest.raises(InputError, match="needs a GPU"):
        learned(PPO, PPOConfig(**HOW, precision="16-mixed"))


def test_the_best_micro_batch_is_chosen_for_the_cache():
    def chosen(**named):
        return PPO(PPOConfig(**named), (3, 16, 16), 2, [0], nn.Identity()).micro_batch

    assert chosen() == 0
    assert chosen(encoder="impala") == 256
    assert chosen(encoder="impala", micro_batch=5) == 5
