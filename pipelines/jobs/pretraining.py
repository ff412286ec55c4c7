"""Pretraining one flow front-end on videos: data, Lightning module, measurements, and the file at the end."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor

from lcd import __version__
from lcd.agents.rollout import loader
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.protocols import Pairs, offers
from lcd.envs.streams import seed_sequence
from lcd.files.atomic import make_folder, write_atomic
from lcd.frontends.flow.config import FlowConfig
from lcd.frontends.flow.file import FrontendFile
from lcd.frontends.flow.frontend import ObjectMaps, to_frames
from lcd.frontends.flow.loss import LossConfig, flow_loss
from lcd.frontends.flow.networks import FlowModel
from lcd.frontends.flow.warp import inside
from lcd.pipelines.jobs import videos
from lcd.pipelines.jobs.checkpoint import CURVE, STEP, AtomicCheckpoints, drop_without_curve
from lcd.pipelines.jobs.objectness import Objectness
from lcd.pipelines.jobs.pretraining_record import PretrainRecorder, Table, mirror, picture
from lcd.pipelines.publish.track import open_tracker
from lcd.pipelines.study.configs import Device, RunConfig, TrackerEntry
from lcd.pipelines.study.store import RUNNING, Run, finish, read_status, update_status
from lcd.process import signals
from lcd.process.deadlines import beat

WEIGHTS_FILE = "flow.pt"
PRETRAINING = "pretraining"
MEASURED_PAIRS, MEASURED_BATCH = 64, 32
"""Pairs of each task that are measured, and how many at a time."""
MEASURED_VIDEOS = 6
"""Videos of each task on which maps are chosen, and as many on which they are scored."""


class FlowPretraining(LightningModule):
    """Learns to warp frames into the ones that follow them.

    Args:
        config: sizes of the networks.
        loss: what a good warp is.
        learning_rate: Adam's.
        mean, std: normalisation of frames in 0–1.
        seed: of the networks' first weights.
    """

    def __init__(
        self,
        config: FlowConfig,
        loss: LossConfig,
        learning_rate: float,
        mean: list[float],
        std: list[float],
        seed: int,
    ):
        super().__init__()
        self.config, self.loss, self.learning_rate = config, loss, learning_rate
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seed_sequence(seed, "initialisation").generate_state(1)[0]))
            self.model = FlowModel(config)
        self.frontend = ObjectMaps(self.model.objects, config, mean, std)
        self.register_buffer("sums", torch.zeros(2, dtype=torch.float64))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.model.parameters(), lr=self.learning_rate)

    def see(self, pairs: Tensor) -> dict[str, Tensor]:
        """What the networks make of pairs of frames (2, N, H, W, C): frames, maps, flow, warped frames, loss."""
        first, second = to_frames(pairs[0]), to_frames(pairs[1])
        mean, std = self.frontend.mean, self.frontend.std
        maps, flow = self.model((first - mean) / std, (second - mean) / std)
        loss, warped = flow_loss(self.loss, first, second, flow)
        return {"first": first, "second": second, "maps": maps, "flow": flow, "warped": warped, "loss": loss}

    def training_step(self, pairs: Tensor, index: int) -> Tensor:
        loss = self.see(pairs)["loss"]
        with torch.no_grad():
            self.sums += torch.stack([loss.double(), torch.ones_like(loss, dtype=torch.float64)])
        return loss

    def training_loss(self) -> float | None:
        """The mean loss of the batches since it was last asked for, None when there was none."""
        total, batches = self.sums.tolist()
        self.sums.zero_()
        return total / batches if batches else None

    @torch.no_grad()
    def measure(self, pairs: Tensor) -> dict[str, float]:
        """The columns of held-out pairs."""
        found = []
        for batch in pairs.split(MEASURED_BATCH, dim=1):
            seen = self.see(batch.to(self.device))
            beat()
            static, _ = flow_loss(self.loss, seen["first"], seen["second"], torch.zeros_like(seen["flow"]))
            outside = 1 - inside(seen["flow"], margin=1.0).float().mean()
            found.append(torch.stack([seen["loss"], static, seen["flow"].norm(dim=1).mean(), outside]) * batch.shape[1])
        columns = (torch.stack(found).sum(0) / pairs.shape[1]).tolist()
        return dict(zip(("loss", "static_loss", "speed", "outside"), columns, strict=True)) | {"pairs": pairs.shape[1]}


def pretrain_run(run_config: RunConfig, run_dir: str | Path, tracker: TrackerEntry, device: Device) -> None:
    """Pretrain one front-end to its end, from its checkpoint if there is one, and write its file.

    The arguments are those of `lcd.pipelines.jobs.train.train_run`; the videos have been filmed before.
    """
    folder = Path(run_dir)
    asked, seed = run_config["agent"], run_config["seeds"][0]
    place = folder.parents[1] / "videos" / run_config["videos"]["folder"]
    files = videos.recorded(place, run_config["videos"]["tasks"])
    mean, std = videos.statistics(files["train"])
    sizes = {key: value for key, value in run_config["frontend"].items() if key != "name"}
    gap = run_config["videos"]["gap"]
    pairs = videos.Pairs(files["train"], asked["batch"], gap, run_config["steps"], seed)
    held_out = {
        task: videos.Pairs({task: file}, asked["batch"], gap, 0, seed).measured(MEASURED_PAIRS)
        for task, file in files["eval"].items()
    }
    module = FlowPretraining(
        FlowConfig.from_dict(sizes), LossConfig(**asked["loss"]), asked["learning_rate"], mean, std, seed
    )
    _fit(run_config, folder, module, pairs, held_out, tracker, device)
    content = FrontendFile(
        module.config,
        module.model.state_dict(),
        tuple(mean),
        tuple(std),
        videos.data_hash(files["train"]),
        {"lcd": __version__, "run": run_config},
    )
    write_atomic(folder / WEIGHTS_FILE, content.to_bytes())
    finish(folder, step=run_config["steps"])


def _fit(
    run_config: RunConfig,
    folder: Path,
    module: FlowPretraining,
    pairs: videos.Pairs,
    held_out: Mapping[str, Tensor],
    tracker: TrackerEntry,
    device: Device,
) -> None:
    checkpoint = folder / "checkpoints" / "last.ckpt"
    drop_without_curve(checkpoint, Run(folder, run_config), world=1)
    for place in (checkpoint, picture(folder, 0)):
        make_folder(place.parent)
    content = _readable(checkpoint)
    reached = None if content is None else int(content[STEP])
    tables = objectness_tables(run_config)
    tracked = open_tracker(tracker, folder, run_config, read_status(folder))
    row = {"frontend": run_config["frontend"]["name"], "seed": run_config["seeds"][0], "stage": PRETRAINING}
    recorder = PretrainRecorder(pairs, held_out, run_config["evaluation"]["every"], row, folder, tracked, tables)
    earlier = recorder.curve.cut(-1) if content is None else recorder.curve.cut(reached, content.get(CURVE))
    mirror(tracked, earlier, folder, tables)
    update_status(folder, state=RUNNING, step=reached or 0, steps=run_config["steps"], error=None)
    if reached is None or reached < run_config["steps"]:
        trainer = _trainer(tracked.logger, recorder, device)
        resumed = None if reached is None else checkpoint
        with signals.deferring_stops():
            trainer.fit(module, loader(pairs), ckpt_path=resumed, weights_only=True)
    else:
        module.load_state_dict(content["state_dict"])
    tracked.finish({"steps": run_config["steps"], "wall_s": read_status(folder)["wall_s"]})


def objectness_tables(run_config: RunConfig) -> dict[str, Table]:
    """The measurements of a front-end that are taken while it is pretrained, by name."""
    benchmark = get_benchmark(run_config["benchmark"])
    asked = run_config["videos"]
    if not offers(benchmark, Pairs) or asked["view"] != "pixels":
        return {}
    seed = run_config["seeds"][0]
    return {"objectness": Objectness(benchmark, asked["tasks"], seed, MEASURED_VIDEOS, **asked["knobs"])}


def _readable(checkpoint: Path) -> dict[str, Any] | None:
    try:
        content = torch.load(checkpoint, map_location="cpu", weights_only=True)
        if {STEP, "state_dict", "optimizer_states", "loops", "callbacks"} <= set(content):
            return content
    except FileNotFoundError:
        return None
    except Exception:
        pass
    warnings.warn(f"{checkpoint.name} of run {checkpoint.parts[-3]} is unreadable: training it anew.", stacklevel=2)
    return None


def _trainer(logger: Any, recorder: PretrainRecorder, device: Device) -> Trainer:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning.pytorch")
    return Trainer(
        max_epochs=1,
        logger=logger,
        callbacks=[recorder],
        plugins=[AtomicCheckpoints()],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        devices=1,
        accelerator=device.accelerator,
    )
