"""Actor-critic networks for one seed: a plain encoder, a policy head, a value head.

A population of seeds is made of these by `lcd.agents.population`; nothing here knows about seeds.
"""

import math

import torch
from torch import Tensor, nn


class Mlp(nn.Module):
    """Encodes a small vector with two hidden layers.

    Args:
        shape: shape of one observation, flattened.
        width: units of each hidden layer and of the output.
    """

    def __init__(self, shape: tuple[int, ...], width: int = 64):
        super().__init__()
        self.features = width
        self.layers = nn.Sequential(
            orthogonal(nn.Linear(math.prod(shape), width)),
            nn.Tanh(),
            orthogonal(nn.Linear(width, width)),
            nn.Tanh(),
        )

    def forward(self, observations: Tensor) -> Tensor:
        return self.layers(as_float(observations).flatten(1))


class SmallCnn(nn.Module):
    """Encodes a small image (NCHW) with two strided convolutions and one hidden layer.

    Args:
        shape: (channels, height, width) of one observation.
        width: units of the hidden layer, which is the output.
    """

    def __init__(self, shape: tuple[int, ...], width: int = 64):
        super().__init__()
        self.features = width
        self.convolutions = nn.Sequential(
            # A wide first stride: on a CPU it trains half as fast again as a stride of 2, and sees as well.
            orthogonal(nn.Conv2d(shape[0], 16, kernel_size=5, stride=3, padding=1)),
            nn.ReLU(),
            orthogonal(nn.Conv2d(16, 32, kernel_size=3, stride=2, padding=1)),
            nn.ReLU(),
            nn.Flatten(),
        )
        with torch.no_grad():
            flat = self.convolutions(torch.zeros(1, *shape)).shape[1]
        self.head = nn.Sequential(orthogonal(nn.Linear(flat, width)), nn.ReLU())

    def forward(self, observations: Tensor) -> Tensor:
        return self.head(self.convolutions(as_float(observations)))


ENCODERS = {"mlp": Mlp, "cnn": SmallCnn}


class ActorCritic(nn.Module):
    """A policy and a value, on one shared encoder.

    Args:
        shape: shape of one feature (an image as channels, height, width, or a vector).
        actions: number of discrete actions, or of the dimensions of continuous ones.
        encoder: a name in `ENCODERS`, or `auto`: `cnn` for images, `mlp` for vectors.
        width: units of the encoder's hidden layers.
        deviations: number of log-deviations that are learned beside the policy's outputs; 0 for discrete actions.
    """

    def __init__(
        self, shape: tuple[int, ...], actions: int, encoder: str = "auto", width: int = 64, deviations: int = 0
    ):
        super().__init__()
        if encoder == "auto":
            encoder = "cnn" if len(shape) == 3 else "mlp"
        self.encoder = ENCODERS[encoder](shape, width)
        # A nearly uniform first policy explores; a value head of unit gain starts at the scale of its targets.
        self.policy = orthogonal(nn.Linear(self.encoder.features, actions), gain=0.01)
        self.value = orthogonal(nn.Linear(self.encoder.features, 1), gain=1.0)
        self.log_deviation = nn.Parameter(torch.full((deviations,), -0.5)) if deviations else None

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """The policy's outputs (batch, actions or means and log-deviations) and values (batch,)."""
        features = self.encoder(observations)
        return self.act_on(features), self.value(features).squeeze(-1)

    def act_on(self, features: Tensor) -> Tensor:
        """The policy's outputs, given what the encoder made of observations."""
        outputs = self.policy(features)
        if self.log_deviation is not None:
            outputs = torch.cat([outputs, self.log_deviation.expand_as(outputs)], -1)
        return outputs


def as_float(observations: Tensor) -> Tensor:
    """Bytes become fractions of 255; everything else is taken as it is."""
    if observations.dtype == torch.uint8:
        return observations.float() / 255
    return observations.float() if observations.dtype == torch.float64 else observations


def normed(layer: nn.Linear | nn.Conv2d, scale: float = 1.0) -> nn.Linear | nn.Conv2d:
    """Scale the weights of each output to a common norm and set biases to zero, as Cobbe et al. (2021) do."""
    with torch.no_grad():
        norms = layer.weight.flatten(1).norm(dim=1).view(-1, *[1] * (layer.weight.dim() - 1))
        layer.weight.mul_(scale / norms)
    nn.init.zeros_(layer.bias)
    return layer


def orthogonal(layer: nn.Linear | nn.Conv2d, gain: float = math.sqrt(2)) -> nn.Linear | nn.Conv2d:
    """Initialise a layer's weights orthogonally and its biases with zero."""
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer
