"""Features at another resolution."""

import torch
from torch.nn import functional


def resize(features: torch.Tensor, size: torch.Size) -> torch.Tensor:
    """Features at another resolution, linearly between what they are at."""
    if features.shape[-2:] == size:
        return features
    return functional.interpolate(features, size=size, mode="bilinear", align_corners=False)
