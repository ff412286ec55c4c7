"""Pretraining one flow front-end on videos: data, Lightning module, measurements, and the file at the end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from gymnasium.vector import VectorEnv
from lightning.pytorch import LightningModule
from torch import Tensor

from lcd import __version__
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.protocols import Pairs, missing
from lcd.envs.streams import seed_sequence
from lcd.files.atomic import make_folder, write_atomic
from lcd.frontends.flow.config import FlowConfig
from lcd.frontends.flow.file import FrontendFile
from lcd.frontends.flow.frontend import ObjectMaps, to_frames
from lcd.frontends.flow.loss import LossConfig, flow_loss
from lcd.frontends.flow.networks import FlowModel
from lcd.frontends.flow.warp import inside
from lcd.pipelines.jobs import players, videos
from lcd.pipelines.jobs.checkpoint import CURVE, STEP, drop_without_curve, read_checkpoint
from lcd.pipelines.jobs.fitting import fit
from lcd.pipelines.jobs.objectness import SEEN, Objectness
from lcd.pipelines.jobs.pretraining_record import PretrainRecorder, Table, mirror, picture
from lcd.pipelines.kinds.pretrain import WEIGHTS_FILE
from lcd.pipelines.publish.track import open_tracker
from lcd.pipelines.study.configs import Device, PretrainConfig, TrackerEntry, VideosEntry, without_places
from lcd.pipelines.study.lease import run_folder
from lcd.pipelines.study.store import RUNNING, Run, finish, read_status, update_status
from lcd.process.deadlines import beat

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


def record_missing_videos(asked: VideosEntry, folder: Path) -> dict[str, dict[str, videos.VideoFile]]:
    """The videos of a pretraining by split and task; those that are not on the disk yet are recorded."""
    seed, chosen = asked["seed"], asked["policy"]

    def policy_for(task: str, env: VectorEnv) -> players.Policy:
        if isinstance(chosen, str):
            return players.RandomPolicy(env, seed)
        return players.load_policy(chosen[task], env, seed)

    benchmark = get_benchmark(asked["benchmark"])
    return videos.record_videos(folder, benchmark, asked["tasks"], asked, policy_for, lambda *_: beat())


def pretrain_run(config: PretrainConfig, run_dir: str | Path, tracker: TrackerEntry, device: Device) -> None:
    """Pretrain one front-end to its end, from its checkpoint if there is one, and write its file.

    The videos are filmed where they are not there yet. The arguments are those of `lcd.pipelines.jobs.train.train_run`.
    """
    folder, seed = Path(run_dir), config["seeds"][0]
    files = record_missing_videos(
        config["videos"], run_folder(folder).parents[1] / "videos" / config["videos"]["folder"]
    )
    mean, std = videos.statistics(files["train"])
    sizes = {key: value for key, value in config["frontend"].items() if key != "name"}
    gap = config["videos"]["gap"]
    pairs = videos.Pairs(files["train"], config["batch"], gap, config["steps"], seed)
    held_out = {
        task: videos.Pairs({task: file}, config["batch"], gap, 0, seed).measured(MEASURED_PAIRS)
        for task, file in files["eval"].items()
    }
    module = FlowPretraining(
        FlowConfig.from_dict(sizes), LossConfig(**config["loss"]), config["learning_rate"], mean, std, seed
    )
    _fit(config, folder, module, pairs, held_out, tracker, device)
    content = FrontendFile(
        module.config,
        module.model.state_dict(),
        tuple(mean),
        tuple(std),
        videos.data_hash(files["train"]),
        {"lcd": __version__, "run": without_places(config)},
    )
    write_atomic(folder / WEIGHTS_FILE, content.to_bytes())
    finish(folder, step=config["steps"])


def _fit(
    config: PretrainConfig,
    folder: Path,
    module: FlowPretraining,
    pairs: videos.Pairs,
    held_out: Mapping[str, Tensor],
    tracker: TrackerEntry,
    device: Device,
) -> None:
    checkpoint = folder / "checkpoints" / "last.ckpt"
    drop_without_curve(checkpoint, Run(config, folder), world=1)
    for place in (checkpoint, picture(folder, 0)):
        make_folder(place.parent)
    content = read_checkpoint(checkpoint)
    step = 0 if content is None else int(content[STEP])
    tables = objectness_tables(config)
    tracked = open_tracker(tracker, folder, config, read_status(folder))
    row = {"frontend": config["frontend"]["name"], "seed": config["seeds"][0], "stage": PRETRAINING}
    recorder = PretrainRecorder(pairs, held_out, config["evaluation"]["every"], row, folder, tracked, tables)
    earlier = recorder.curve.cut(-1) if content is None else recorder.curve.cut(step, content.get(CURVE))
    mirror(tracked, earlier, folder, tables)
    update_status(folder, state=RUNNING, step=step, steps=config["steps"], error=None)
    if content is None or step < config["steps"]:
        fit(module, pairs, recorder, tracked.logger, device.accelerator, None if content is None else checkpoint)
    else:
        module.load_state_dict(content["state_dict"])
    tracked.finish({"steps": config["steps"], "wall_s": read_status(folder)["wall_s"]})


def objectness_tables(config: PretrainConfig) -> dict[str, Table]:
    """The measurements of a front-end that are taken while it is pretrained, by name."""
    benchmark = get_benchmark(config["benchmark"])
    asked = config["videos"]
    if asked["view"] != SEEN or missing(benchmark, Pairs):
        return {}
    seed = config["seeds"][0]
    return {"objectness": Objectness(benchmark, asked["tasks"], seed, MEASURED_VIDEOS, **asked["knobs"])}
