"""Small networks that are asked about every state there is, where observations are one-hot vectors of few states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lcd.agents.batched import Rows

NUMPYS = 2**19
"""Multiplications of a product up to which NumPy forms it sooner than PyTorch does; `tanh` it always does."""
Bend = Callable[[np.ndarray], Any]
BENDS: dict[str, Bend] = {"relu": lambda z: np.maximum(z, 0, out=z), "tanh": lambda z: np.tanh(z, out=z)}
"""What hidden layers end with, written in place."""
SLOPES: dict[str, Bend] = {"relu": lambda bent: bent > 0, "tanh": lambda bent: 1 - bent * bent}
"""How much that changes, given what it made."""


class EveryState:
    """Networks and what they say of every state: those of a few members, which a CPU's caches hold.

    The product of one-hot observations with the first layer's weights is these weights.

    Args:
        rows: the networks.
        activation: what hidden layers end with.
        said: where is written what they say, (networks, states, actions).
    """

    def __init__(self, rows: Rows, activation: str, said: np.ndarray):
        layers = [layer.numpy() for layer in rows.fixed]
        self.rows, self.said = rows, said
        self.weights, self.biases = layers[::2], layers[1::2]
        self.bend, self.slope = BENDS[activation], SLOPES[activation]
        shape = said.shape[:2]
        self.hidden = [np.empty((*shape, weight.shape[2]), np.float32) for weight in self.weights[:-1]]
        self.gradient = rows.spare()
        self.places = [part.numpy() for part in rows.parts(self.gradient)]

    def ask(self) -> None:
        """Ask the networks as they are now."""
        every = [*self.hidden, self.said]
        np.add(self.weights[0], self.biases[0], out=every[0])
        for given, made, weight, bias in zip(every[:-1], every[1:], self.weights[1:], self.biases[1:], strict=True):
            self.bend(given)
            np.add(product(given, weight, made), bias, out=made)

    def towards(self, slope: np.ndarray) -> Tensor:
        """How something changes with the networks that were asked last, in rows, given how with what they said."""
        for layer in range(len(self.hidden), 0, -1):
            given, (weight, bias) = self.hidden[layer - 1], self.places[2 * layer : 2 * layer + 2]
            product(given.swapaxes(1, 2), slope, weight)
            slope.sum(1, keepdims=True, out=bias)
            turned = np.ascontiguousarray(slope.swapaxes(1, 2))
            back = product(self.weights[layer], turned, np.empty_like(given.swapaxes(1, 2), order="C"))
            slope = back.swapaxes(1, 2) * self.slope(given)
        self.places[0][:] = slope
        slope.sum(1, keepdims=True, out=self.places[1])
        return self.gradient


def product(left: np.ndarray, right: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Matrix products of each network's matrices."""
    if out[0].size * left.shape[2] <= NUMPYS:
        return np.matmul(left, right, out=out)
    torch.bmm(torch.from_numpy(left), torch.from_numpy(right), out=torch.from_numpy(out))
    return out
