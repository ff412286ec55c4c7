"""Front-ends that others have trained: CLIP, and any image encoder of open_clip, timm or torchvision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from lcd.envs.errors import InputError, nearest
from lcd.frontends.libraries import LIBRARIES, Loaded, content_hash, load

OUTPUTS = ("embedding", "tokens")
BATCH = 256
"""Images that pass through a network at once: they are much larger than the observations they are made of."""


class Backbone(nn.Module):
    """An image encoder by name, with its preprocessing pinned: what is done to images is part of a run's config.

    Args:
        library: `open_clip`, `timm` or `torchvision`.
        model: the model's name there.
        weights: a local file (a state dict, or safetensors), a name of weights that the library downloads (open_clip: a
            tag; torchvision: `DEFAULT`, …; timm: `pretrained`), or `untrained`.
        output: `embedding`, a vector an image, or `tokens`, the last map before pooling.
        size: side of the square that images are resized to; None: what the model was trained at.
        mean, std: the normalisation, a number a colour; None: what belongs to the weights, or to the model.
        quick_gelu: the activation that OpenAI's CLIP was trained with; None: as the model's name says. open_clip only.
    """

    half_is_safe = True

    def __init__(
        self,
        library: str = "timm",
        model: str = "resnet18",
        weights: str = "untrained",
        output: str = "embedding",
        size: int | None = None,
        mean: list[float] | None = None,
        std: list[float] | None = None,
        quick_gelu: bool | None = None,
    ):
        super().__init__()
        _one_of("library", library, LIBRARIES)
        _one_of("output", output, OUTPUTS)
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise InputError(f"frontend.size={size} must be a whole number of at least 1.")
        loaded = load(library, model, weights, size, quick_gelu)
        self.network, self.output = loaded.network, output
        own = {"library": library, "model": model, "output": output, "size": size, "quick_gelu": quick_gelu}
        self._untrained: dict[str, Any] = own
        self._embed, self._map = loaded.embed, loaded.map
        self.preprocessing = _preprocessing(loaded, size, mean, std)
        self.label = f"{library}/{model}" + ("/tokens" if output == "tokens" else "")
        self.sha256 = content_hash(loaded.network) if loaded.named else None
        for name in ("mean", "std"):
            self.register_buffer(f"_{name}", torch.tensor(self.preprocessing[name]).view(1, -1, 1, 1), persistent=False)
        self.network.requires_grad_(False).eval()
        with torch.no_grad():
            width = self(torch.zeros(1, 64, 64, 3, dtype=torch.uint8)).shape[1]
        self.channels: int | None = width if output == "tokens" else None
        self.features: int | None = None if output == "tokens" else width

    def forward(self, observations: Tensor) -> Tensor:
        """uint8 images (N, H, W, 3) → embeddings (N, features), or the last map (N, channels, h, w)."""
        encode = self._map if self.output == "tokens" else self._embed
        return torch.cat([encode(self.prepared(part)).float() for part in observations.split(BATCH)])

    def maps(self, observations: Tensor) -> Tensor:
        """The last map before pooling at the observations' own resolution, (N, channels, H, W)."""
        parts = [self._map(self.prepared(part)).float() for part in observations.split(BATCH)]
        return interpolate(torch.cat(parts), observations.shape[1:3], mode="bilinear", align_corners=False)

    def untrained_twin(self) -> Backbone:
        """The same encoder before any training, to compare with."""
        mean, std = self.preprocessing["mean"], self.preprocessing["std"]
        return Backbone(**self._untrained, mean=mean, std=std).requires_grad_(False).eval()

    def prepared(self, observations: Tensor) -> Tensor:
        """What the network sees: fractions of 255, resized as a whole (nothing is cropped away), normalised."""
        if observations.ndim != 4 or observations.shape[-1] != 3 or observations.dtype != torch.uint8:
            shape = tuple(observations.shape[1:])
            raise InputError(
                f"frontend={self.label} sees uint8 images with three colours, not {observations.dtype} observations of "
                f"shape {shape}: choose a view with images."
            )
        images = observations.permute(0, 3, 1, 2).float() / 255
        side = self.preprocessing["size"]
        if images.shape[-2:] != (side, side):
            images = interpolate(
                images, (side, side), mode=self.preprocessing["interpolation"], align_corners=False, antialias=True
            ).clamp(0, 1)
        return (images - self._mean) / self._std


class Clip(Backbone):
    """CLIP (Radford et al. 2021) by open_clip: `Backbone` with the paper's model and OpenAI's weights.

    Args:
        model: one of open_clip's.
        weights: a tag of open_clip's that is downloaded (`openai`), a local file, or `untrained`.
        output: `embedding`, or `tokens`: the patches' tokens as a map.
        size, mean, std: as of `Backbone`.
        quick_gelu: the activation of OpenAI's weights, which a file of bare weights does not tell.
    """

    def __init__(
        self,
        model: str = "ViT-B-32",
        weights: str = "openai",
        output: str = "embedding",
        size: int | None = None,
        mean: list[float] | None = None,
        std: list[float] | None = None,
        quick_gelu: bool = True,
    ):
        super().__init__("open_clip", model, weights, output, size, mean, std, quick_gelu)
        named = "clip" if model == "ViT-B-32" else f"clip/{model}"
        self.label = named + ("/tokens" if output == "tokens" else "")


def _preprocessing(
    loaded: Loaded, size: int | None, mean: Sequence[float] | None, std: Sequence[float] | None
) -> dict[str, Any]:
    for name, value in (("mean", mean), ("std", std)):
        if value is not None and len(value) != 3:
            raise InputError(f"frontend.{name}={list(value)} must have three numbers, one a colour.")
    return {
        "size": size or loaded.size,
        "interpolation": loaded.interpolation,
        "mean": [float(x) for x in (mean or loaded.mean)],
        "std": [float(x) for x in (std or loaded.std)],
    }


def _one_of(key: str, value: str, options: Sequence[str]) -> None:
    if value not in options:
        raise InputError(f"frontend.{key}={value} is unknown: {nearest(str(value), options)}")
