"""Many seeds of one network as one module: parameters with a leading seed axis.

Where a run trains several points of a family, the axis is of points and seeds: each seed comes once a point, and begins
with the same network on each.

How the seed axis is executed is decided by measurement: `vmap` turns the layers of an MLP into batched matrix
products and wins by far with many seeds; convolutions become grouped convolutions under `vmap`, which a CPU
trains more slowly than a loop over seeds.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from lcd.envs.streams import seed_sequence


class Population(nn.Module):
    """One network for each seed, with stacked parameters.

    Args:
        build: makes one network; called once for each different seed under that seed's initialisation stream.
        seeds: the run's seeds.
        execution: `vmap`, `loop`, or `auto` (`loop` for one seed and for convolutions, else `vmap`).
        compiled: where no gradient is asked for, run what torch.compile makes of the network.
    """

    def __init__(
        self, build: Callable[[], nn.Module], seeds: Sequence[int], execution: str = "auto", compiled: bool = False
    ):
        super().__init__()
        of_seed = {seed: _build_seeded(build, seed) for seed in dict.fromkeys(seeds)}
        networks = [of_seed[seed] for seed in seeds]
        stacked, buffers = stack_module_state(networks)
        if buffers:
            raise TypeError("a population's network may not have buffers: they would be shared by its seeds")
        self.names = list(stacked)
        self.weights = nn.ParameterList(stacked.values())
        # A list hides the template from nn.Module: its parameters are only placeholders.
        self._template = [networks[0].to("meta")]
        self._slots = [_slot(networks[0], name) for name in self.names]
        if execution == "auto":
            execution = "loop" if len(seeds) == 1 or _has_convolutions(networks[0]) else "vmap"
        self.execution = execution
        self._compiled: Any = torch.compile(self._call_one) if compiled else None
        self._shard: list[Tensor] | None = None

    @property
    def template(self) -> nn.Module:
        """A network of one seed, whose weights mean nothing."""
        return self._template[0]

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Apply each seed's network to its own batch: (seeds, batch, …) → outputs of (seeds, batch, …)."""
        if self._compiled is not None and not torch.is_grad_enabled():
            return self._call_compiled(*inputs)
        call = self._call_vmap if self.execution == "vmap" else self._call_loop
        return call(*inputs)

    def _call_one(self, weights: dict[str, Tensor], *batch: Tensor) -> tuple[Tensor, ...]:
        return functional_call(self._template[0], weights, batch)

    def _call_compiled(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        outputs = []
        for seed, batch in enumerate(zip(*(given.unbind(0) for given in inputs), strict=True)):
            weights = {name: weight[seed] for name, weight in zip(self.names, self.weights, strict=True)}
            outputs.append(self._compiled(weights, *batch))
        return tuple(torch.stack(parts) for parts in zip(*outputs, strict=True))

    def _call_vmap(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        weights = dict(zip(self.names, self._here(), strict=True))
        return vmap(lambda w, *x: functional_call(self._template[0], w, x))(weights, *inputs)

    def _call_loop(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        # unbind's backward is one stack; indexing seed by seed would write a full-size gradient for each seed.
        columns = zip(*(weight.unbind(0) for weight in self._here()), strict=True)
        outputs = []
        batches = zip(*(given.unbind(0) for given in inputs), strict=True)
        for weights, batch in zip(columns, batches, strict=True):
            # What functional_call does, without its bookkeeping: that takes as long as a small network.
            for (parameters, name), weight in zip(self._slots, weights, strict=True):
                parameters[name] = weight
            outputs.append(self._template[0](*batch))
        return tuple(torch.stack(parts) for parts in zip(*outputs, strict=True))

    def _here(self) -> Iterable[Tensor]:
        """The parameters that a call applies."""
        return self.weights if self._shard is None else self._shard

    @contextmanager
    def only(self, seeds: slice) -> Iterator[list[Tensor]]:
        """Within this, a call applies the networks of some seeds alone; their gradients are added to those of all.

        It gives their parameters, which share the memory of those of all.
        """
        shard: list[Tensor] = []
        for weight in self.weights:
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            # A leaf that shares its memory: slicing the weight itself would write a gradient as large as all of it.
            part = weight.detach()[seeds].requires_grad_()
            part.grad = weight.grad[seeds]
            shard.append(part)
        self._shard = shard
        try:
            yield shard
        finally:
            self._shard = None

    @torch.no_grad()
    def clip_gradients(self, max_norm: float) -> Tensor:
        """Scale each seed's gradient to at most `max_norm`; returns the norms before, (seeds,)."""
        gradients = [weight.grad for weight in self.weights if weight.grad is not None]
        squares = [gradient.flatten(1).square().sum(1) for gradient in gradients]
        norms = torch.stack(squares).sum(0).sqrt()
        scale = (max_norm / (norms + 1e-6)).clamp(max=1.0)
        for gradient in gradients:
            gradient.mul_(scale.view(-1, *[1] * (gradient.dim() - 1)))
        return norms


def _build_seeded(build: Callable[[], nn.Module], seed: int) -> nn.Module:
    state = seed_sequence(seed, "initialisation").generate_state(1, np.uint64)[0]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(state >> np.uint64(1)))
        return build()


def _slot(network: nn.Module, name: str) -> tuple[dict[str, Tensor | None], str]:
    """Where a network keeps one of its parameters."""
    path, _, leaf = name.rpartition(".")
    return network.get_submodule(path)._parameters, leaf


def _has_convolutions(network: nn.Module) -> bool:
    return any(isinstance(module, nn.modules.conv._ConvNd) for module in network.modules())
