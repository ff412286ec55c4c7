"""Whether what a run computes with are still finite numbers, each seed looked at on its own.

What has a host array at hand is looked at there: floating observations when they are seen, rewards once a rollout,
returns before they become rows. Losses and weights are looked at once an iteration, by one number that is read from
the device; only where that is not finite is it asked what is wrong, and of which seed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lcd.agents.protocols import ReportsLosses, precision_of
from lcd.envs.errors import Diverged
from lcd.envs.protocols import offers


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


def require_finite(what: str, values: np.ndarray, seeds: Sequence[int], step: int) -> None:
    """Refuse values that are not finite.

    Args:
        what: what they are, as "a reward".
        values: any number for each seed, those of the first seed first.
        seeds: the run's.
        step: environment steps of a seed so far.
    """
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    raise diverged(what, np.isfinite(values).reshape(len(seeds), -1).all(1), seeds, step)


def require_finite_agent(agent: Any, seeds: Sequence[int], step: int) -> None:
    """Refuse an agent whose weights or last losses are not finite.

    Args:
        agent: its trained parameters have the seed as their leading axis, and so have its `losses` (by name).
        seeds: the run's.
        step: environment steps of a seed so far.
    """
    weights = [weight.detach() for weight in agent.parameters() if weight.requires_grad]
    losses = _losses(agent)
    if _all_finite([*losses.values(), *weights]):
        return
    named = {"a weight": weights} | {f"the loss '{name}'": [loss] for name, loss in losses.items()}
    for what, tensors in named.items():
        finite = np.all([_finite_by_seed(tensor, len(seeds)) for tensor in tensors], axis=0)
        if not finite.all():
            raise diverged(what, finite, seeds, step)


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


def _finite_by_seed(tensor: Tensor, seeds: int) -> np.ndarray:
    """Which seeds' part is finite; what has no axis of seeds is everybody's."""
    if tensor.dim() == 0 or tensor.shape[0] != seeds:
        return np.full(seeds, bool(tensor.isfinite().all()))
    return tensor.isfinite().flatten(1).all(1).cpu().numpy() if tensor.dim() > 1 else tensor.isfinite().cpu().numpy()
