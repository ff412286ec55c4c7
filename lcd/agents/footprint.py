"""What a network takes of a processor: its arithmetic, what it keeps for its gradients, and the room there is for that.

Both are measured by going once forward and backward on PyTorch's `meta` device, where tensors have sizes and no
content.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

from lcd.process.limits import RUNS_ON_A_GPU

SHARE = 0.75
"""Of the memory that is left, what activations may take; a layer computes with the rest, and fragments fill it."""
FLOAT_BYTES = 4
KEPT_OF_WEIGHTS = 4
"""Numbers of a weight that is trained by Adam: itself, its gradient, two moments."""


@dataclass(frozen=True)
class Footprint:
    """What one seed's network takes.

    Attributes:
        forward: floating-point operations of a step that is seen; a product and a sum are two.
        training: of a step that is learned from, forward and backward.
        activations: bytes that are kept of such a step until its gradient is made, in single precision.
        weights: numbers that are learned.
    """

    forward: int
    training: int
    activations: int
    weights: int

    def held(self, seeds: int) -> int:
        """Bytes of all seeds' weights, gradients and moments."""
        return KEPT_OF_WEIGHTS * FLOAT_BYTES * self.weights * seeds

    def fitting(self, room: int, seeds: int, half: bool = False) -> int:
        """Steps of each seed that can be learned from at once in so many bytes; at least one."""
        each = self.activations * seeds / (2 if half else 1)
        return max(1, int(SHARE * (room - self.held(seeds)) / each))


def footprint(network: nn.Module, steps: Callable[[int], tuple[Tensor, ...]]) -> Footprint:
    """The footprint of a network.

    Args:
        network: one seed's.
        steps: so many steps as the network takes them, on the `meta` device.
    """
    # What every batch costs once is in one step as it is in two.
    one, two = (_measured(network, steps(number)) for number in (1, 2))
    forward, training, activations = (more - less for less, more in zip(one, two, strict=True))
    return Footprint(forward, training, activations, sum(weight.numel() for weight in network.parameters()))


def _measured(network: nn.Module, given: tuple[Tensor, ...]) -> tuple[int, int, int]:
    weights = {
        name: torch.empty(weight.shape, device="meta", requires_grad=True)
        for name, weight in network.named_parameters()
    }
    own = {weight.untyped_storage()._cdata for weight in weights.values()}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        # Views of one storage are kept once.
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with FlopCounterMode(display=False) as count, torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        outputs = functional_call(network, weights, given)
        forward = count.get_total_flops()
        torch.stack([output.sum() for output in outputs]).sum().backward()
    size = sum(tensor.untyped_storage().nbytes() for place, tensor in kept.items() if place not in own)
    return forward, count.get_total_flops(), size


def room_on(device: torch.device) -> int | None:
    """Bytes that this process may still take of a GPU, which other runs may share; None for a CPU."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        taken = torch.cuda.memory_allocated(device)
        mine = total // int(os.environ.get(RUNS_ON_A_GPU, "1")) - taken
        return max(0, min(mine, free + torch.cuda.memory_reserved(device) - taken))
    if device.type == "mps":
        return max(0, torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory())
    return None
