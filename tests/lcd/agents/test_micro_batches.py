"""Gradients added up over micro-batches are the whole minibatch's; reduced precision keeps them and their norms."""

import pytest
import torch
from fitting import fit
from gymnasium.vector import AutoresetMode
from known_tasks import Corridor
from lightning.pytorch.plugins.precision import MixedPrecision
from torch import nn

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
