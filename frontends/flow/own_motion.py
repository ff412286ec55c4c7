"""What moves by itself, found in three frames without learning: the teacher of the encoder of groups.

Everything is counted in whole pixels: a displacement is (rows, columns) from a pixel of one frame to the same thing in
another. The scene's own shift (a camera that goes along) is taken out first; what it does not explain, in the frame
before and in the frame after, moves by itself.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

REACH = 6
"""Farthest displacement that is looked for, in pixels along each axis."""
DISPLACEMENTS = tuple(product(range(-REACH, REACH + 1), repeat=2))
"""All of them, (rows, columns): here and not on a device, from which they would have to be fetched for every batch."""
TOLD_APART = 0.003
"""Mean squared difference of colours in 0–1 from which on a pixel is not what it is compared with."""
OCCLUDED = 0.01
"""Mean squared difference of 3×3 patches from which on no match is believed."""
NEITHER = 0.02
"""Differences beyond this count alike when the scene's shift is sought: things that move must not decide it."""
TIE = 1e-6, 2e-5
"""What a pixel of displacement costs, in the scene's shift and in matches: of equal ones the nearest is taken."""
CROWD = 9
"""Side of the window in which pixels share their weight, so that large things do not count for all others."""


class Motion(NamedTuple):
    """How frames go on."""

    own: Tensor
    """Where something moves by itself, bool (N, H, W)."""
    displacement: Tensor
    """Where each pixel is found in the frame after, int64 (N, H, W, 2): rows, columns."""
    found: Tensor
    """Where that match is believed and lies within the frame, bool (N, H, W)."""


def own_motion(before: Tensor, now: Tensor, after: Tensor) -> Motion:
    """What moves by itself between frames in 0–1, (N, 3, H, W)."""
    backward, forward = scene_shift(now, before), scene_shift(now, after)
    own = unexplained(now, before, backward) & unexplained(now, after, forward)
    displacement, believed = _matches(now, after, own, forward)
    return Motion(own, displacement, believed & _inside(displacement))


def scene_shift(first: Tensor, second: Tensor) -> Tensor:
    """The one displacement that explains most of a frame, int64 (N, 2); every other pixel of each axis votes."""
    height, width = first.shape[-2:]
    padded, voters = functional.pad(second, [REACH] * 4, mode="replicate"), first[:, :, ::2, ::2]
    shifts = torch.tensor(DISPLACEMENTS, device=first.device)
    costs = []
    for down, right in DISPLACEMENTS:
        row, column = REACH + down, REACH + right
        there = padded[:, :, row : row + height : 2, column : column + width : 2]
        costs.append((voters - there).square().mean(1).clamp(max=NEITHER).mean((1, 2)))
    cost = torch.stack(costs, 1) + TIE[0] * shifts.float().norm(dim=1)
    return shifts[cost.argmin(1)]


def unexplained(first: Tensor, second: Tensor, shift: Tensor) -> Tensor:
    """Pixels whose colour lies outside of what the shifted frame has within a pixel, bool (N, H, W).

    A scene that scrolls by parts of a pixel mixes neighbours, and is explained by them.
    """
    here = _shifted(second, shift)
    lowest, highest = -functional.max_pool2d(-here, 3, 1, 1), functional.max_pool2d(here, 3, 1, 1)
    return (first - first.clamp(lowest, highest)).square().mean(1) > TOLD_APART


def even_weights(own: Tensor) -> Tensor:
    """Weights of pixels that move by themselves: those of large things weigh less, (N, H, W)."""
    here = own.float()[:, None]
    crowd = functional.avg_pool2d(here, CROWD, 1, CROWD // 2) * CROWD**2
    return (here / crowd.clamp(min=1).sqrt())[:, 0]


def filled(own: Tensor) -> Tensor:
    """The same with holes of a pixel closed: the inside of a thing of one colour hardly changes."""
    grown = functional.max_pool2d(own.float()[:, None], 3, 1, 1)
    return -functional.max_pool2d(-grown, 3, 1, 1)[:, 0] > 0


def _matches(now: Tensor, after: Tensor, own: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
    """Displacements by 3×3 patches where something moves by itself, elsewhere the scene's; and which are believed."""
    height, width = now.shape[-2:]
    displacement = shift[:, None, None].expand(-1, height, width, -1).clone()
    believed = ~unexplained(now, after, shift)
    image, row, column = own.nonzero(as_tuple=True)
    patches = _patches(now)[image, :, row, column]
    there = functional.pad(_patches(after), [REACH] * 4, value=float("inf"))
    best = torch.full((len(image),), float("inf"), device=now.device)
    which = torch.zeros(len(image), dtype=torch.int64, device=now.device)
    for index, (down, right) in enumerate(DISPLACEMENTS):
        other = there[image, :, row + REACH + down, column + REACH + right]
        cost = (patches - other).square().mean(1) + TIE[1] * (down**2 + right**2) ** 0.5
        better = cost < best
        best, which = torch.where(better, cost, best), which.masked_fill(better, index)
    displacement[image, row, column] = torch.tensor(DISPLACEMENTS, device=now.device)[which]
    believed[image, row, column] = best < OCCLUDED
    return displacement, believed


def _patches(frames: Tensor) -> Tensor:
    """The 3×3 patch around each pixel, (N, 27, H, W)."""
    return functional.unfold(frames, 3, padding=1).view(len(frames), -1, *frames.shape[-2:])


def _shifted(frames: Tensor, shift: Tensor) -> Tensor:
    """What lies at each pixel's displacement; the border goes on beyond the frame."""
    height, width = frames.shape[-2:]
    rows = torch.arange(height, device=frames.device) + shift[:, :1]
    columns = torch.arange(width, device=frames.device) + shift[:, 1:]
    image = torch.arange(len(frames), device=frames.device)[:, None, None]
    return frames.permute(0, 2, 3, 1)[
        image, rows.clamp(0, height - 1)[:, :, None], columns.clamp(0, width - 1)[:, None]
    ].permute(0, 3, 1, 2)


def _inside(displacement: Tensor) -> Tensor:
    height, width = displacement.shape[1:3]
    rows = displacement[..., 0] + torch.arange(height, device=displacement.device)[:, None]
    columns = displacement[..., 1] + torch.arange(width, device=displacement.device)
    return (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
