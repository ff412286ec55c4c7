"""What learns in a pretraining, as Lightning's modules: networks that warp frames, and groups that motion teaches."""

from __future__ import annotations

import torch
from lightning.pytorch import LightningModule
from torch import Tensor

from lcd.envs.streams import seed_sequence
from lcd.frontends.flow.config import GROUPS, FlowConfig
from lcd.frontends.flow.frontend import ObjectMaps, to_frames
from lcd.frontends.flow.grouping import Grouping, Lesson, rolled
from lcd.frontends.flow.groups import GroupEncoder
from lcd.frontends.flow.loss import LossConfig, flow_loss
from lcd.frontends.flow.networks import FlowModel
from lcd.frontends.flow.own_motion import own_motion
from lcd.frontends.flow.warp import inside
from lcd.pipelines.jobs.videos import Moments
from lcd.process.deadlines import beat

MEASURED_BATCH = 32
"""Held-out pairs that are measured at a time."""
COLUMNS = ("loss", "static_loss", "speed", "outside")
"""What is measured of them."""


class Pretraining(LightningModule):
    """What both share: the networks, Adam, and the running loss.

    Args:
        config: sizes of the networks.
        learning_rate: Adam's.
        mean, std: normalisation of frames in 0–1.
        seed: of the networks' first weights.
    """

    heads: tuple[str, ...]
    """What the first four pictures of `see` are called: its `first`, `second`, `flow` and `warped`."""

    def __init__(self, config: FlowConfig, learning_rate: float, mean: list[float], std: list[float], seed: int):
        super().__init__()
        self.config, self.learning_rate = config, learning_rate
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seed_sequence(seed, "initialisation").generate_state(1)[0]))
            self.model = FlowModel(config)
        self.frontend = ObjectMaps(self.model.objects, config, mean, std)
        self.register_buffer("sums", torch.zeros(2, dtype=torch.float64))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.model.parameters(), lr=self.learning_rate)

    def see(self, frames: Tensor) -> dict[str, Tensor]:
        """What there is to show and to measure of frames that belong together, (2 or 3, N, H, W, C)."""
        raise NotImplementedError

    def measured(self, seen: dict[str, Tensor]) -> Tensor:
        """The columns of what `see` gave."""
        raise NotImplementedError

    def normalised(self, frames: Tensor) -> Tensor:
        """Frames in 0–1 as the networks take them."""
        return (frames - self.frontend.mean) / self.frontend.std

    def counted(self, loss: Tensor) -> Tensor:
        """The loss, which the running mean has taken in."""
        with torch.no_grad():
            self.sums += torch.stack([loss.double(), torch.ones_like(loss, dtype=torch.float64)])
        return loss

    def training_loss(self) -> float | None:
        """The mean loss of the batches since it was last asked for, None when there was none."""
        total, batches = self.sums.tolist()
        self.sums.zero_()
        return total / batches if batches else None

    @torch.no_grad()
    def measure(self, frames: Tensor) -> dict[str, float]:
        """The columns of held-out frames, (2 or 3, N, H, W, C)."""
        found = []
        for batch in frames.split(MEASURED_BATCH, dim=1):
            found.append(self.measured(self.see(batch.to(self.device))) * batch.shape[1])
            beat()
        columns = (torch.stack(found).sum(0) / frames.shape[1]).tolist()
        return dict(zip(COLUMNS, columns, strict=True)) | {"pairs": frames.shape[1]}


class FlowPretraining(Pretraining):
    """Learns to warp frames into the ones that follow them.

    Args:
        config, learning_rate, mean, std, seed: see `Pretraining`.
        loss: what a good warp is.
    """

    heads = ("frame t", "frame t+1", "flow", "t, warped")

    def __init__(
        self,
        config: FlowConfig,
        loss: LossConfig,
        learning_rate: float,
        mean: list[float],
        std: list[float],
        seed: int,
    ):
        super().__init__(config, learning_rate, mean, std, seed)
        self.loss = loss

    def see(self, frames: Tensor) -> dict[str, Tensor]:
        first, second = to_frames(frames[0]), to_frames(frames[1])
        maps, flow = self.model(self.normalised(first), self.normalised(second))
        loss, warped = flow_loss(self.loss, first, second, flow)
        return {"first": first, "second": second, "maps": maps, "flow": flow, "warped": warped, "loss": loss}

    def measured(self, seen: dict[str, Tensor]) -> Tensor:
        static, _ = flow_loss(self.loss, seen["first"], seen["second"], torch.zeros_like(seen["flow"]))
        outside = 1 - inside(seen["flow"], margin=1.0).float().mean()
        return torch.stack([seen["loss"], static, seen["flow"].norm(dim=1).mean(), outside])

    def training_step(self, pairs: Tensor, index: int) -> Tensor:
        return self.counted(self.see(pairs)["loss"])


class GroupPretraining(Pretraining):
    """Learns which pixels belong together, from what moves by itself and from what stays what it is.

    Args:
        config, learning_rate, mean, std, seed: see `Pretraining`.
        tasks: how many are filmed.
    """

    heads = ("frame", "later frame", "own motion", "moves by itself")

    def __init__(
        self, config: FlowConfig, tasks: int, learning_rate: float, mean: list[float], std: list[float], seed: int
    ):
        super().__init__(config, learning_rate, mean, std, seed)
        assert config.encoder_kind == GROUPS
        self.objects: GroupEncoder = self.model.objects
        self.grouping = Grouping(tasks, self.objects.half, config.maps - self.objects.half)

    def training_step(self, batch: Moments, index: int) -> Tensor:
        before, now, after = (to_frames(frames) for frames in batch.frames)
        with torch.no_grad():
            motion = own_motion(before, now, after)
            both = rolled(self.normalised(torch.cat([now, after])), batch.offsets)
        back = [(-row, -column) for row, column in batch.offsets]
        looks, things = (rolled(group, back).split(len(now)) for group in self.objects.logits(both))
        lesson = self.grouping((looks[0], things[0]), (looks[1], things[1]), motion, batch.tasks, batch.neighbour)
        self.counted(lesson.stands_out)
        return lesson.loss

    def see(self, frames: Tensor) -> dict[str, Tensor]:
        before, now, after = (to_frames(each) for each in frames)
        motion = own_motion(before, now, after)
        logits = [self.objects.logits(self.normalised(each)) for each in (now, after)]
        tasks = torch.zeros(len(now), dtype=torch.int64, device=now.device)
        lesson: Lesson = self.grouping(logits[0], logits[1], motion, tasks, (0, 0))
        maps = self.objects(self.normalised(now))
        own = motion.own[:, None].to(now.dtype)
        flow = motion.displacement.flip(-1).permute(0, 3, 1, 2) * own
        told = {"loss": lesson.stands_out, "blind": lesson.blind, "lost": 1 - motion.found.float().mean()}
        return {"first": now, "second": after, "maps": maps, "flow": flow, "warped": own.expand_as(now)} | told

    def measured(self, seen: dict[str, Tensor]) -> Tensor:
        own = seen["warped"][:, 0]
        speed = seen["flow"].norm(dim=1).sum() / own.sum().clamp(min=1)
        return torch.stack([seen["loss"], seen["blind"], speed, seen["lost"]])
