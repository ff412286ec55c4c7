"""The kind `pretrain`: a front-end's networks learn on a benchmark's videos, and leave a file of weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from lcd.pipelines.kinds.kind import Kind, Scale
from lcd.pipelines.study.configs import AnyConfig, PretrainConfig, VideosEntry, run_id
from lcd.pipelines.study.promise import Promise, evaluation_steps

WEIGHTS_FILE = "flow.pt"
UNTRAINED = {"weights": "untrained", "label": "flow/untrained"}
"""How a front-end's entry says that its networks have not learned anything."""
FEW_VIDEOS = 2
VIDEO_BYTES = 64
"""A video in the index: where it begins, and how long it is."""
PAIR_BYTES = 2 * 3 * 4
"""At the least both frames of a pair, in floats of three colours."""


def label(config: PretrainConfig) -> str:
    """What a reader calls a pretraining."""
    return f"{config['frontend']['name']} pretrained on {config['benchmark']}"


def promise(config: PretrainConfig) -> Promise:
    """What a pretraining's curve will hold: losses on held-out videos of each task."""
    steps = evaluation_steps([int(config["steps"])], int(config["evaluation"]["every"]), 1)
    tasks = [("", task) for task in config["videos"]["tasks"]]
    return Promise(steps, tasks, config["seeds"], numbers=("loss",))


def is_config(config: Mapping[str, Any]) -> bool:
    """Whether what a file holds can be a pretraining's config."""
    parts = all(isinstance(config.get(key), dict) for key in ("frontend", "loss", "evaluation", "videos"))
    return parts and "name" in config["frontend"] and {"tasks", "folder"} <= set(config["videos"])


def evaluations(config: PretrainConfig) -> int:
    """Measurements of a pretraining, those at both ends included."""
    return 1 + math.ceil(config["steps"] / config["evaluation"]["every"])


def scaled_down(config: PretrainConfig) -> tuple[PretrainConfig, Scale]:
    """The pretraining on few videos; filming them is what it takes once."""
    videos = config["videos"]
    count, held_out = (min(FEW_VIDEOS, videos[key]) for key in ("count", "held_out"))
    few: VideosEntry = {**videos, "count": count, "held_out": held_out}
    filmed = (videos["count"] + videos["held_out"]) / (count + held_out)
    return {**config, "videos": few}, Scale(once=filmed, size=filmed)


def shortened(config: PretrainConfig, units: int, every: int) -> PretrainConfig:
    """The pretraining of so many batches, measured every so many."""
    return {**config, "steps": units, "evaluation": {**config["evaluation"], "every": every}}


def least_memory(config: PretrainConfig) -> int:
    """The least that the index of the videos and a batch take."""
    videos = config["videos"]
    count = len(videos["tasks"]) * (videos["count"] + videos["held_out"])
    return count * VIDEO_BYTES + config["batch"] * PAIR_BYTES


def weights_of(config: PretrainConfig) -> dict[str, str]:
    """What a front-end's entry says of its weights that a pretraining of the same study makes."""
    return {"job": run_id(config), "file": WEIGHTS_FILE}


def before_pretraining(config: AnyConfig) -> AnyConfig:
    """A training whose front-end's weights are not there yet, with networks of the same sizes in their place."""
    given: Mapping[str, Any] = config
    frontend = given.get("frontend", {})
    weights = frontend.get("weights")
    if not isinstance(weights, Mapping) or "job" not in weights:
        return config
    return cast("AnyConfig", {**config, "frontend": {**frontend, **UNTRAINED}})


PRETRAINING = Kind(
    work="lcd.pipelines.jobs.pretraining:pretrain_run",
    label=label,
    is_config=is_config,
    promise=promise,
    outputs=(WEIGHTS_FILE,),
    least_memory=least_memory,
    unit_steps=lambda config: 1,
    evaluations=evaluations,
    scaled_down=scaled_down,
    shortened=shortened,
)
