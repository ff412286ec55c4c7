"""Learning to warp: what it does to the loss. `tests/benchmarks/bench_flow.py` asks the longer question, of seeing."""

import numpy as np
import torch

from lcd.envs.shape_videos import moving_shapes
from lcd.frontends.flow.config import FlowConfig
from lcd.frontends.flow.loss import LossConfig
from lcd.pipelines.jobs.pretraining_modules import FlowPretraining

SIZES = {"width": 4, "stem": 1, "pyramid": 8, "hgru_kernel": 3, "hgru_steps": 2, "motion": 8, "decoder": 16}


def module(seed=0):
    return FlowPretraining(FlowConfig(**SIZES, bound=3.0), LossConfig(), 5e-3, [0.5] * 3, [0.25] * 3, seed)


def test_motion_is_learned():
    """A few pairs of frames by heart: their loss falls well below that of leaving frames as they are."""
    videos = moving_shapes(6, 2, np.random.default_rng(0), side=24, radius=(5, 7), speed=1)
    pairs = torch.from_numpy(videos.frames.swapaxes(0, 1).copy())
    learner = module()
    optimiser = learner.configure_optimizers()
    losses = []
    for index in range(80):
        optimiser.zero_grad()
        loss = learner.training_step(pairs, index)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    static = ((pairs[0].float() - pairs[1].float()) / 255).square().mean().item()
    np.testing.assert_allclose(losses[0], static, rtol=1e-4)
    assert np.mean(losses[-5:]) < 0.7 * static
    np.testing.assert_allclose(learner.training_loss(), np.mean(losses), rtol=1e-5)
    assert learner.training_loss() is None


def test_a_measurement_leaves_no_trace():
    videos = moving_shapes(4, 2, np.random.default_rng(0), side=16, radius=(3, 4))
    pairs = torch.from_numpy(videos.frames.swapaxes(0, 1).copy())
    learner = module().eval()
    before = {name: value.clone() for name, value in learner.state_dict().items()}
    found = learner.measure(pairs)
    assert found["loss"] == found["static_loss"]
    assert found["speed"] == found["outside"] == 0
    assert found["pairs"] == 4
    assert all(torch.equal(value, learner.state_dict()[name]) for name, value in before.items())


def test_weights_follow_from_the_seed():
    one, same, other = module(1), module(1), module(2)
    assert torch.equal(one.model.objects.hgru.u1.weight, same.model.objects.hgru.u1.weight)
    assert not torch.equal(one.model.objects.hgru.u1.weight, other.model.objects.hgru.u1.weight)
