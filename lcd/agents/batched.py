"""Small networks of many members of a run, whose layers are batched matrix products.

Updates come in bouts. A few members at a time (a shard) go through a whole bout, so that their networks, gradients and
moments stay in a CPU's caches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.optim.adam import adam

from lcd.envs.streams import seed_sequence

Layers = list[Tensor]
"""Weights (members, inputs, outputs) and biases (members, 1, outputs) of each layer in turn."""
BENDS = {"relu": functional.relu, "tanh": torch.tanh}
"""What hidden layers end with."""
SLOPES: dict[str, Any] = {
    "relu": lambda slope, bent: torch.ops.aten.threshold_backward(slope, bent, 0),
    "tanh": torch.ops.aten.tanh_backward,
}
"""What slopes are before it, given those behind it and what it made."""
LANES = 32
"""Numbers that a CPU works on at once. What is left over may be rounded otherwise, so rows are filled up to it."""


def initial(sizes: Iterable[tuple[int, int]], seeds: Sequence[int], *network: int) -> Layers:
    """Layers that start as PyTorch's own do, each seed's from its stream; the same wherever a seed comes twice.

    Args:
        sizes: inputs and outputs of each layer.
        seeds: the members'.
        network: which of several networks, each of which has a stream of its own.
    """
    streams = {seed: seed_sequence(seed, "initialisation", *network) for seed in dict.fromkeys(seeds)}
    of_seed = {seed: np.random.default_rng(stream) for seed, stream in streams.items()}
    layers = []
    for given, made in sizes:
        for shape in ((given, made), (1, made)):
            drawn = {seed: rng.uniform(-1, 1, shape) * given**-0.5 for seed, rng in of_seed.items()}
            layers.append(torch.from_numpy(np.stack([drawn[seed] for seed in seeds]).astype(np.float32)))
    return layers


def outputs_of(layers: Layers, inputs: Tensor, activation: str = "relu") -> Tensor:
    """What networks make of their inputs, (members, batch, outputs); hidden layers are rectified, or `tanh`."""
    bend = BENDS[activation]
    for number in range(0, len(layers), 2):
        weight, bias = layers[number : number + 2]
        inputs = torch.baddbmm(bias, inputs if number == 0 else bend(inputs), weight)
    return inputs


def average(values: Tensor, valid: Tensor) -> Tensor:
    """Each member's mean over its valid transitions, (members,)."""
    return (values * valid).sum(-1) / valid.sum(-1).clamp(min=1)


@torch.no_grad()
def clip(gradient: Tensor, most: float) -> Tensor:
    """Scale each network's gradient, a row, to at most this norm; the norms before, (networks,)."""
    norms = torch.linalg.vector_norm(gradient, dim=1)
    if bool((norms < 0.99 * most).all()):
        return norms
    norms = gradient.square().sum(1).sqrt()
    gradient.mul_((most / (norms + 1e-6)).clamp(max=1.0)[:, None])
    return norms


