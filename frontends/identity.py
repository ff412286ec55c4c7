"""The front-end that leaves observations as they are."""

import torch
from torch import nn


class Identity(nn.Module):
    """Images as channels-first views of the same bytes, vectors unchanged."""

    channels: int | None = None
    features: int | None = None

    def __init__(self) -> None:
        """It has no knobs."""
        super().__init__()

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """observations: uint8 images (N, H, W, C), returned as (N, C, H, W), or float vectors (N, F)."""
        return observations.permute(0, 3, 1, 2) if observations.ndim == 4 else observations
