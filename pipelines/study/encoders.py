"""Front-ends that are pretrained: what a pretraining is asked for, and which of them a study makes itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from lcd.config import budgets
from lcd.config.compose import compose
from lcd.config.schema_parts import VideosConfig
from lcd.config.schemas import DiagnoseConfig, PretrainConfig
from lcd.envs.benchmarks import Benchmark, get_benchmark
from lcd.envs.errors import InputError
from lcd.envs.protocols import check_installed, moving_tasks_of
from lcd.files.reading import Unreadable, read_bytes
from lcd.frontends.entry import LATER, USE, FrontendEntry, WeightsFile, entry_of
from lcd.frontends.flow.config import GROUPS, OF_GROUPS, FlowConfig, LossConfig, not_for_groups
from lcd.pipelines.kinds.pretrain import UNTRAINED, weights_of
from lcd.pipelines.study import configs, needs
from lcd.pipelines.study.configs import ID_LENGTH, PRETRAIN, RANDOM, VideosEntry, canonical, without_places
from lcd.pipelines.study.parts import check_names
from lcd.pipelines.study.sources import with_source

FLOW = "flow"
PAIR, TRIPLE = 2, 3
"""Frames that the paper's networks learn from together, and an encoder of groups."""
HOW_USED = ("weights", "rgb", "seed", *USE, *LATER)
"""Knobs of the front-end that say how it is used, not what it is."""


def pretraining_for(cfg: DiagnoseConfig, given: Mapping[str, Any]) -> configs.PretrainConfig | None:
    """The pretraining of a study's front-end under the study's budget; None where it has weights, or needs none.

    Args:
        cfg: the study's config.
        given: the front-end's name and the knobs that were set.
    """
    if given["name"] != FLOW or given.get("weights") is not None:
        return None
    words = [f"benchmark={cfg.benchmark.name}", f"budget={cfg.budget}", f"frontend={FLOW}"]
    asked: PretrainConfig = compose("pretrain", words)
    asked.frontend |= {key: value for key, value in given.items() if key not in HOW_USED}
    return pretraining_from(asked)


def entry_after(pretraining: configs.PretrainConfig, given: Mapping[str, Any]) -> FrontendEntry:
    """What trainings write down of a front-end whose weights a pretraining of the same study makes."""
    knobs = {key: value for key, value in given.items() if key not in ("name", "weights")}
    # Agents do not use the decoder.
    sizes = {key: value for key, value in pretraining["frontend"].items() if key not in ("name", "decoder_kind")}
    entry = entry_of(FLOW, **{**knobs, **sizes, "weights": UNTRAINED["weights"]})
    del entry["label"]
    entry["weights"] = weights_of(pretraining)
    return entry


def pretraining_from(cfg: PretrainConfig) -> configs.PretrainConfig:
    """What `lcd pretrain` asks for."""
    asked, filmed = cfg.pretraining, cfg.pretraining.videos
    benchmark = get_benchmark(cfg.benchmark.name)
    tasks = tasks_of(cfg, benchmark)
    check_installed(benchmark, tasks)
    loss = LossConfig(**asdict(asked.loss))
    if asked.learning_rate <= 0:
        raise InputError(f"pretraining.learning_rate={asked.learning_rate} must be a number above 0.")
    sizes = sizes_of(cfg)
    frames = _together(filmed, groups=sizes.get("encoder_kind") == GROUPS)
    if frames == TRIPLE:
        _refuse_other_losses(loss)
    needs.check_videos(filmed, len(tasks), asked.batch, asked.iterations)
    videos = VideosEntry(
        benchmark=cfg.benchmark.name,
        tasks=tasks,
        view=cfg.view,
        knobs=cfg.knobs,
        seed=cfg.seed,
        count=filmed.count,
        held_out=filmed.held_out,
        length=filmed.length,
        gap=filmed.gap,
        copies=filmed.copies,
        policy=_players(cfg, tasks),
    )
    if frames != PAIR:
        videos["frames"] = frames
    videos["folder"] = hashlib.sha256(canonical(without_places(videos)).encode()).hexdigest()[:ID_LENGTH]
    return with_source(
        configs.PretrainConfig(
            kind=PRETRAIN,
            benchmark=cfg.benchmark.name,
            frontend=cast("FrontendEntry", {"name": FLOW, **sizes}),
            batch=asked.batch,
            learning_rate=asked.learning_rate,
            loss=asdict(loss),
            seeds=[cfg.seed],
            steps=asked.iterations,
            evaluation={"every": asked.every},
            videos=videos,
        )
    )


