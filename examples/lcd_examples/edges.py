"""A front-end that shows an agent the edges of images."""

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d


class Edges(nn.Module):
    """Edges of images: how brightness changes to the right and downwards."""

    channels = 2

    def __init__(self, strength: float = 1.0) -> None:
        """Make the filters.

        Args:
            strength: what differences are multiplied by.
        """
        super().__init__()
        across = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]) * strength / 8
        self.register_buffer("filters", torch.stack([across, across.T])[:, None])

    def forward(self, observations: Tensor) -> Tensor:
        """uint8 images (N, H, W, C) to maps (N, 2, H, W)."""
        grey = observations.to(self.filters.dtype).mean(-1, keepdim=True).permute(0, 3, 1, 2) / 255
        return conv2d(grey, self.filters, padding=1)
