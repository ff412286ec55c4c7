"""The members of a run: the agents that it trains together, one for each seed on each of its points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lcd.curves.names import evaluated_name
from lcd.envs.families.family import Point
from lcd.pipelines.study.configs import RunConfig, task_name

ITSELF: Mapping[str, Point] = {"": {}}
"""The points of a run that names none: the task as it is."""


@dataclass(frozen=True)
class Member:
    """One agent of a run.

    Attributes:
        seed: Of all its random streams: on a point, too, it gets what it would get alone.
        point: What curves call the point that it is trained on; empty for the task as it is.
        features: The point.
        number: The place of its point among the run's.
    """

    seed: int
    point: str = ""
    features: Point = field(default_factory=dict, hash=False)
    number: int = 0


def points_of(run_config: RunConfig) -> Mapping[str, Point]:
    """The points that a run trains, by what curves call them."""
    return run_config.get("points", ITSELF)


def members_of(run_config: RunConfig) -> list[Member]:
    """The members in the order of every axis of members: point by point, each with all seeds."""
    points = enumerate(points_of(run_config).items())
    return [Member(seed, name, features, number) for number, (name, features) in points for seed in run_config["seeds"]]


def seeds_of(run_config: RunConfig) -> list[int]:
    """The seed of each member."""
    return [member.seed for member in members_of(run_config)]


def trained_by(run_config: RunConfig, member: Member) -> str:
    """What curves say that a member was trained on."""
    return evaluated_name(task_name(run_config), member.point)


def alone(run_config: RunConfig, member: Member) -> RunConfig:
    """The run of one member."""
    single: RunConfig = {**run_config, "seeds": [member.seed]}
    if "points" in run_config:
        single["points"] = {member.point: dict(member.features)}
    return single


def checkpoint_of(run_config: RunConfig, member: Member) -> str:
    """The checkpoint's file of a member that is trained by itself."""
    of_point = f"-point-{member.number}" if "points" in run_config else ""
    return f"seed-{member.seed}{of_point}.ckpt"
