"""The flow front-end: the object encoder of figure 2a, frozen, beside the pixels it has seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from lcd.envs.errors import InputError
from lcd.frontends.flow.config import LEAST_SIDE, RECURRENT, FlowConfig
from lcd.frontends.flow.file import read
from lcd.frontends.flow.groups import GroupEncoder
from lcd.frontends.flow.networks import ObjectEncoder, encoder_of

UNTRAINED = "untrained"
COLOURS = 3
MEAN, STD = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)
"""The default normalisation of frames in 0–1."""


class ObjectMaps(nn.Module):
    """An object encoder as a front-end: images into maps of what moves together, and the images themselves.

    `forward` gives (N, 19, H, W) in 0–1: RGB, then 16 maps, at the image's own resolution. `maps` gives the maps alone.

    Args:
        objects: the encoder.
        config: its sizes.
        mean, std: the normalisation of frames in 0–1 that it was trained with, a number a colour.
        rgb: whether the image goes with its maps.
    """

    features: int | None = None
    half_is_safe = True

    def __init__(
        self,
        objects: ObjectEncoder | GroupEncoder,
        config: FlowConfig,
        mean: Sequence[float] = MEAN,
        std: Sequence[float] = STD,
        rgb: bool = True,
    ):
        super().__init__()
        self.objects, self.config, self.rgb = objects, config, rgb
        self.channels = config.maps + COLOURS * rgb
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1), persistent=False)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """observations: uint8 images (N, H, W, 3). Returns (N, channels, H, W) in 0–1: RGB first, then the maps."""
        frames = to_frames(observations)
        maps = self.objects((frames - self.mean) / self.std)
        return torch.cat([frames, maps], 1) if self.rgb else maps

    def maps(self, observations: torch.Tensor) -> torch.Tensor:
        """The maps alone, (N, maps, H, W) in 0–1."""
        return self.forward(observations)[:, COLOURS * self.rgb :]

    def untrained_twin(self) -> ObjectMaps:
        """The same encoder before any training, to compare with."""
        mean, std = (value.flatten().tolist() for value in (self.mean, self.std))
        twin = ObjectMaps(untrained(self.config, 0), self.config, mean, std, self.rgb)
        return twin.requires_grad_(False).eval()


class Flow(ObjectMaps):
    """The front-end `flow`: `ObjectMaps` with an encoder from a file, or an untrained one to compare with.

    Args:
        weights: a file that `lcd pretrain` wrote, or "untrained".
        rgb: whether the image goes with its maps.
        seed: of the weights of an untrained encoder.
        others: sizes of an untrained encoder, see `FlowConfig`; a file brings its own.
    """

    later = MappingProxyType({"encoder_kind": RECURRENT})
    data_hash: str | None = None
    """SHA-256 of the videos that it was pretrained on."""
    weights_hash: str | None = None
    """SHA-256 of its file."""

    def __init__(
        self,
        weights: str | None = None,
        rgb: bool = True,
        seed: int = 0,
        width: int | None = None,
        stem: int | None = None,
        pyramid: int | None = None,
        maps: int | None = None,
        hgru_kernel: int | None = None,
        hgru_steps: int | None = None,
        motion: int | None = None,
        motion_stride: int | None = None,
        decoder: int | None = None,
        bound: float | None = None,
        encoder_kind: str | None = None,
    ):
        sizes = {name: value for name, value in locals().items() if name in FlowConfig.__dataclass_fields__}
        if weights is None:
            raise InputError(
                "frontend=flow needs frontend.weights=FILE: 'lcd pretrain frontend=flow' writes one; "
                f"frontend.weights={UNTRAINED} takes the encoder as it is before pretraining."
            )
        if weights == UNTRAINED:
            config = FlowConfig.from_dict(sizes)
            super().__init__(untrained(config, seed), config, rgb=rgb)
            self.label = "flow/untrained"
            return
        found = read(Path(weights).expanduser())
        _refuse_other_sizes(found.config, sizes, weights)
        super().__init__(encoder_of(found.config), found.config, found.mean, found.std, rgb)
        self.objects.load_state_dict(found.objects)
        self.data_hash, self.weights_hash = found.data_hash, found.hash


def untrained(config: FlowConfig, seed: int) -> ObjectEncoder | GroupEncoder:
    """An encoder whose weights follow from the seed and disturb no other stream."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return encoder_of(config)


def to_frames(observations: torch.Tensor) -> torch.Tensor:
    """uint8 images (N, H, W, 3) as fractions of 255, (N, 3, H, W)."""
    shape = tuple(observations.shape[1:])
    if observations.ndim != 4 or shape[-1] != COLOURS or observations.dtype != torch.uint8:
        raise InputError(
            f"frontend=flow sees uint8 images with three colours, not {observations.dtype} observations of shape "
            f"{shape}: choose a view with images, of toys with image_channels=3."
        )
    if min(shape[:2]) < LEAST_SIDE:
        raise InputError(f"frontend=flow needs images of at least {LEAST_SIDE}×{LEAST_SIDE} pixels, not {shape[:2]}.")
    return observations.permute(0, 3, 1, 2).float() / 255


def _refuse_other_sizes(config: FlowConfig, sizes: Mapping[str, Any], weights: str) -> None:
    for name, value in sizes.items():
        if value is not None and value != getattr(config, name):
            raise InputError(
                f"frontend.{name}={value} is not what frontend.weights={weights} was pretrained with "
                f"({getattr(config, name)}): leave it out."
            )
