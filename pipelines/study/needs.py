"""What a request takes at the least, so that one that no machine could serve is refused before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lcd.config.schema_parts import VideosConfig
from lcd.config.schemas import ViewConfig
from lcd.pipelines.kinds.pretrain import PAIR_BYTES, VIDEO_BYTES
from lcd.pipelines.kinds.train import COPY_BYTES, evaluations, held_out_bytes, rollout_bytes
from lcd.pipelines.study.configs import RunConfig, population
from lcd.pipelines.study.evaluated import evaluated_by
from lcd.process.limits import require_memory, require_time

FLOAT_BYTES, NUMBER_BYTES = 4, 8
EPISODE_BYTES = 32
"""A return in a list."""
TILE_BYTES = 165 * 165 * 4
"""A picture on a sheet, as `lcd view` draws it."""


def check_run(run_config: RunConfig) -> None:
    """Refuse a run whose rollouts or held-out copies do not fit, or that would go on for months."""
    members, agent, evaluation = population(run_config), run_config["agent"], run_config["evaluation"]
    many = _many(run_config)
    copies, rollout = agent.get("copies", 1), agent.get("rollout")
    rollouts = f"{many} of agent.copies={copies} and agent.rollout={rollout}"
    require_memory(rollouts if isinstance(rollout, int) else f"agent.copies={copies}", rollout_bytes(run_config))
    require_memory(f"{many} of evaluation.copies={evaluation['copies']}", held_out_bytes(run_config))
    _check_learning(run_config, many)
    held_out = members * evaluation["copies"]
    require_time(f"{many} of steps={run_config['steps']}", members * run_config["steps"])
    every, episodes = evaluation["every"], evaluation["episodes"]
    what = f"{many} of evaluation.copies={evaluation['copies']} and evaluation.episodes={episodes}"
    each = len(evaluated_by(run_config))
    require_time(f"{what}, every evaluation.every={every} steps,", held_out * episodes * evaluations(run_config) * each)


def _many(run_config: RunConfig) -> str:
    seeds, points = len(run_config["seeds"]), run_config.get("points")
    told = f"{seeds} seed{'s' * (seeds > 1)}"
    return f"{len(points)} points (study.points_per_run) x {told}" if points else told


def _check_learning(run_config: RunConfig, many: str) -> None:
    """What a layer puts out while all copies act, and the order in which an update takes its samples."""
    members = population(run_config)
    agent: Mapping[str, Any] = run_config["agent"]
    copies, rollout = (size if isinstance(size := agent.get(key), int) else 1 for key in ("copies", "rollout"))
    if isinstance(width := agent.get("width"), int):
        require_memory(
            f"{many} of agent.copies={copies} and agent.width={width}", members * copies * width * FLOAT_BYTES
        )
    # PPG's auxiliary phase takes whole rollouts, not samples.
    for key, taken in (("epochs", rollout), ("value_epochs", rollout), ("auxiliary_epochs", 1)):
        if isinstance(epochs := agent.get(key), int):
            what = f"{many} of agent.{key}={epochs}, agent.copies={copies} and agent.rollout={rollout}"
            require_memory(what, members * epochs * copies * taken * NUMBER_BYTES)


def check_videos(asked: VideosConfig, tasks: int, batch: int, iterations: int) -> None:
    """Refuse a pretraining whose videos or batches do not fit, or that would go on for months."""
    videos = tasks * (asked.count + asked.held_out)
    what = f"pretraining.videos.count={asked.count} and held_out={asked.held_out} of {tasks} task{'s' * (tasks > 1)}"
    require_memory(what, videos * VIDEO_BYTES)
    require_time(what, 2 * videos)
    copies = min(asked.copies, max(asked.count, asked.held_out))
    require_memory(f"pretraining.videos.copies={asked.copies}", copies * COPY_BYTES)
    require_memory(f"pretraining.batch={batch}", PAIR_BYTES * batch)
    require_time(f"pretraining.iterations={iterations} of pretraining.batch={batch}", iterations * batch)


def check_measurement(episodes: int) -> None:
    """Refuse to measure more episodes than can be kept or played."""
    require_memory(f"episodes={episodes}", episodes * EPISODE_BYTES)
    require_time(f"episodes={episodes}", episodes)


def check_sheets(cfg: ViewConfig, views: int) -> None:
    """Refuse sheets that are too large to be drawn."""
    for key in ("steps", "levels", "frames"):
        require_memory(f"{key}={getattr(cfg, key)} of {views} views", getattr(cfg, key) * views * TILE_BYTES)