def shared_out(members: int, together: int) -> list[slice]:
    """Members in shards of `together` or more; never one alone among others, which would be rounded otherwise."""
    edges = np.linspace(0, members, max(1, members // max(2, together)) + 1).astype(int)
    return [slice(*pair) for pair in pairwise(edges.tolist())]


class Rows:
    """Networks of one shape, all numbers of one in a row; the layers are parts of the rows, not copies.

    Args:
        numbers: (networks, numbers), as `Rows.of` makes them.
        shapes: of the layers of one network.
        gradients: where gradients are written, by the number of networks; parts of the same rows share it, as a
            processor's cache holds what is written again and again.
    """

    def __init__(self, numbers: Tensor, shapes: Sequence[torch.Size], gradients: dict[int, Tensor] | None = None):
        self.numbers, self.shapes = numbers, shapes
        self.gradients = {} if gradients is None else gradients
        self.layers = [part.requires_grad_() for part in _parts(numbers, shapes)]
        self.whole = numbers.detach().requires_grad_()

    @classmethod
    def of(cls, layers: Layers) -> Rows:
        """Rows with these layers' values."""
        return cls(_in_rows(layers), [layer.shape[1:] for layer in layers])

    def __getitem__(self, rows: slice) -> Rows:
        return Rows(self.numbers[rows], self.shapes, self.gradients)

    def clone(self) -> Rows:
        """Rows of the same values in a memory of their own."""
        return Rows(self.numbers.clone(), self.shapes)

    @property
    def fixed(self) -> Layers:
        """The layers, for what is not to learn."""
        return [layer.detach() for layer in self.layers]

    def spare(self) -> Tensor:
        """Where a gradient is written, and the next one in its place."""
        if (row := self.gradients.get(len(self.numbers))) is None:
            row = self.gradients[len(self.numbers)] = torch.zeros_like(self.numbers)
        return row

    def parts(self, rows: Tensor) -> Layers:
        """The layers that other rows of these shapes hold."""
        return _parts(rows, self.shapes)

    def outputs(self, inputs: Tensor, activation: str) -> Tensor:
        """As `outputs_of` of the layers, to the last bit, with a gradient that is worked out in a row at once."""
        if torch.is_autocast_enabled("cpu"):
            return outputs_of(self.layers, inputs, activation)
        return _Outputs.apply(self.whole, self, inputs, activation)

    def gradient(self, losses: Tensor) -> Tensor:
        """How each network's losses, which are its own, change with its row; the next one may take its place."""
        row, *parts = torch.autograd.grad(losses.sum(), [self.whole, *self.layers], allow_unused=True)
        return _in_rows(parts) if row is None else row


class _Outputs(torch.autograd.Function):
    """`outputs_of`, and its gradient by the same products that PyTorch would form, written where `Rows` wants them."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, rows: Rows, inputs: Tensor, activation: str) -> Tensor:
        layers, bend, kept = [layer.detach() for layer in rows.layers], BENDS[activation], [inputs]
        for weight, bias in zip(layers[::2], layers[1::2], strict=True):
            kept.append(torch.baddbmm(bias, kept[-1], weight))
            if len(kept) <= len(layers) // 2:
                kept[-1] = bend(kept[-1])
        ctx.layers, ctx.rows, ctx.kept, ctx.activation = layers, rows, kept, activation
        return kept[-1]

    @staticmethod
    def backward(ctx: Any, *towards: Tensor) -> tuple[Tensor, None, None, None]:
        (slope,) = towards
        row = ctx.rows.spare()
        places = ctx.rows.parts(row)
        for layer in range(len(ctx.layers) // 2 - 1, -1, -1):
            given = ctx.kept[layer]
            torch.bmm(given.mT, slope, out=places[2 * layer])
            torch.sum(slope, 1, keepdim=True, out=places[2 * layer + 1])
            if layer:
                back = torch.bmm(slope, ctx.layers[2 * layer].mT)
                slope = SLOPES[ctx.activation](back, given)
        return row, None, None, None


def _parts(rows: Tensor, shapes: Sequence[torch.Size]) -> Layers:
    """The layers that rows hold, as parts of them."""
    ends = np.cumsum([shape.numel() for shape in shapes]).tolist()
    return [rows[:, end - shape.numel() : end].view(-1, *shape) for shape, end in zip(shapes, ends, strict=True)]


class Learning:
    """Rows that learn by Adam.

    Args:
        rows: networks.
        learning_rate: Adam's step size.
        eps: Adam's ε.
    """

    def __init__(self, rows: Tensor, learning_rate: float, eps: float = 1e-8):
        self.rows, self.how = rows.detach(), {"lr": learning_rate, "eps": eps}
        self.means, self.squares, self.steps = torch.zeros_like(rows), torch.zeros_like(rows), torch.zeros(())

    @torch.no_grad()
    def step(self, gradient: Tensor) -> None:
        """One step, without what `torch.optim.Adam` does around it, which took a quarter as long."""
        kind: dict[str, Any] = {"amsgrad": False, "maximize": False, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0}
        moments = [self.means], [self.squares]
        adam([self.rows], [gradient], *moments, [], [self.steps], fused=True, **kind, **self.how)


def _in_rows(parts: list[Tensor]) -> Tensor:
    """(networks, numbers), filled up to a multiple of `LANES`."""
    rows = [part.detach().flatten(1) for part in parts]
    left = -sum(row.shape[1] for row in rows) % LANES
    return torch.cat([*rows, rows[0].new_zeros(len(rows[0]), left)], dim=1)
