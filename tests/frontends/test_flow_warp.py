"""The warp and the losses of the flow front-end."""

import numpy as np
import pytest
import torch

from lcd.envs.errors import InputError
from lcd.frontends.flow.loss import LossConfig, flow_loss, roughness, ssim, visible
from lcd.frontends.flow.warp import inside, warp


def frames(count=2, height=9, width=12, seed=0, dtype=torch.float64):
    return torch.rand(count, 3, height, width, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def test_no_flow_changes_nothing():
    image = frames(dtype=torch.float32)
    torch.testing.assert_close(warp(image, torch.zeros(2, 2, 9, 12)), image, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("dx", "dy"), [(1, 0), (0, 1), (-2, 3), (4, -1)])
def test_whole_flows_are_exact_shifts(dx, dy):
    image = frames()
    flow = torch.tensor([dx, dy], dtype=torch.float64).view(1, 2, 1, 1).expand(2, 2, 9, 12)
    warped = warp(image, flow)
    rows, columns = np.arange(9) + dy, np.arange(12) + dx
    kept_rows, kept_columns = (rows >= 0) & (rows < 9), (columns >= 0) & (columns < 12)
    got = warped[:, :, kept_rows][..., kept_columns]
    expected = image[:, :, rows[kept_rows]][..., columns[kept_columns]]
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-12)
    assert inside(flow).sum() == 2 * kept_rows.sum() * kept_columns.sum()


def test_half_a_pixel_is_the_mean_of_two():
    image = frames()
    flow = torch.zeros(2, 2, 9, 12, dtype=torch.float64)
    flow[:, 0] = 0.5
    torch.testing.assert_close(warp(image, flow)[..., :-1], (image[..., :-1] + image[..., 1:]) / 2)


def test_gradient_of_the_flow_against_finite_differences():
    image = frames(1, 5, 6)
    # Off whole pixels, where the linear interpolation has a kink.
    flow = torch.rand(1, 2, 5, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64) * 0.8 + 0.1
    flow = flow.requires_grad_()
    warp(image, flow).square().sum().backward()
    step = 1e-6
    for place in [(0, 0, 0, 0), (0, 1, 2, 3), (0, 0, 4, 2), (0, 1, 1, 5)]:
        moved = [flow.detach().clone() for _ in range(2)]
        moved[0][place] += step
        moved[1][place] -= step
        up, down = (warp(image, other).square().sum() for other in moved)
        assert flow.grad[place].item() == pytest.approx(((up - down) / (2 * step)).item(), abs=1e-6)


def test_there_is_nothing_to_learn_from_beyond_the_border():
    """The trap that a zero start and a bound keep pretraining out of."""
    image = frames(1)
    flow = torch.full((1, 2, 9, 12), 50.0, dtype=torch.float64, requires_grad=True)
    warp(image, flow).square().sum().backward()
    assert not flow.grad.any()
    assert not inside(flow).any()
    still = torch.zeros(1, 2, 9, 12, dtype=torch.float64, requires_grad=True)
    warp(image, still).square().sum().backward()
    assert still.grad[..., 1:-1, 1:-1].count_nonzero() == still.grad[..., 1:-1, 1:-1].numel()


def test_the_default_loss_is_the_mean_squared_error():
    first, second = frames(seed=1), frames(seed=2)
    flow = torch.zeros(2, 2, 9, 12, dtype=torch.float64)
    loss, warped = flow_loss(LossConfig(), first, second, flow)
    torch.testing.assert_close(warped, first)
    assert loss.item() == pytest.approx(np.mean((first - second).numpy() ** 2))
    mixed, _ = flow_loss(LossConfig(mse=0, l1=0.15, ssim=0.85), first, second, flow)
    parts = [flow_loss(LossConfig(mse=0, **{part: 1.0}), first, second, flow)[0] for part in ("l1", "ssim")]
    assert mixed.item() == pytest.approx(0.15 * parts[0].item() + 0.85 * parts[1].item())


def test_structural_similarity_against_its_formula():
    a, b = frames(1, seed=1), frames(1, seed=2)
    got = ssim(a, b)[0, 1, 4, 5].item()
    x, y = a[0, 1, 3:6, 4:7].numpy(), b[0, 1, 3:6, 4:7].numpy()
    cov = ((x - x.mean()) * (y - y.mean())).mean()
    expected = (2 * x.mean() * y.mean() + 1e-4) * (2 * cov + 9e-4)
    expected /= (x.mean() ** 2 + y.mean() ** 2 + 1e-4) * (x.var() + y.var() + 9e-4)
    assert got == pytest.approx(expected)
    torch.testing.assert_close(ssim(a, a), torch.ones_like(a))


def test_what_a_moving_thing_uncovers_is_left_out():
    """A square of 3 pixels moves right by 2: what it leaves cannot be explained, all else can."""
    first = torch.zeros(1, 3, 9, 12, dtype=torch.float64)
    second = torch.zeros_like(first)
    first[..., 3:6, 3:6], second[..., 3:6, 5:8] = 1, 1
    flow = torch.zeros(1, 2, 9, 12, dtype=torch.float64)
    flow[:, 0, 3:6, 5:8] = -2
    seen = visible(flow)[0, 0]
    hidden = {tuple(place) for place in (~seen).nonzero().tolist()}
    assert hidden == {(row, column) for row in (3, 4, 5) for column in (3, 4)}
    assert flow_loss(LossConfig(), first, second, flow)[0] > 0
    assert flow_loss(LossConfig(occlusion=True), first, second, flow)[0] < 1e-20


def test_roughness_spares_edges_of_the_image():
    flow = torch.zeros(1, 2, 9, 12, dtype=torch.float64)
    flow[..., 6:] = 1
    plain = torch.zeros(1, 3, 9, 12, dtype=torch.float64)
    edge = plain.clone()
    edge[..., 6:] = 1
    assert roughness(flow, plain).item() == pytest.approx(1 / 11)
    assert roughness(flow, edge) < 1e-3 * roughness(flow, plain)


@pytest.mark.parametrize(
    ("settings", "told"),
    [({"ssim": -1}, "loss.ssim=-1"), ({"mse": 0}, "all 0"), ({"occlusion": 1}, "true or false"), ({"l1": True}, "l1")],
)
def test_impossible_losses_are_mistakes(settings, told):
    with pytest.raises(InputError, match=told):
        LossConfig(**settings)
