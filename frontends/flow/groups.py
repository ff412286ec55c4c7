"""An encoder of two groups of maps: what a pixel belongs to, of what keeps its look, and of what moves by itself."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lcd.frontends.flow.config import FlowConfig
from lcd.frontends.flow.resizing import resize

LOCAL_LAYERS = 3
FINEST, MIDDLE, COARSEST = 1, 2, 4
"""Widths of the levels of what looks wide, in those of the finest."""


class GroupEncoder(nn.Module):
    """One frame into maps that compete: in each group they add up to 1 at every pixel.

    The first half, looks, sees what lies within three pixels, for what a thing is made of is told nearby. The second
    half, things, sees some thirty pixels; its first map is where nothing moves by itself, and the others share what is
    left: which of them a pixel is, is learned apart from whether it is any.

    Args:
        config: `maps` of them, even; `width` of the wide part, `pyramid` of the local one.
    """

    def __init__(self, config: FlowConfig):
        super().__init__()
        self.half = config.maps // 2
        widths = [config.pyramid] * LOCAL_LAYERS
        layers = [_layer(inputs, outputs) for inputs, outputs in zip([3, *widths], widths, strict=False)]
        self.looks = nn.Sequential(*layers, _head(config.pyramid, self.half))
        self.things = _Wide(config.width, config.maps - self.half)

    def logits(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """What both groups are before they compete, (N, maps / 2, H, W) each.

        Args:
            frames: (N, 3, H, W), normalised.
        """
        return self.looks(frames), self.things(frames)

    def forward(self, frames: Tensor) -> Tensor:
        """Maps in 0–1, (N, maps, H, W)."""
        looks, things = self.logits(frames)
        nothing = things[:, :1].sigmoid()
        return torch.cat([looks.softmax(1), nothing, (1 - nothing) * things[:, 1:].softmax(1)], 1)


class _Wide(nn.Module):
    """Three levels, each half as fine as the one before, and back: a pixel sees what is around it."""

    def __init__(self, width: int, maps: int):
        super().__init__()
        fine, middle, coarse = (width * times for times in (FINEST, MIDDLE, COARSEST))
        self.fine = nn.Sequential(_layer(3, fine), _layer(fine, fine))
        self.middle = nn.Sequential(_layer(fine, middle, 2), _layer(middle, middle))
        self.coarse = nn.Sequential(_layer(middle, coarse, 2), _layer(coarse, coarse))
        self.to_middle, self.to_fine = _layer(coarse, middle), _layer(middle, fine)
        self.head = nn.Sequential(_layer(fine, fine), _head(fine, maps))

    def forward(self, frames: Tensor) -> Tensor:
        fine = self.fine(frames)
        middle = self.middle(fine)
        middle = middle + resize(self.to_middle(self.coarse(middle)), middle.shape[-2:])
        return self.head(fine + resize(self.to_fine(middle), fine.shape[-2:]))


def _layer(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


def _head(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
