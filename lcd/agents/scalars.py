"""The scalars of training: what an agent tells of its last update, read from the device once a row."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lcd.agents.protocols import ReportsLosses, ReportsScalars
from lcd.agents.ranks import ALONE, Ranks
from lcd.envs.protocols import offers

MOST_ROWS = 1000
"""Rows of a seed over a whole run, about: where there are more updates, rows tell of every n-th."""


def spacing(steps: int) -> int:
    """The environment steps of a seed between two rows, at the least."""
    return max(1, -(-steps // MOST_ROWS))


def crosses(before: int, now: int, every: int) -> bool:
    """Whether a multiple of `every` lies between two steps; no memory of the last row is needed."""
    return now // every > before // every


def scalars_of(agent: object) -> Mapping[str, Any]:
    """What an agent tells: its scalars, else its losses, else nothing."""
    if offers(agent, ReportsScalars):
        return agent.scalars
    return agent.losses if offers(agent, ReportsLosses) else {}


def by_member(scalars: Mapping[str, Any], members: int) -> dict[str, np.ndarray]:
    """Each scalar as (members,) numbers, what is of everybody repeated; all that lie on a device come in one copy."""
    tensors = {name: value for name, value in scalars.items() if isinstance(value, Tensor)}
    if tensors:
        rows = [value.detach().float().flatten().expand(members) for value in tensors.values()]
        tensors = dict(zip(tensors, torch.stack(rows).cpu().double().numpy(), strict=True))
    return {
        name: np.broadcast_to(np.asarray(tensors.get(name, value), dtype=float), members)
        for name, value in scalars.items()
    }


@torch.no_grad()
def explained_variance(values: Tensor, targets: Tensor, weights: Tensor, ranks: Ranks = ALONE) -> Tensor:
    """1 − Var(targets − values) / Var(targets) over a rollout's weighted steps, (seeds,); not finite where Var is 0."""
    both = torch.stack([targets - values, targets]).flatten(2)
    weights = weights.flatten(1)
    number = ranks.sum(weights.sum(-1)).clamp(min=1)
    mean = ranks.sum((both * weights).sum(-1)) / number
    errors, total = ranks.sum(((both - mean[..., None]).square() * weights).sum(-1))
    return 1 - errors / total


def machine(device: torch.device | None = None) -> dict[str, float]:
    """The most memory that this process and what it has on its GPU have taken so far, and how busy that GPU is."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    found = {"memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6}
    if device is not None and device.type == "cuda":
        found["gpu_memory_mb"] = torch.cuda.max_memory_allocated(device) / 1e6
        # Without NVIDIA's own library there is no telling, and what is missing differs.
        with contextlib.suppress(Exception):
            found["gpu_percent"] = float(torch.cuda.utilization(device))
    return found
