"""The processes that train one run together: each is a rank with its own share of the environment copies.

Whatever is averaged over copies or samples is averaged over those of all ranks, and gradients are summed, so that N
ranks compute what one process with all of their copies and minibatches would. With one rank nothing is computed at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from lcd.envs.streams import seed_sequence


@dataclass(frozen=True)
class Ranks:
    """What one of the processes knows about all of them.

    Attributes:
        rank: this process's number, from 0.
        world: how many there are.
        host: the group that exchanges what lies in the host's memory; None if this process is alone.
    """

    rank: int = 0
    world: int = 1
    host: dist.ProcessGroup | None = None

    @property
    def branch(self) -> tuple[str | int, ...]:
        """What names this rank's random streams; the first rank's are those of a process that is alone."""
        return ("rank", self.rank) if self.rank else ()

    def seeds(self, seeds: Sequence[int], *branch: str | int) -> list[int]:
        """The seeds with which this rank's environments start, for a branch of each seed."""
        return [int(seed_sequence(seed, *branch, *self.branch).generate_state(1)[0]) for seed in seeds]

    def sum(self, value: Tensor) -> Tensor:
        """The sum over ranks of a tensor that needs no gradient."""
        if self.world == 1:
            return value
        total = value.detach().clone()
        dist.all_reduce(total)
        return total

    @torch.no_grad()
    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give each parameter the sum over ranks of its gradients: once for an optimiser step, all in one exchange.

        Losses divide by the weight of all ranks' samples, so that this sum is the gradient of their mean.
        """
        if self.world == 1:
            return
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        for gradient, total in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(total.view_as(gradient))

    @torch.no_grad()
    def share(self, tensors: Iterable[Tensor]) -> None:
        """Give all ranks the first rank's values."""
        if self.world > 1:
            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def gather(self, value: Any) -> list[Any]:
        """Every rank's value, in the order of the ranks, for all of them."""
        if self.world == 1:
            return [value]
        values: list[Any] = [None] * self.world
        dist.all_gather_object(values, value, group=self.host)
        return values

    def gather_first(self, value: Any) -> list[Any] | None:
        """Every rank's value for the first rank, None for the others."""
        if self.world == 1:
            return [value]
        values = [None] * self.world if self.rank == 0 else None
        dist.gather_object(value, values, dst=0, group=self.host)
        return values


ALONE = Ranks()
