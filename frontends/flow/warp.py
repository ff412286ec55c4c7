"""The differentiable warp: frame t moved along a flow field, to be compared with frame t + 1."""

import torch
from torch.nn import functional


def warp(frames: torch.Tensor, flow: torch.Tensor, padding: str = "border") -> torch.Tensor:
    """Frames whose pixel (y, x) is what lies at (y + flow_y, x + flow_x) in the given ones, between pixels linearly.

    The flow points back: from where a thing is in the warped frame to where it comes from. Coordinates follow
    `align_corners=True`: pixel x of W is 2x / (W − 1) − 1, so that whole flows are whole shifts to the last bit but
    rounding. Beyond the frame's border the border goes on (`padding`), where the gradient is zero: see `inside`.

    Args:
        frames: (N, C, H, W), floating-point.
        flow: (N, 2, H, W), in pixels: x, then y.
        padding: `grid_sample`'s.
    """
    height, width = frames.shape[-2:]
    rows = torch.arange(height, dtype=flow.dtype, device=flow.device)
    columns = torch.arange(width, dtype=flow.dtype, device=flow.device)
    x = (flow[:, 0] + columns) * (2 / max(width - 1, 1)) - 1
    y = (flow[:, 1] + rows[:, None]) * (2 / max(height - 1, 1)) - 1
    grid = torch.stack([x, y], -1)
    return functional.grid_sample(frames, grid, mode="bilinear", padding_mode=padding, align_corners=True)


def inside(flow: torch.Tensor, margin: float = 0.0) -> torch.Tensor:
    """Where a flow points into the frame, (N, 1, H, W): elsewhere `warp` shows its border and passes no gradient.

    Args:
        flow: (N, 2, H, W), in pixels.
        margin: pixels around the frame that count as in it.
    """
    height, width = flow.shape[-2:]
    x = flow[:, 0] + torch.arange(width, dtype=flow.dtype, device=flow.device)
    y = flow[:, 1] + torch.arange(height, dtype=flow.dtype, device=flow.device)[:, None]
    within = (x >= -margin) & (x <= width - 1 + margin) & (y >= -margin) & (y <= height - 1 + margin)
    return within[:, None]
