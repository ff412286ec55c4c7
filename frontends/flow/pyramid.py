"""ResNet-18 with a feature pyramid: the trunk of both encoders."""

import torch
from torch import nn
from torchvision.models.resnet import BasicBlock
from torchvision.ops import FeaturePyramidNetwork

from lcd.frontends.flow.config import LEVELS


class ResNet18(nn.Module):
    """torchvision's ResNet-18 without its classifier, any number of input channels, any width, and all its levels.

    With width 64 and three channels its parameters have the names and shapes of `torchvision.models.resnet18`.

    Args:
        channels: of the input.
        width: channels of the first stage; 64 is ResNet-18.
        stem: how many pixels one of the finest level spans. 4 is ResNet-18 as it is; with 2 the features before its
            pooling are a level, too; with 1 the first convolution keeps every pixel and nothing is pooled.
    """

    def __init__(self, channels: int, width: int, stem: int):
        super().__init__()
        self.stem = stem
        self.conv1 = nn.Conv2d(channels, width, 7 if stem > 1 else 3, min(stem, 2), 3 if stem > 1 else 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if stem > 1 else nn.Identity()
        widths = [width, *(width * 2**stage for stage in range(LEVELS))]
        for stage in range(LEVELS):
            layer = _stage(widths[stage], widths[stage + 1], stride=1 if stage == 0 else 2)
            self.add_module(f"layer{stage + 1}", layer)
        self.widths = widths if stem == 2 else widths[1:]
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: torch.Tensor) -> list[torch.Tensor]:
        """The levels from the finest to the coarsest."""
        first = self.relu(self.bn1(self.conv1(images)))
        levels, features = [first] if self.stem == 2 else [], self.maxpool(first)
        for stage in range(LEVELS):
            features = self.get_submodule(f"layer{stage + 1}")(features)
            levels.append(features)
        return levels


def _stage(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    shortcut = None
    if stride != 1 or inputs != outputs:
        shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
    return nn.Sequential(BasicBlock(inputs, outputs, stride, shortcut), BasicBlock(outputs, outputs))


class Pyramid(nn.Module):
    """ResNet-18 FPN: every level sees what the coarser ones know.

    Args:
        channels: of the input.
        width: of the ResNet's first stage.
        stem: see `ResNet18`.
        outputs: channels of the pyramid.
        stride: of the level that is given out, in pixels.
    """

    def __init__(self, channels: int, width: int, stem: int, outputs: int, stride: int):
        super().__init__()
        self.trunk = ResNet18(channels, width, stem)
        self.level = (stride // stem).bit_length() - 1
        self.top_down = FeaturePyramidNetwork(self.trunk.widths[self.level :], outputs)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The level of that stride, (N, outputs, H / stride, W / stride), rounded up."""
        levels = self.trunk(images)[self.level :]
        return self.top_down({str(level): features for level, features in enumerate(levels)})["0"]
