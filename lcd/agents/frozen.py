"""A front-end in policy learning: frozen, and applied once to each observation.

Minibatches need the features of a rollout again. Either the rollout keeps them, which costs memory or room on a disk,
or it keeps the observations and features are made anew for each minibatch, which costs a pass through the front-end in
every epoch.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import Space
from torch import Tensor, nn

from lcd.envs.protocols import offers
from lcd.frontends.protocols import HalfIsSafe
from lcd.process.limits import readable_size

GIB = 2**30
HALF = torch.float16
FEATURES, FILE, OBSERVATIONS = "features", "file", "observations"


class FrozenFrontend(nn.Module):
    """Makes features of observations, always in eval mode and without gradients.

    It is shared by all seeds of a run, moves between devices with the agent, and is no part of its checkpoints: what
    never changes needs no saving.

    Features of half precision are rounded as soon as they are made, so that an agent learns from exactly what it acted
    on, whether features are kept or made anew.

    Args:
        frontend: the front-end.
        precision: `half`, `full`, or `auto`: half where the front-end says that it is safe (`half_is_safe`).
            Half means float16 in what is kept, and in computing where the device is a GPU; a CPU computes in float32.
        keep: what rollouts keep: `features`, features in a `file`, or `observations`.
        batch: observations that features are made of at once when they are made anew; 0: all of them.
        axes: of one observation.
    """

    def __init__(
        self, frontend: nn.Module, precision: str = "auto", keep: str = "features", batch: int = 0, axes: int = 3
    ):
        super().__init__()
        # A list hides the front-end from state_dict, from train() and from whoever looks for parameters to train.
        self._frontend = [frontend.requires_grad_(False).eval()]
        safe = offers(frontend, HalfIsSafe) and bool(frontend.half_is_safe)
        self.half_precision = precision == "half" or (precision == "auto" and safe)
        self.keep, self.batch, self.axes = keep, batch, axes
        self.folder: Path | None = None
        """On whose disk features in a file are kept; None: where temporary files lie."""
        self.sizes: Kept | None = None

    @property
    def in_file(self) -> bool:
        """Are a rollout's features kept in a file?"""
        return self.keep == FILE

    @property
    def frontend(self) -> nn.Module:
        """What is frozen."""
        return self._frontend[0]

    def _apply(self, fn: Any, recurse: bool = True) -> FrozenFrontend:
        self.frontend._apply(fn)
        return super()._apply(fn, recurse)

    @torch.no_grad()
    def forward(self, observations: Tensor) -> Tensor:
        """Features of a batch of observations, (N, …), in the type that networks take."""
        with self._precision(observations.device):
            features = self.frontend(observations)
        if not features.is_floating_point():
            return features
        return self._rounded(features).float() if self.half_precision else features

    def kept(self, observations: Tensor, features: Tensor) -> Tensor:
        """What a rollout keeps of observations, of which `features` have just been made."""
        if self.keep == OBSERVATIONS:
            return observations
        return features.to(HALF) if self.half_precision and features.is_floating_point() else features

    def features_of(self, kept: Tensor) -> Tensor:
        """Features of what a rollout kept, whatever axes lead."""
        if self.keep != OBSERVATIONS:
            return kept.float() if kept.dtype == HALF else kept
        leading = kept.ndim - self.axes
        flat = kept.flatten(0, leading - 1)
        features = torch.cat([self._alone(part) for part in flat.split(self.batch or len(flat))])
        return features.unflatten(0, kept.shape[:leading])

    def _alone(self, observations: Tensor) -> Tensor:
        """Features of a part, in batches of the size that acting has: sums are then rounded as they were there."""
        missing = self.batch - len(observations)
        if missing <= 0:
            return self(observations)
        filled = torch.cat([observations, observations[-1:].expand(missing, *observations.shape[1:])])
        return self(filled)[: len(observations)]

    def _precision(self, device: torch.device) -> AbstractContextManager[Any]:
        """The same arithmetic wherever it happens: acting lies outside Lightning's own context, learning inside."""
        on_gpu = device.type != "cpu"
        return torch.autocast(
            device.type, dtype=HALF if on_gpu else torch.bfloat16, enabled=self.half_precision and on_gpu
        )

    def _rounded(self, features: Tensor) -> Tensor:
        largest = torch.finfo(HALF).max
        return features.clamp(-largest, largest).to(HALF)


@dataclass(frozen=True)
class Kept:
    """What rollouts keep, of sizes alone, so that a run is the same wherever and whenever it is trained.

    Making features anew is never the faster way where a front-end is more than a view of the observations (it would
    take its time in every epoch), so features are kept whenever they fit: in memory, else in a file.

    Attributes:
        keep: `features` or `observations` decide it; `auto` does not.
        features: bytes of the features of one step.
        observations: bytes of the observations of one step.
        steps: how many steps an agent keeps at a time, those of all seeds together.
        memory_gb: GiB of memory that features may take.
        disk_gb: GiB that they may take in a file where memory is not enough.
    """

    keep: str
    features: int
    observations: int
    steps: int
    memory_gb: float
    disk_gb: float = 0.0

    @property
    def choice(self) -> str:
        """What is kept: `features`, features in a `file`, or `observations`."""
        if self.keep == OBSERVATIONS:
            return self.keep
        if self.features <= self.observations or self.size <= self.memory_gb * GIB:
            return FEATURES
        if self.size <= self.disk_gb * GIB:
            return FILE
        return FEATURES if self.keep == FEATURES else OBSERVATIONS

    @property
    def size(self) -> int:
        """Bytes of all features."""
        return self.features * self.steps

    @property
    def sentence(self) -> str | None:
        """What a user is told before training starts, where features do not lie in memory."""
        if self.keep == OBSERVATIONS or self.choice == FEATURES:
            return None
        size = readable_size(self.size)
        if self.choice == FILE:
            return f"The features of the front-end take {size} at a time, in a file of the run's folder."
        return (
            f"The features of the front-end would take {size} at a time, more than "
            f"frontend.memory_gb={self.memory_gb:g} and frontend.disk_gb={self.disk_gb:g} allow, so observations pass "
            f"through it again in every epoch: frontend.disk_gb={math.ceil(self.size / GIB)} would keep them."
        )


def freeze(
    frontend: nn.Module,
    space: Space,
    *,
    keep: str,
    memory_gb: float,
    precision: str,
    copies: int,
    steps: int,
    disk_gb: float = 0.0,
) -> tuple[FrozenFrontend, tuple[int, ...]]:
    """A front-end ready for policy learning, and the shape of one feature.

    Args:
        frontend: the front-end.
        space: of one observation.
        keep: as in `Kept`.
        memory_gb: as in `Kept`.
        precision: as in `FrozenFrontend`.
        copies: observations that are seen at once.
        steps: how many steps an agent keeps at a time.
        disk_gb: as in `Kept`.
    """
    frozen = FrozenFrontend(frontend, precision, batch=copies, axes=len(space.shape))
    observation = torch.from_numpy(np.zeros((1, *space.shape), space.dtype))
    features = frozen(observation)
    kept = frozen.kept(observation, features)
    frozen.sizes = Kept(keep, kept.nbytes, observation.nbytes, steps, memory_gb, disk_gb)
    frozen.keep = frozen.sizes.choice
    return frozen, tuple(features.shape[1:])
