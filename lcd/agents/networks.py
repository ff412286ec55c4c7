"""Actor-critic networks for one seed: a plain encoder, a policy head, a value head.

A population of seeds is made of these by `lcd.agents.population`; nothing here knows about seeds.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from lcd.agents.initialise import initialise


class Mlp(nn.Module):
    """Encodes a small vector with hidden layers.

    Args:
        shape: shape of one observation, flattened.
        width: units of each hidden layer and of the output.
        scheme: how the layers start, a name in `lcd.agents.initialise.SCHEMES`.
        layers: how many there are.
    """

    def __init__(self, shape: tuple[int, ...], width: int = 64, scheme: str = "orthogonal", layers: int = 2):
        super().__init__()
        self.features = width
        parts: list[nn.Module] = []
        for given in [math.prod(shape), *[width] * (layers - 1)]:
            parts += [initialise(nn.Linear(given, width), scheme), nn.Tanh()]
        self.layers = nn.Sequential(*parts)

    def forward(self, observations: Tensor) -> Tensor:
        return self.layers(as_float(observations).flatten(1))


class SmallCnn(nn.Module):
    """Encodes a small image (NCHW) with two strided convolutions and one hidden layer.

    Args:
        shape: (channels, height, width) of one observation.
        width: units of the hidden layer, which is the output.
        scheme: how the layers start, a name in `lcd.agents.initialise.SCHEMES`.
    """

    def __init__(self, shape: tuple[int, ...], width: int = 64, scheme: str = "orthogonal"):
        super().__init__()
        self.features = width
        self.convolutions = nn.Sequential(
            # A wide first stride: on a CPU it trains half as fast again as a stride of 2, and sees as well.
            initialise(nn.Conv2d(shape[0], 16, kernel_size=5, stride=3, padding=1), scheme),
            nn.ReLU(),
            initialise(nn.Conv2d(16, 32, kernel_size=3, stride=2, padding=1), scheme),
            nn.ReLU(),
            nn.Flatten(),
        )
        with torch.no_grad():
            flat = self.convolutions(torch.zeros(1, *shape)).shape[1]
        self.head = nn.Sequential(initialise(nn.Linear(flat, width), scheme), nn.ReLU())

    def forward(self, observations: Tensor) -> Tensor:
        # So few channels train faster plane by plane than pixel by pixel.
        return self.head(self.convolutions(as_float(observations.contiguous())))


class Convolution(nn.Conv2d):
    """A convolution of 3 x 3 that keeps the image's size, in whichever layout the image comes.

    Args:
        given, channels: channels of the image before and after.
    """

    def __init__(self, given: int, channels: int):
        super().__init__(given, channels, kernel_size=3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        if not image.is_mkldnn:
            return super().forward(image)
        weight, bias = self.weight.to(image.dtype), self.bias.to(image.dtype)
        return torch.mkldnn_convolution(image, weight, bias, self.padding, self.stride, self.dilation, self.groups)


class ResidualBlock(nn.Module):
    """Adds to an image what two convolutions make of it.

    Args:
        channels: of the image.
        scheme: how the layers start.
    """

    def __init__(self, channels: int, scheme: str):
        super().__init__()
        self.first = initialise(Convolution(channels, channels), scheme, "residual")
        self.second = initialise(Convolution(channels, channels), scheme, "residual")

    def forward(self, image: Tensor) -> Tensor:
        change = functional.relu(self.first(functional.relu(image)), inplace=True)
        return image + self.second(change)


class Impala(nn.Module):
    """Encodes an image (NCHW) with the deep residual network of IMPALA (Espeholt et al. 2018, Cobbe et al. 2020).

    Three stacks of 16, 32 and 32 channels, each a convolution, a pooling by two and two residual blocks, and one hidden
    layer. With 256 units, a policy of 15 actions and a value it has 626,256 parameters on 3 x 64 x 64.

    Args:
        shape: (channels, height, width) of one observation.
        width: units of the hidden layer, which is the output.
        scheme: how the layers start, a name in `lcd.agents.initialise.SCHEMES`.
    """

    channels = (16, 32, 32)

    def __init__(self, shape: tuple[int, ...], width: int = 256, scheme: str = "orthogonal"):
        super().__init__()
        self.features = width
        given, height, breadth = shape
        stacks: list[nn.Module] = []
        for channels in self.channels:
            stacks += [
                initialise(Convolution(given, channels), scheme, "stack"),
                nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
                ResidualBlock(channels, scheme),
                ResidualBlock(channels, scheme),
            ]
            given, height, breadth = channels, (height + 1) // 2, (breadth + 1) // 2
        self.stacks = nn.Sequential(*stacks)
        self.head = initialise(nn.Linear(given * height * breadth, width), scheme)

    def forward(self, observations: Tensor) -> Tensor:
        if in_blocks(observations):
            images = as_float(observations).to(working_type()).to_mkldnn()
            encoded = self.stacks(images).to_dense()
        else:
            # Pixel by pixel, as images mostly come.
            images = as_float(observations.permute(0, 2, 3, 1).contiguous()).permute(0, 3, 1, 2)
            encoded = self.stacks(images)
        return functional.relu(self.head(functional.relu(encoded.flatten(1))), inplace=True)


def in_blocks(images: Tensor) -> bool:
    """Whether layers should hand each other images in oneDNN's own blocked layouts.

    On x86 that spares reordering and gives oneDNN's pooling, which takes a fifth of PyTorch's time: IMPALA trains a
    seventh faster in single precision and a quarter faster in bf16. Neither vmap nor torch.compile knows such tensors.
    """
    plain = torch.compiler.is_compiling() or torch._C._functorch.is_batchedtensor(images)
    x86 = torch.backends.cpu.get_cpu_capability().startswith("AVX")
    return images.device.type == "cpu" and not plain and x86 and torch.backends.mkldnn.is_available()


def working_type() -> torch.dtype:
    """The type in which convolutions run on a CPU."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32


