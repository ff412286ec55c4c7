"""The recurrent unit against its equations, written out pixel by pixel."""

import numpy as np
import pytest
import torch

from lcd.frontends.flow.hgru import HGRU


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def convolve(maps, weights):
    """A convolution (cross-correlation, as networks have it) of one sample, zeros beyond the border, in loops."""
    outputs, _, side, _ = weights.shape
    reach, (_, height, width) = side // 2, maps.shape
    result = np.zeros((outputs, height, width))
    for o in range(outputs):
        for y in range(height):
            for x in range(width):
                for dy in range(-reach, reach + 1):
                    for dx in range(-reach, reach + 1):
                        if 0 <= y + dy < height and 0 <= x + dx < width:
                            result[o, y, x] += weights[o, :, dy + reach, dx + reach] @ maps[:, y + dy, x + dx]
    return result


def normalised(samples, norm):
    """Batch normalisation over samples and places, with the batch's own statistics."""
    stacked = np.stack(samples)
    for channel in range(stacked.shape[1]):
        values = stacked[:, channel]
        scaled = (values - values.mean()) / np.sqrt(values.var() + norm.eps)
        stacked[:, channel] = norm.weight[channel].item() * scaled + norm.bias[channel].item()
    return list(stacked)


def reference(unit, drive):
    """The equations of the unit's docstring."""
    weights = {name: getattr(unit, name).weight.detach().numpy() for name in ("u1", "u2", "w_inh", "w_exc")}
    parts = ("alpha", "gamma", "kappa", "omega", "mu", "b1", "b2")
    alpha, gamma, kappa, omega, mu, b1, b2 = (getattr(unit, name).detach().numpy()[0] for name in parts)
    states = [np.zeros_like(x) for x in drive]
    for norm in unit.norms:
        g1 = [sigmoid(v + b1) for v in normalised([convolve(h, weights["u1"]) for h in states], norm["u1"])]
        fed = [convolve(h * g, weights["w_inh"]) for h, g in zip(states, g1, strict=True)]
        c1 = normalised(fed, norm["inh"])
        s = [np.maximum(x - np.maximum(c * (alpha * h + mu), 0), 0) for x, c, h in zip(drive, c1, states, strict=True)]
        g2 = [sigmoid(v + b2) for v in normalised([convolve(v, weights["u2"]) for v in s], norm["u2"])]
        c2 = normalised([convolve(v, weights["w_exc"]) for v in s], norm["exc"])
        new = [np.maximum(kappa * v + gamma * c + omega * v * c, 0) for v, c in zip(s, c2, strict=True)]
        states = [(1 - g) * h + g * n for g, h, n in zip(g2, states, new, strict=True)]
    return np.stack(states)


def test_it_computes_its_equations():
    torch.manual_seed(0)
    unit = HGRU(channels=3, kernel=3, steps=4).double().train()
    with torch.no_grad():
        for parameter in unit.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    drive = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    np.testing.assert_allclose(unit(drive).detach().numpy(), reference(unit, drive.numpy()), atol=1e-9)


def test_chronos_initialisation_is_applied():
    unit = HGRU(channels=256, kernel=1, steps=8)
    spans = unit.b1.detach().exp()
    assert spans.min() >= 1
    assert spans.max() <= 7
    assert spans.mean().item() == pytest.approx(4, abs=0.5)
    torch.testing.assert_close(unit.b2, -unit.b1)


def test_published_initial_values():
    unit = HGRU(channels=4, kernel=5, steps=3)
    values = {name: getattr(unit, name).unique().item() for name in ("alpha", "gamma", "kappa", "omega", "mu")}
    assert values == pytest.approx({"alpha": 0.1, "gamma": 1.0, "kappa": 0.5, "omega": 0.5, "mu": 1.0})
    assert len(unit.norms) == 3
    assert all(norm.weight.unique().item() == pytest.approx(0.1) for step in unit.norms for norm in step.values())
    flat = unit.w_inh.weight.detach().flatten(1)
    torch.testing.assert_close(flat @ flat.T, torch.eye(4), atol=1e-5, rtol=0)


def test_it_reaches_beyond_its_kernel_with_time():
    """Each step carries a change further: that is what recurrence is for."""
    torch.manual_seed(1)
    drive = torch.rand(1, 4, 1, 21)
    other = drive.clone()
    other[..., 10] += 1
    reached = []
    for steps in (1, 2, 4):
        torch.manual_seed(2)
        unit = HGRU(channels=4, kernel=3, steps=steps).eval()
        changed = (unit(drive) - unit(other)).abs().amax((0, 1, 2)) > 0
        reached.append(int(changed.sum()))
    assert reached[0] == 3
    assert reached[0] < reached[1] < reached[2]


def test_half_precision_gives_nearly_the_same():
    unit = HGRU(channels=4, kernel=3, steps=3)
    drive = torch.randn(2, 4, 8, 8)
    whole = unit(drive)
    with torch.autocast("cpu", torch.bfloat16):
        half = unit(drive.bfloat16())
    half.sum().backward()
    assert (whole - half).abs().mean() < 0.05 * whole.abs().mean()
