"""How far a warped frame t is from frame t + 1: the paper's mean squared error, and what related work adds to it."""

from __future__ import annotations

import torch
from torch.nn import functional

from lcd.frontends.flow.config import LossConfig
from lcd.frontends.flow.warp import inside, warp

SSIM_WINDOW = 3
HALF_A_PIXEL = 0.5
SSIM_C1, SSIM_C2 = 0.01**2, 0.03**2


def flow_loss(
    config: LossConfig, first: torch.Tensor, second: torch.Tensor, flow: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of a flow field, and the warped frames.

    Args:
        config: the weights of the loss's parts.
        first: frames t in 0–1, (N, 3, H, W).
        second: frames t + 1, likewise.
        flow: (N, 2, H, W), in pixels.
    """
    warped = warp(first, flow)
    error = torch.zeros_like(warped)
    if config.mse:
        error = error + config.mse * (warped - second).square()
    if config.l1:
        error = error + config.l1 * (warped - second).abs()
    if config.ssim:
        error = error + config.ssim * (1 - ssim(warped, second)) / 2
    if config.occlusion:
        seen = visible(flow).to(error.dtype)
        loss = (error * seen).sum() / (seen.sum() * error.shape[1]).clamp(min=1)
    else:
        loss = error.mean()
    if config.smoothness:
        loss = loss + config.smoothness * roughness(flow, second)
    return loss, warped


def ssim(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Structural similarity of images in 0–1 at every pixel, over windows that are reflected at the border."""

    def mean(images: torch.Tensor) -> torch.Tensor:
        reach = SSIM_WINDOW // 2
        return functional.avg_pool2d(functional.pad(images, [reach] * 4, mode="reflect"), SSIM_WINDOW, stride=1)

    mean_a, mean_b = mean(a), mean(b)
    spread = mean(a * a) - mean_a**2 + mean(b * b) - mean_b**2
    shared = mean(a * b) - mean_a * mean_b
    numerator = (2 * mean_a * mean_b + SSIM_C1) * (2 * shared + SSIM_C2)
    return numerator / ((mean_a**2 + mean_b**2 + SSIM_C1) * (spread + SSIM_C2))


def roughness(flow: torch.Tensor, image: torch.Tensor, edge: float = 10.0) -> torch.Tensor:
    """Mean absolute difference of neighbouring flows, weighted by exp(−edge · difference of the image there)."""
    total = flow.new_zeros(())
    for axis in (-1, -2):
        steps = flow.diff(dim=axis).abs().mean(1)
        total = total + (steps * torch.exp(-edge * image.diff(dim=axis).abs().mean(1))).mean()
    return total


@torch.no_grad()
def visible(flow: torch.Tensor) -> torch.Tensor:
    """Pixels of frame t + 1 that frame t can explain, bool (N, 1, H, W).

    Of two pixels whose flows point to one source only one can show it: the faster one, because what moves is taken to
    be in front; the other was uncovered. A pixel is also left out if its flow leaves the frame.
    """
    count, _, height, width = flow.shape
    rows = torch.arange(height, device=flow.device)[:, None].expand(height, width)
    columns = torch.arange(width, device=flow.device).expand(height, width)
    x = (flow[:, 0] + columns).round().long().clamp(0, width - 1)
    y = (flow[:, 1] + rows).round().long().clamp(0, height - 1)
    source = (y * width + x).flatten(1)
    speed = flow.norm(dim=1).flatten(1)
    fastest = torch.zeros(count, height * width, dtype=flow.dtype, device=flow.device)
    fastest.scatter_reduce_(1, source, speed, "amax")
    behind = fastest.gather(1, source) - speed > HALF_A_PIXEL
    return inside(flow) & ~behind.view(count, 1, height, width)
