"""Convolutions below the networks of many members.

They are formed one member after the other: of ten members, batches of 32 and 100 x 100 pixels, grouped convolutions and
`vmap` took half as long again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from lcd.agents.batched import Layers, initial
from lcd.envs.errors import InputError

CONVOLUTIONS = ((16, 8, 4, 2), (32, 4, 2, 2))
"""Channels, kernel, stride and padding of each, as MDP Playground (Rajan et al., appendix G) has them for 100 pixels.

The third one there is as large as the image that it gets: a layer like any other hidden one.
"""


class Encoder:
    """Rectified convolutions of images.

    Args:
        shape: height, width and channels of an image.

    Attributes:
        features: numbers that they make of an image.
        layers: how many layers, weights and biases, they are.
    """

    def __init__(self, shape: tuple[int, ...]):
        self.shape, self.layers, self.kernels = shape, 2 * len(CONVOLUTIONS), []
        *sides, given = shape
        for made, kernel, stride, padding in CONVOLUTIONS:
            self.kernels.append((made, given, kernel, kernel))
            sides, given = [(side + 2 * padding - kernel) // stride + 1 for side in sides], made
            if min(sides) < 1:
                raise InputError(f"agent.encoder=cnn needs larger images than {shape[0]}x{shape[1]} pixels.")
        self.features = given * math.prod(sides)

    def first_layers(self, seeds: Sequence[int]) -> Layers:
        """The layers before they learn, as PyTorch's own, from a stream of their own."""
        layers = initial([(math.prod(kernel[1:]), kernel[0]) for kernel in self.kernels], seeds, 1)
        for place, kernel in enumerate(self.kernels):
            layers[2 * place] = layers[2 * place].mT.reshape(len(seeds), *kernel)
        return layers

    def __call__(self, layers: Layers, inputs: Tensor) -> Tensor:
        """What they make of (members, batch, numbers), (members, batch, features)."""
        return torch.stack([self._of_member([part[n] for part in layers], own) for n, own in enumerate(inputs)])

    def _of_member(self, layers: Layers, inputs: Tensor) -> Tensor:
        images = inputs.reshape(-1, *self.shape).permute(0, 3, 1, 2)
        for place, (_, _, stride, padding) in enumerate(CONVOLUTIONS):
            weight, bias = layers[2 * place : 2 * place + 2]
            images = functional.conv2d(images, weight, bias[0], stride, padding).relu()
        return images.flatten(1)
