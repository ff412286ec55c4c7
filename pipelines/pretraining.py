"""Pretraining one flow front-end on videos: data, Lightning module, measurements, and the file at the end."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor, nn
from torch.utils.data import IterableDataset

from lcd import __version__
from lcd.agents.rollout import loader
from lcd.curves import PHASE
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.streams import seed_sequence
from lcd.files import write_atomic
from lcd.frontends.flow.config import FlowConfig
from lcd.frontends.flow.file import FrontendFile
from lcd.frontends.flow.frontend import ObjectMaps, to_frames
from lcd.frontends.flow.loss import LossConfig, flow_loss
from lcd.frontends.flow.networks import FlowModel
from lcd.frontends.flow.warp import inside
from lcd.pipelines import videos
from lcd.pipelines.checkpoint import STEP, AtomicCheckpoints
from lcd.pipelines.flow_pictures import save_sheet
from lcd.pipelines.objectness import Objectness
from lcd.pipelines.record import CHECKPOINT_EVERY_S, STATUS_EVERY_S, CurveFile
from lcd.pipelines.store import DONE, RUNNING, read_status, update_status
from lcd.pipelines.track import Tracker, open_tracker

WEIGHTS_FILE = "flow.pt"
PRETRAINING = "pretraining"
COLUMNS = (
    *("task", "frontend", "seed", "split", PHASE, "step", "wall_s"),
    *("pairs", "loss", "static_loss", "speed", "outside"),
)
"""Of a pretraining's curve: `loss` beside that of not moving anything, the flow's mean length in pixels, and the part
of the pixels whose flow leaves the frame by more than a pixel (where there is nothing to learn from)."""
MEASURED_PAIRS, MEASURED_BATCH = 64, 32
"""Pairs of each task that are measured, and how many at a time."""
MEASURED_VIDEOS = 6
"""Videos of each task on which maps are chosen, and as many on which they are scored."""

Table = Callable[[nn.Module], pd.DataFrame]
"""A measurement: from a front-end (with `maps(observations)`) to a table."""


class Pairs(IterableDataset):
    """Batches of pairs of frames, drawn anew for every iteration from a stream that the iteration names.

    Args:
        files: the videos of each task.
        batch: pairs in a batch.
        gap: steps between the two frames of a pair.
        total: batches in all.
        seed: the run's.
    """

    def __init__(self, files: Mapping[str, videos.VideoFile], batch: int, gap: int, total: int, seed: int):
        self.files, self.batch, self.gap, self.total, self.seed = list(files.values()), batch, gap, total, seed
        self.places = [(file, video) for file in self.files for video in range(len(file))]
        self.iteration = 0

    def __len__(self) -> int:
        return self.total

    def __iter__(self) -> Iterator[Tensor]:
        while self.iteration < self.total:
            batch = self.draw(self.iteration)
            self.iteration += 1
            yield batch

    def draw(self, iteration: int) -> Tensor:
        """uint8 (2, batch, H, W, C): the first frames, and those that follow."""
        rng = np.random.default_rng(seed_sequence(self.seed, "shuffle", iteration))
        chosen = [self.places[index] for index in rng.integers(len(self.places), size=self.batch)]
        return torch.from_numpy(np.stack([self._pair(*place, rng.random()) for place in chosen], axis=1))

    def measured(self, most: int) -> Tensor:
        """The same pairs every time, from as many videos as there are."""
        rng = np.random.default_rng(seed_sequence(self.seed, "evaluation"))
        count = min(most, 4 * len(self.places))
        chosen = [self.places[index % len(self.places)] for index in range(count)]
        return torch.from_numpy(np.stack([self._pair(*place, rng.random()) for place in chosen], axis=1))

    def _pair(self, file: videos.VideoFile, video: int, draw: float) -> np.ndarray:
        first = int(draw * (file.index.lengths[video] - self.gap))
        return file.frames(video, first, self.gap + 1)[[0, -1]]

    def state_dict(self) -> dict[str, int]:
        """All that the next batches depend on."""
        return {"iteration": self.iteration}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Continue from a checkpoint."""
        self.iteration = state["iteration"]


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
            static, _ = flow_loss(self.loss, seen["first"], seen["second"], torch.zeros_like(seen["flow"]))
            outside = 1 - inside(seen["flow"], margin=1.0).float().mean()
            found.append(torch.stack([seen["loss"], static, seen["flow"].norm(dim=1).mean(), outside]) * batch.shape[1])
        columns = (torch.stack(found).sum(0) / pairs.shape[1]).tolist()
        return dict(zip(("loss", "static_loss", "speed", "outside"), columns, strict=True)) | {"pairs": pairs.shape[1]}


