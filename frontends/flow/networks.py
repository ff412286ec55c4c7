"""The three networks of figure 2a: object encoder, flow encoder, and the decoder of both into a flow field."""

from __future__ import annotations

import torch
from torch import nn

from lcd.frontends.flow.config import FPN, GROUPS, FlowConfig
from lcd.frontends.flow.groups import GroupEncoder
from lcd.frontends.flow.hgru import HGRU
from lcd.frontends.flow.pyramid import Pyramid
from lcd.frontends.flow.resizing import resize


class ObjectEncoder(nn.Module):
    """One frame into maps: ResNet-18 FPN, a horizontal recurrent unit, and a sigmoid at the frame's own resolution.

    All that agents use of the three networks.
    """

    def __init__(self, config: FlowConfig):
        super().__init__()
        self.pyramid = Pyramid(3, config.width, config.stem, config.pyramid, config.stem)
        self.drive = nn.Sequential(nn.Conv2d(config.pyramid, config.maps, 1, bias=False), nn.BatchNorm2d(config.maps))
        self.hgru = HGRU(config.maps, config.hgru_kernel, config.hgru_steps)
        self.norm = nn.BatchNorm2d(config.maps)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Maps in 0–1, (N, maps, H, W).

        Args:
            frames: (N, 3, H, W), normalised.
        """
        state = self.norm(self.hgru(self.drive(self.pyramid(frames))))
        return resize(state, frames.shape[-2:]).sigmoid()


class Decoder(nn.Module):
    """Maps and motion features into a flow field; the first flow is zero everywhere.

    The motion features are coarser than the maps, so that where one motion ends and another begins has to be read off
    the maps: that is what makes them maps of things. A few convolutions see no further than that; an FPN-ResNet18 sees
    the whole frame, and may draw borders of its own.
    """

    def __init__(self, config: FlowConfig):
        super().__init__()
        self.bound = config.bound
        seen = config.maps + config.motion
        self.body = (
            Pyramid(seen, config.width, config.stem, config.decoder, config.stem)
            if config.decoder_kind == FPN
            else nn.Sequential(
                nn.Conv2d(seen, config.decoder, 3, padding=1),
                nn.ReLU(inplace=True),
                nn.Conv2d(config.decoder, config.decoder, 3, padding=1),
                nn.ReLU(inplace=True),
            )
        )
        self.head = nn.Conv2d(config.decoder, 2, 3, padding=1)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, maps: torch.Tensor, motion: torch.Tensor) -> torch.Tensor:
        """The flow in pixels, (N, 2, H, W): x, then y."""
        flow = self.head(self.body(torch.cat([maps, resize(motion, maps.shape[-2:])], 1)))
        flow = resize(flow, maps.shape[-2:])
        return flow if self.bound is None else self.bound * torch.tanh(flow / self.bound)


def encoder_of(config: FlowConfig) -> ObjectEncoder | GroupEncoder:
    """The network that agents use."""
    return GroupEncoder(config) if config.encoder_kind == GROUPS else ObjectEncoder(config)


class FlowModel(nn.Module):
    """What is pretrained: the three networks together; an encoder of groups is taught without the other two.

    Args:
        config: their sizes.
    """

    def __init__(self, config: FlowConfig):
        super().__init__()
        self.config = config
        self.objects = encoder_of(config)
        if config.encoder_kind == GROUPS:
            return
        self.motion = Pyramid(6, config.width, config.stem, config.motion, config.motion_stride)
        self.decoder = Decoder(config)

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The maps of the first frames and the flow from them to the second, both normalised (N, 3, H, W)."""
        maps = self.objects(first)
        return maps, self.decoder(maps, self.motion(torch.cat([first, second], 1)))
