"""Whether what a run computes with are still finite numbers, each member looked at on its own.

What has a host array at hand is looked at there: floating observations when they are seen, rewards once a rollout,
returns before they become rows. Losses and weights are looked at once an iteration, by one number that is read from
the device; only where that is not finite is it asked what is wrong, and of whom.

A run on several points of a family goes on without a point of which a member diverged (`Lost`). What is not finite of
that member becomes 0, so that it stays its own trouble.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from lcd.agents.memory import recall, restore
from lcd.agents.protocols import LosesPoints, ReportsLosses, precision_of
from lcd.envs.errors import Diverged
from lcd.envs.protocols import offers


class Lost:
    """The points of which a member diverged. A run that has no other ones has diverged itself.

    Args:
        seeds: of each member.
        points: of each member what it is trained on, by what curves call it; without them all stand and fall together.
        tolerant: whether the run goes on without such points.

    Attributes:
        why: what is not finite, by the point.
    """

    def __init__(self, seeds: Sequence[int], points: Sequence[str] = (), tolerant: bool = True):
        self.seeds = list(seeds)
        self.points = np.array(points or [""] * len(self.seeds), dtype=object)
        self.tolerant = tolerant
        self.why: dict[str, str] = {}

    def take(self, what: str, finite: np.ndarray, step: int) -> None:
        """Lose the points of the members that are not `finite`.

        Raises:
            Diverged: when no point is left.
        """
        fresh = [point for point in dict.fromkeys(self.points[~finite].tolist()) if point not in self.why]
        if fresh and not self.tolerant:
            raise diverged(what, finite, self.seeds, step)
        for point in fresh:
            mine = self.points == point
            seeds = [seed for seed, own in zip(self.seeds, mine, strict=True) if own]
            self.why[point] = str(diverged(what, finite[mine], seeds, step))
        if fresh and not self.left:
            raise Diverged(self.why[fresh[0]])

    @property
    def left(self) -> list[str]:
        """The points that are not lost."""
        return [point for point in dict.fromkeys(self.points.tolist()) if point not in self.why]


def lost_of(agent: object, seeds: Sequence[int]) -> Lost:
    """What the run of an agent with these members has lost."""
    return agent.lost if offers(agent, LosesPoints) else Lost(seeds)


def diverged(what: str, finite: Sequence[bool] | np.ndarray, seeds: Sequence[int], step: int) -> Diverged:
    """The error of the seeds that are not `finite`; `what` is a noun that can be one's or several's.

    A seed that comes several times is that of as many members, one for each point of a family.
    """
    lost = [seed for seed, good in zip(seeds, finite, strict=True) if not good]
    names = [str(seed) for seed in dict.fromkeys(lost)]
    if len(set(seeds)) < len(seeds):
        what = f"{what} of {len(lost)} of {len(seeds)} members,"
    most = ", ".join(names[:-1])
    whose = f"seeds {most} and {names[-1]}" if most else f"seed {names[-1]}"
    return Diverged(f"{what} of {whose} is not finite at step {step}")


def require_finite(
    what: str, values: np.ndarray, seeds: Sequence[int], step: int, lost: Lost | None = None
) -> np.ndarray:
    """Values that are finite; where they are not, and the run goes on without their points, zeros.

    Args:
        what: what they are, as "a reward".
        values: any number for each member, those of the first member first.
        seeds: of each member.
        step: environment steps of a seed so far.
        lost: the points that the run goes on without.

    Raises:
        Diverged: when it cannot.
    """
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return values
    good = np.isfinite(values)
    (lost or Lost(seeds)).take(what, good.reshape(len(seeds), -1).all(1), step)
    return np.where(good, values, np.zeros_like(values))


def require_finite_agent(agent: Any, seeds: Sequence[int], step: int, optimizers: Iterable[Optimizer] = ()) -> None:
    """Look for weights or last losses that are not finite; members that the run goes on without start from zeros.

    Args:
        agent: its trained parameters have the member as their leading axis, and so have its `losses` (by name).
        seeds: of each member.
        step: environment steps of a seed so far.
        optimizers: of its parameters.

    Raises:
        Diverged: when the run cannot go on.
    """
    weights = [weight.detach() for weight in agent.parameters() if weight.requires_grad]
    losses = _losses(agent)
    if _all_finite([*losses.values(), *weights]):
        return
    named = {"a weight": weights} | {f"the loss '{name}'": [loss] for name, loss in losses.items()}
    whole = np.ones(len(seeds), dtype=bool)
    for what, tensors in named.items():
        finite = np.all([_finite_by_member(tensor, len(seeds)) for tensor in tensors], axis=0)
        whole &= finite
        if not finite.all():
            lost_of(agent, seeds).take(what, finite, step)
    if not whole.all():
        _start_from_zeros(agent, weights, optimizers, np.flatnonzero(~whole).tolist())


@torch.no_grad()
def _start_from_zeros(agent: Any, weights: list[Tensor], optimizers: Iterable[Optimizer], members: list[int]) -> None:
    """Set members' weights, moments and memories to 0: else what they do next is not finite either."""
    moments = [each for optimizer in optimizers for state in optimizer.state.values() for each in state.values()]
    own = [each for each in moments if isinstance(each, Tensor) and each.dim() > 0]
    for tensor in (*weights, *own):
        tensor[members] = 0
    restore(agent, {name: memory.nan_to_num() for name, memory in recall(agent).items()})


def _losses(agent: Any) -> dict[str, Tensor]:
    if not offers(agent, ReportsLosses):
        return {}
    # In fp16 a gradient that overflows is ordinary: the step is left out, and the scale made smaller.
    scaled = precision_of(agent) == "16-mixed"
    return {
        name: loss.detach()
        for name, loss in agent.losses.items()
        if isinstance(loss, Tensor) and not (scaled and name.endswith("grad_norm"))
    }


@torch.no_grad()
def _all_finite(tensors: list[Tensor]) -> bool:
    """Are they all finite, by one number from the device? Sums of large numbers may say no where it is yes."""
    sums = [tensor.sum(dtype=torch.float32) for tensor in tensors]
    return not sums or bool(torch.stack(sums).sum().isfinite())


def _finite_by_member(tensor: Tensor, members: int) -> np.ndarray:
    """Which members' part is finite; what has no axis of members is everybody's."""
    if tensor.dim() == 0 or tensor.shape[0] != members:
        return np.full(members, bool(tensor.isfinite().all()))
    return tensor.isfinite().flatten(1).all(1).cpu().numpy() if tensor.dim() > 1 else tensor.isfinite().cpu().numpy()
