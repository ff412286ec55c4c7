"""How the layers of a network start.

A layer is named by its role in the network; a scheme says how weights are drawn and, role by role, how large they are.
Biases start at zero (`torch` leaves those of encoders, too, as PyTorch draws them).
"""

import math
from collections.abc import Mapping
from typing import TypeVar

from torch import nn

Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)

# One of IMPALA's three stacks has two residual blocks, whose two convolutions share what a block may add.
_BLOCK = math.sqrt(1 / math.sqrt(3) / math.sqrt(2))

SCHEMES: Mapping[str, Mapping[str, tuple[str, float]]] = {
    # The usual one of PPO (Engstrom et al. 2020, Andrychowicz et al. 2021).
    "orthogonal": {
        "hidden": ("orthogonal", math.sqrt(2)),
        "stack": ("orthogonal", math.sqrt(2)),
        "residual": ("orthogonal", math.sqrt(2)),
        "memory": ("orthogonal", 1.0),
        "policy": ("orthogonal", 0.01),
        "value": ("orthogonal", 1.0),
    },
    # PPO on Procgen (Cobbe et al. 2020): baselines' IMPALA is drawn by TensorFlow's default, its heads orthogonally.
    "glorot": {
        "hidden": ("glorot", 1.0),
        "stack": ("glorot", 1.0),
        "residual": ("glorot", 1.0),
        "memory": ("orthogonal", 1.0),
        "policy": ("orthogonal", 0.01),
        "value": ("orthogonal", 1.0),
    },
    # PPG (Cobbe et al. 2021): every unit's incoming weights have this norm.
    "normed": {
        "hidden": ("normed", 1.4),
        "stack": ("normed", 1.0),
        "residual": ("normed", _BLOCK),
        "memory": ("normed", 1.0),
        "policy": ("normed", 0.1),
        "value": ("normed", 0.1),
    },
    # CleanRL's PPO on Procgen: PyTorch's default, with heads drawn orthogonally.
    "torch": {
        "hidden": ("torch", 1.0),
        "stack": ("torch", 1.0),
        "residual": ("torch", 1.0),
        "memory": ("torch", 1.0),
        "policy": ("orthogonal", 0.01),
        "value": ("orthogonal", 1.0),
    },
}


def initialise(layer: Layer, scheme: str, role: str = "hidden") -> Layer:
    """Start a layer's parameters.

    Args:
        layer: the layer, which is returned.
        scheme: a name in `SCHEMES`.
        role: `hidden`, `memory`, `policy`, `value`, or in IMPALA `stack` (its first convolution) or `residual`.
    """
    how, size = SCHEMES[scheme][role]
    if how == "orthogonal":
        nn.init.orthogonal_(layer.weight, size)
    elif how == "glorot":
        nn.init.xavier_uniform_(layer.weight, size)
    elif how == "normed":
        weight = layer.weight.data
        weight.mul_(size / weight.flatten(1).norm(dim=1).view(-1, *[1] * (weight.dim() - 1)))
    if how != "torch":
        nn.init.zeros_(layer.bias)
    return layer
