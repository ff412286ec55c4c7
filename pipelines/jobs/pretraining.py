"""Pretraining one flow front-end on videos: data, Lightning module, measurements, and the file at the end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gymnasium.vector import VectorEnv
from torch import Tensor

from lcd import __version__
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.protocols import Pairs, missing
from lcd.files.atomic import make_folder, sha256_of, write_atomic
from lcd.frontends.flow.config import GROUPS, FlowConfig
from lcd.frontends.flow.file import FrontendFile
from lcd.frontends.flow.loss import LossConfig
from lcd.pipelines.jobs import players, videos
from lcd.pipelines.jobs.checkpoint import CURVE, STEP, drop_without_curve, read_checkpoint
from lcd.pipelines.jobs.fitting import fit
from lcd.pipelines.jobs.objectness import SEEN, Objectness
from lcd.pipelines.jobs.pretraining_modules import FlowPretraining, GroupPretraining, Pretraining
from lcd.pipelines.jobs.pretraining_record import PretrainRecorder, Table, mirror, picture
from lcd.pipelines.kinds.pretrain import WEIGHTS_FILE
from lcd.pipelines.publish.track import Tracker, open_tracker
from lcd.pipelines.study.configs import Device, PretrainConfig, TrackerEntry, VideosEntry, without_places
from lcd.pipelines.study.lease import run_folder
from lcd.pipelines.study.store import RUNNING, Run, finish, read_status, update_status
from lcd.process.deadlines import beat

PRETRAINING = "pretraining"
MEASURED_PAIRS = 64
"""Pairs of each task that are measured."""
MEASURED_VIDEOS = 6
"""Videos of each task on which maps are chosen, and as many on which they are scored."""


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
    drawn: type[videos.Pairs]
    networks, rate = FlowConfig.from_dict(sizes), config["learning_rate"]
    module: Pretraining
    if networks.encoder_kind == GROUPS:
        drawn, module = videos.Triples, GroupPretraining(networks, len(files["train"]), rate, mean, std, seed)
    else:
        drawn = videos.Pairs
        module = FlowPretraining(networks, LossConfig(**config["loss"]), rate, mean, std, seed)
    pairs = drawn(files["train"], config["batch"], gap, config["steps"], seed)
    held_out = {
        task: drawn({task: file}, config["batch"], gap, 0, seed).measured(MEASURED_PAIRS)
        for task, file in files["eval"].items()
    }
    tracked = _fit(config, folder, module, pairs, held_out, tracker, device)
    content = FrontendFile(
        module.config,
        module.model.state_dict(),
        tuple(mean),
        tuple(std),
        videos.data_hash(files["train"]),
        {"lcd": __version__, "run": without_places(config)},
    )
    write_atomic(folder / WEIGHTS_FILE, content.to_bytes())
    lineage = {"sha256": sha256_of(folder / WEIGHTS_FILE), "videos_sha256": content.data_hash, "lcd": __version__}
    tracked.log_file("frontend-weights", folder / WEIGHTS_FILE, lineage | {"made_by": without_places(config)})
    tracked.finish({"steps": config["steps"], "wall_s": read_status(folder)["wall_s"]})
    finish(folder, step=config["steps"])


def _fit(
    config: PretrainConfig,
    folder: Path,
    module: Pretraining,
    pairs: videos.Pairs,
    held_out: Mapping[str, Tensor],
    tracker: TrackerEntry,
    device: Device,
) -> Tracker:
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
    return tracked


def objectness_tables(config: PretrainConfig) -> dict[str, Table]:
    """The measurements of a front-end that are taken while it is pretrained, by name."""
    benchmark = get_benchmark(config["benchmark"])
    asked = config["videos"]
    if asked["view"] != SEEN or missing(benchmark, Pairs):
        return {}
    seed = config["seeds"][0]
    return {"objectness": Objectness(benchmark, asked["tasks"], seed, MEASURED_VIDEOS, **asked["knobs"])}