class PretrainRecorder(Callback):
    """Measures at the start, every so many batches and at the end; keeps curve, pictures, checkpoint and status.

    Args:
        pairs: the training data.
        held_out: pairs of each task.
        every: batches between two measurements.
        row: the columns that all rows share.
        folder: the run's.
        tracker: mirrors what a checkpoint holds.
        tables: measurements of the front-end by name; each is kept as `<name>.csv`.
    """

    def __init__(
        self,
        pairs: Pairs,
        held_out: Mapping[str, Tensor],
        every: int,
        row: Mapping[str, Any],
        folder: Path,
        tracker: Tracker,
        tables: Mapping[str, Table],
    ):
        self.pairs, self.held_out, self.every, self.row = pairs, held_out, every, dict(row)
        self.folder, self.tracker, self.tables = folder, tracker, tables
        self.curve = CurveFile(folder / "curve.csv", COLUMNS)
        self.trained_s = 0.0
        self.pending: list[dict[str, Any]] = []

    @property
    def wall_s(self) -> float:
        """Seconds that the run has taken so far, resumed parts included."""
        return self.trained_s + time.perf_counter() - self._started

    def on_fit_start(self, trainer: Trainer, module: LightningModule) -> None:
        self._started = self._saved = time.perf_counter()
        self._reported = 0.0

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        # A checkpoint is loaded after on_fit_start, so only here is it known whether the run starts or goes on.
        self._first = self.pairs.iteration
        if self._first == 0:
            self._record(module)

    def on_train_batch_end(self, trainer: Trainer, module: LightningModule, *_: Any) -> None:
        step, now = self.pairs.iteration, time.perf_counter()
        last = step >= self.pairs.total
        if last or step % self.every == 0:
            self._record(module)
        if last or now - self._saved >= CHECKPOINT_EVERY_S:
            trainer.save_checkpoint(self.folder / "checkpoints" / "last.ckpt", weights_only=False)
            self._saved = time.perf_counter()
            mirror(self.tracker, self.pending, self.folder, self.tables)
            self.pending = []
        if last or now - self._reported >= STATUS_EVERY_S:
            self._reported = now
            rate = (step - self._first) / max(now - self._started, 1e-9)
            update_status(self.folder, step=step, steps_per_s=rate, wall_s=self.wall_s)

    def _record(self, module: Any) -> None:
        """One measurement's rows, tables and pictures; training goes on as if there had been none."""
        step, training = self.pairs.iteration, module.training
        moment = self.row | {"step": step, "wall_s": round(self.wall_s, 3)}
        rows = []
        if (loss := module.training_loss()) is not None:
            rows.append(moment | {"task": "all", "split": "train", "loss": loss})
        module.eval()
        try:
            found = {task: module.measure(pairs) for task, pairs in self.held_out.items()}
            rows += [moment | {"task": task, "split": "eval"} | columns for task, columns in found.items()]
            with torch.no_grad():
                shown = torch.cat([pairs[:, :1] for pairs in self.held_out.values()], 1)
                seen = module.see(shown.to(module.device))
                save_sheet(picture(self.folder, step), list(self.held_out), seen, f"after {step:,} batches")
                for name, table in self.tables.items():
                    keep_table(self.folder / f"{name}.csv", step, table(module.frontend))
        finally:
            module.train(training)
        self.curve.append(rows)
        self.pending += rows

    def on_save_checkpoint(self, trainer: Trainer, module: LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint[STEP] = self.pairs.iteration

    def state_dict(self) -> dict[str, float]:
        """What a checkpoint keeps."""
        return {"wall_s": self.wall_s}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Continue from a checkpoint's state."""
        self.trained_s = state["wall_s"]


def picture(folder: Path, step: int) -> Path:
    """Where the picture of a step is."""
    return folder / "pictures" / f"step-{step:06d}.png"


def keep_table(path: Path, step: int, table: pd.DataFrame) -> None:
    """Add a step's table to a file, in place of an earlier one of that step or a later one."""
    table = table.assign(step=step)
    if path.exists():
        earlier = pd.read_csv(path)
        table = pd.concat([earlier[earlier.step < step], table], ignore_index=True)
    write_atomic(path, table.to_csv(index=False))


def mirror(tracker: Tracker, rows: list[dict[str, Any]], folder: Path, tables: Mapping[str, Table]) -> None:
    """Send rows, and the pictures and tables of their steps."""
    tracker.log_rows(rows)
    for step in sorted({int(row["step"]) for row in rows}):
        if picture(folder, step).exists():
            tracker.log_pictures(step, {"what it sees": picture(folder, step)})
        for name in tables:
            path = folder / f"{name}.csv"
            if path.exists() and not (found := pd.read_csv(path).query("step == @step")).empty:
                tracker.log_table(step, name, found)


def pretrain_run(
    run_config: dict[str, Any], run_dir: str | Path, tracker: dict[str, Any], device: dict[str, Any]
) -> None:
    """Pretrain one front-end to its end, from its checkpoint if there is one, and write its file.

    The arguments are those of `lcd.pipelines.train.train_run`; the videos have been filmed before.
    """
    folder = Path(run_dir)
    asked, seed = run_config["agent"], run_config["seeds"][0]
    place = folder.parents[1] / "videos" / run_config["videos"]["folder"]
    files = videos.recorded(place, run_config["videos"]["tasks"])
    mean, std = videos.statistics(files["train"])
    sizes = {key: value for key, value in run_config["frontend"].items() if key != "name"}
    gap = run_config["videos"]["gap"]
    pairs = Pairs(files["train"], asked["batch"], gap, run_config["steps"], seed)
    held_out = {
        task: Pairs({task: file}, asked["batch"], gap, 0, seed).measured(MEASURED_PAIRS)
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
    update_status(folder, state=DONE, step=run_config["steps"])


def _fit(
    run_config: dict[str, Any],
    folder: Path,
    module: FlowPretraining,
    pairs: Pairs,
    held_out: Mapping[str, Tensor],
    tracker: dict[str, Any],
    device: dict[str, Any],
) -> None:
    checkpoint = folder / "checkpoints" / "last.ckpt"
    for place in (checkpoint, picture(folder, 0)):
        place.parent.mkdir(parents=True, exist_ok=True)
    content = _readable(checkpoint)
    reached = None if content is None else int(content[STEP])
    tables = objectness_tables(run_config)
    tracked = open_tracker(tracker, folder, run_config, read_status(folder))
    row = {"frontend": run_config["frontend"]["name"], "seed": run_config["seeds"][0], PHASE: PRETRAINING}
    recorder = PretrainRecorder(pairs, held_out, run_config["evaluation"]["every"], row, folder, tracked, tables)
    earlier = recorder.curve.cut(-1 if reached is None else reached)
    mirror(tracked, earlier, folder, tables)
    update_status(folder, state=RUNNING, step=reached or 0, steps=run_config["steps"], error=None)
    if reached is None or reached < run_config["steps"]:
        trainer = _trainer(tracked.logger, recorder, device)
        resumed = None if reached is None else checkpoint
        trainer.fit(module, loader(pairs), ckpt_path=resumed, weights_only=True)
    else:
        module.load_state_dict(content["state_dict"])
    tracked.finish({"steps": run_config["steps"], "wall_s": read_status(folder)["wall_s"]})


def objectness_tables(run_config: Mapping[str, Any]) -> dict[str, Table]:
    """The measurements of a front-end that are taken while it is pretrained, by name."""
    benchmark = get_benchmark(run_config["benchmark"])
    asked = run_config["videos"]
    if not hasattr(benchmark, "make_pairs") or asked["view"] != "pixels":
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


def _trainer(logger: Any, recorder: PretrainRecorder, device: dict[str, Any]) -> Trainer:
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
        accelerator=device["accelerator"],
    )
