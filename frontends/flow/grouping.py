"""What teaches an encoder of groups: pixels keep their group while time goes on, and what moves by itself stands out.

Two groups of maps are taught by one sort of loss, mutual information: of the map that a pixel is given in frame t and
of the one that the same thing is given some frames later (Ji et al. 2019, between copies of an image; here time makes
the copies). It is greatest where all maps are used alike and what is given is given again. Tables of who was given
what are kept for each task, as running means: one batch holds too little of what is rare.

- Looks are asked everywhere, where something moves by itself more often.
- Things are asked where something moves by itself alone; elsewhere their first map is to say that nothing does.
- Of things that move, one pixel's neighbour that moves alike is taken for the later frame: what moves together is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from lcd.frontends.flow.own_motion import Motion, even_weights, filled

KEPT = 0.9
"""Of the tables, from one batch to the next."""
OWN_SHARE = 0.1
"""Of the weight that looks give to what moves by itself."""
MOVING_SHARE, STANDS_OUT = 0.3, 10.0
"""Weight of moving pixels against the others in telling them apart, and of that against mutual information."""
FEWEST = 3
"""Frames with no more moving pixels than these are all scenery."""
ALIKE = 1
"""Pixels by which displacements of neighbours may differ that move alike."""
TINY, EMPTY = 1e-6, 1e-9


class Lesson(NamedTuple):
    """The losses of a batch."""

    loss: Tensor
    stands_out: Tensor
    """Cross-entropy of telling what moves by itself, each kind of pixel by its weight."""
    blind: Tensor
    """That of who says the same of all pixels."""
    looks: Tensor
    things: Tensor
    """Mutual information in the running tables, in nats."""


class Grouping(nn.Module):
    """The loss of an encoder of groups, with its tables.

    Args:
        tasks: how many there are.
        looks: maps of the first group.
        things: maps of the second, the first of which is no thing.
    """

    looks: Tensor
    things: Tensor

    def __init__(self, tasks: int, looks: int, things: int):
        super().__init__()
        self.register_buffer("looks", torch.full((tasks, looks, looks), looks**-2.0))
        self.register_buffer("things", torch.full((tasks, things - 1, things - 1), (things - 1) ** -2.0))

    def forward(
        self,
        now: tuple[Tensor, Tensor],
        after: tuple[Tensor, Tensor],
        motion: Motion,
        tasks: Tensor,
        neighbour: tuple[int, int],
    ) -> Lesson:
        """The losses of a batch; in training the tables go on.

        Args:
            now: logits of both groups in frame t, (N, maps, H, W) each.
            after: those in the later frame.
            motion: from the one to the other.
            tasks: which task each frame is of, (N,).
            neighbour: rows and columns to the neighbour that stands for what moves alike.
        """
        # Tables take in little of each batch, which half precision would round away.
        with torch.autocast(motion.own.device.type, enabled=False):
            now, after = _in_full(now), _in_full(after)
            place, counts = _partners(motion, neighbour)
            own = motion.own & counts
            even = even_weights(motion.own) * own
            scenery = counts / counts.sum((1, 2), keepdim=True).clamp(min=1)
            some = motion.own.sum((1, 2), keepdim=True) > FEWEST
            moving = even / even.sum((1, 2), keepdim=True).clamp(min=TINY)
            weights = torch.where(some, (1 - OWN_SHARE) * scenery + OWN_SHARE * moving, scenery)
            looks, kept_looks = self._told(self.looks, now[0], after[0], place, weights, tasks)
            things, kept_things = self._told(self.things, now[1][:, 1:], after[1][:, 1:], place, even, tasks)
            if self.training:
                self.looks, self.things = kept_looks, kept_things
            stands_out, blind = _stands_out(now[1], filled(motion.own))
            # Only the newest part of a table can be learned from: its gradient is that of a table of its own.
            loss = STANDS_OUT * stands_out - (looks + things) / (1 - KEPT)
            return Lesson(loss, stands_out, blind, looks.detach(), things.detach())

    def _told(
        self, table: Tensor, now: Tensor, after: Tensor, place: Tensor, weights: Tensor, tasks: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The mutual information, mean over tasks, and the table after this batch."""
        first = now.softmax(1).flatten(2)
        second = after.softmax(1).flatten(2).gather(2, place[:, None].expand(-1, now.shape[1], -1))
        frames = torch.bmm(first * weights.flatten(1)[:, None], second.transpose(1, 2))
        batch = torch.zeros_like(table).index_add(0, tasks, frames)
        mass = batch.sum((1, 2), keepdim=True)
        batch = (batch + batch.transpose(1, 2)) / 2 / mass.clamp(min=TINY)
        running = torch.where(mass > TINY, KEPT * table + (1 - KEPT) * batch, table)
        return mutual_information(running).mean(), running.detach()


def _in_full(logits: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    looks, things = logits
    return looks.float(), things.float()


def mutual_information(tables: Tensor) -> Tensor:
    """Of joint probabilities (..., K, K), in nats."""
    product = tables.sum(-1, keepdim=True) * tables.sum(-2, keepdim=True)
    return (tables * ((tables + EMPTY) / (product + EMPTY)).log()).sum((-2, -1))


def _stands_out(things: Tensor, moving: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy of the first map with what does not move, both kinds of pixels by their shares of the weight.

    And what it is where the shares are said everywhere.
    """
    nothing, something = functional.logsigmoid(things[:, 0]), functional.logsigmoid(-things[:, 0])
    loss, blind = torch.zeros_like(nothing[0, 0, 0]), torch.zeros_like(nothing[0, 0, 0])
    for told, kind, share in ((something, moving, MOVING_SHARE), (nothing, ~moving, 1 - MOVING_SHARE)):
        loss = loss - share * (told * kind).sum() / kind.sum().clamp(min=1)
        blind = blind - share * math.log(share) * kind.any()
    return loss, blind


def _partners(motion: Motion, neighbour: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Which pixel of the later frame each pixel is compared with, flat (N, H × W), and which pixels have one."""
    own, displacement, found = motion
    height, width = own.shape[1:]
    rows = torch.arange(height, device=own.device)[:, None].expand(height, width)
    columns = torch.arange(width, device=own.device).expand(height, width)
    down, right = neighbour
    within = (rows + down >= 0) & (rows + down < height) & (columns + right >= 0) & (columns + right < width)

    def beside(values: Tensor) -> Tensor:
        return values.roll((-down, -right), (1, 2))

    near = (displacement - beside(displacement)).abs().amax(-1) <= ALIKE
    alike = own & beside(own) & beside(found) & near & within
    row = torch.where(alike, rows + down + beside(displacement)[..., 0], rows + displacement[..., 0])
    column = torch.where(alike, columns + right + beside(displacement)[..., 1], columns + displacement[..., 1])
    place = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
    return place.flatten(1), alike | found


def rolled(frames: Tensor, offsets: Sequence[tuple[int, int]]) -> Tensor:
    """Images moved around their borders by (rows, columns) each, so that nothing is told by where it is."""
    moved = [frame.roll(offset, (-2, -1)) for frame, offset in zip(frames, offsets, strict=True)]
    return torch.stack(moved)