def tasks_of(cfg: PretrainConfig, benchmark: Benchmark) -> list[str]:
    """The tasks that are filmed."""
    check_names("view", [cfg.view], benchmark.views, cfg.benchmark.name)
    tasks = list(moving_tasks_of(benchmark)) if cfg.tasks is None else cfg.tasks
    check_names("tasks", tasks, benchmark.tasks, cfg.benchmark.name)
    return tasks


def sizes_of(cfg: PretrainConfig) -> dict[str, Any]:
    """The networks' sizes: those of `frontend.…`, else those of the settings, else the paper's."""
    given = dict(cfg.frontend)
    if (name := given.pop("name")) != FLOW:
        raise InputError(f"frontend={name} cannot be pretrained: give frontend={FLOW}.")
    if given.get("weights") is not None:
        raise InputError(f"frontend.weights={given['weights']}: pretraining makes a file of weights and takes none.")
    sizes = {key: value for key, value in given.items() if key not in HOW_USED}
    kinds = {"decoder_kind": cfg.pretraining.decoder, "encoder_kind": cfg.pretraining.encoder}
    said = kinds | {key: value for key, value in sizes.items() if value is not None}
    settings = asdict(cfg.pretraining.sizes)
    if said["encoder_kind"] == GROUPS:
        # What a budget gives the paper's networks is not asked of groups: only who says it is told.
        usual = budgets.read(budgets.GROUP, cfg.budget)[budgets.PRETRAINING]["sizes"]
        settings = {key: value for key, value in settings.items() if key in OF_GROUPS or value != usual[key]}
    return FlowConfig.from_dict(settings | said).recorded()


def _together(filmed: VideosConfig, groups: bool) -> int:
    """How many frames are learned from together; videos must hold them."""
    frames = TRIPLE if groups else PAIR
    if filmed.length <= filmed.gap * (frames - 1):
        raise InputError(
            f"pretraining.videos.gap={filmed.gap} is too much for pretraining.videos.length={filmed.length}: "
            f"{frames} frames that far apart are taken of one video. Make the gap less."
        )
    return frames


def _refuse_other_losses(loss: LossConfig) -> None:
    """Refuse, for an encoder of groups, parts of the loss that only networks that warp frames learn by."""
    for name, value in asdict(loss).items():
        if value != getattr(LossConfig(), name):
            raise not_for_groups(f"pretraining.loss.{name}={value}")


def _players(cfg: PretrainConfig, tasks: list[str]) -> str | dict[str, WeightsFile]:
    """Who plays while it is filmed: each task's trained policy by its checkpoint, or chance."""
    if cfg.policy == RANDOM:
        return RANDOM
    from lcd.pipelines.jobs.players import trained_runs

    return {task: _checkpoint(run.path) for task, run in trained_runs(cfg.policy, tasks, cfg.view).items()}


def _checkpoint(run: Path) -> WeightsFile:
    checkpoint = (run / "checkpoints" / "last.ckpt").resolve()
    try:
        return WeightsFile(file=str(checkpoint), sha256=hashlib.sha256(read_bytes(checkpoint)).hexdigest())
    except Unreadable:
        raise InputError(f"policy: the run {run} has no checkpoint: train it first.") from None