ENCODERS = {"mlp": Mlp, "cnn": SmallCnn, "impala": Impala}


def make_encoder(shape: tuple[int, ...], encoder: str, width: int, scheme: str, layers: int = 2) -> nn.Module:
    """The encoder of features of one shape.

    Args:
        shape: (channels, height, width) of an image, or the shape of a vector, which goes through the MLP anyway.
        encoder: a name in `ENCODERS`, or `auto`: `cnn` for images.
        width: units of its hidden layers.
        scheme: how its layers start.
        layers: hidden layers of the MLP.
    """
    if len(shape) != 3 or encoder == "mlp":
        return Mlp(shape, width, scheme, layers)
    return ENCODERS["cnn" if encoder == "auto" else encoder](shape, width, scheme)


class ActorCritic(nn.Module):
    """A policy and a value, on one shared encoder.

    Args:
        shape: shape of one feature (an image as channels, height, width, or a vector).
        actions: number of discrete actions, or of the dimensions of continuous ones.
        encoder: a name in `ENCODERS`, or `auto`: `cnn` for images; vectors go through the MLP.
        width: units of the encoder's hidden layers.
        deviations: number of log-deviations that are learned beside the policy's outputs; 0 for discrete actions.
        scheme: how the layers start, a name in `lcd.agents.initialise.SCHEMES`.
        layers: hidden layers of the MLP.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        actions: int,
        encoder: str = "auto",
        width: int = 64,
        deviations: int = 0,
        scheme: str = "orthogonal",
        layers: int = 2,
    ):
        super().__init__()
        self.encoder = make_encoder(shape, encoder, width, scheme, layers)
        # A nearly uniform first policy explores; a value head of unit gain starts at the scale of its targets.
        self.policy = initialise(nn.Linear(self.encoder.features, actions), scheme, "policy")
        self.value = initialise(nn.Linear(self.encoder.features, 1), scheme, "value")
        self.log_deviation = nn.Parameter(torch.full((deviations,), -0.5)) if deviations else None

    def forward(self, observations: Tensor) -> tuple[Tensor, ...]:
        """The policy's outputs (batch, actions or means and log-deviations) and values (batch,)."""
        features = self.encoder(observations)
        return self.act_on(features), in_full(self.value, features).squeeze(-1)

    def act_on(self, features: Tensor) -> Tensor:
        """The policy's outputs, given what the encoder made of observations."""
        outputs = in_full(self.policy, features)
        if self.log_deviation is not None:
            outputs = torch.cat([outputs, self.log_deviation.expand_as(outputs)], -1)
        return outputs


class ActorAndCritic(nn.Module):
    """A policy and a value, each on an encoder of its own.

    Args:
        shape, actions, encoder, width, deviations, scheme, layers: as those of `ActorCritic`.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        actions: int,
        encoder: str,
        width: int,
        deviations: int,
        scheme: str,
        layers: int = 2,
    ):
        super().__init__()
        self.actor = ActorCritic(shape, actions, encoder, width, deviations, scheme, layers)
        self.critic = ActorCritic(shape, 1, encoder, width, scheme=scheme, layers=layers)
        del self.actor.value, self.critic.policy

    def forward(self, observations: Tensor) -> tuple[Tensor, ...]:
        """The policy's outputs (batch, …) and values (batch,)."""
        outputs = self.actor.act_on(self.actor.encoder(observations))
        return outputs, in_full(self.critic.value, self.critic.encoder(observations)).squeeze(-1)


def in_full(layer: nn.Module, given: Tensor) -> Tensor:
    """What a layer makes of its input in single precision, whatever the layers before it are computed in.

    Log-probabilities and advantages are differences of what heads give: eight bits of a value of 10 are off by .03.
    """
    device = given.device.type
    if not (torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)):
        return layer(given)
    with torch.autocast(device, enabled=False):
        return layer(given.float())


def as_float(observations: Tensor) -> Tensor:
    """Bytes become fractions of 255; everything else is taken as it is."""
    if observations.dtype == torch.uint8:
        return observations.float() / 255
    return observations.float() if observations.dtype == torch.float64 else observations
