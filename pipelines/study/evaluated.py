"""What a run trains, and on what it is evaluated: the stages, tasks and contexts that its curve names."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lcd.config.nested import flatten, without
from lcd.curves.names import evaluated_name
from lcd.envs.families.family import Point
from lcd.pipelines.study.configs import RunConfig, task_name
from lcd.pipelines.study.members import points_of


@dataclass(frozen=True)
class Stage:
    """What is trained for some steps.

    Attributes:
        name: What curves call the stage; empty where the run is no curriculum.
        task: What curves call the trained task.
        made: The benchmark's task.
        knobs: What of it is changed.
        steps: For how many steps of a seed it is trained.
    """

    name: str
    task: str
    made: str
    knobs: Mapping[str, Any]
    steps: int


@dataclass(frozen=True)
class Evaluated:
    """One task in one context, whose held-out returns a run's curve has.

    Attributes:
        task: What curves call the task.
        made: The benchmark's task.
        knobs: What of it is changed.
        context: The context's name; empty for the one of training.
        trained: Whether the run is trained on it, too.
        on_point: Whether an agent is evaluated on the point that it is trained on, as far as `knobs` leave it.
    """

    task: str
    made: str
    knobs: Mapping[str, Any]
    context: str = ""
    trained: bool = True
    on_point: bool = True

    def at(self, features: Point) -> dict[str, Any]:
        """What of the task is changed for an agent of a point; a context may change features, too."""
        return {**without(features, flatten(self.knobs)), **self.knobs} if self.on_point else dict(self.knobs)

    @property
    def branch(self) -> tuple[str | int, ...]:
        """Of each seed's random streams, those of its evaluations: what is evaluated besides disturbs nothing else."""
        if self.trained:
            return ("evaluation",)
        name = evaluated_name(self.task, self.context)
        return ("elsewhere", int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]))


def points_at(run_config: RunConfig, place: Stage | Evaluated) -> list[dict[str, Any]]:
    """The features with which something is trained or evaluated, for each of the run's points; none elsewhere."""
    if isinstance(place, Evaluated) and not place.on_point:
        return [{} for _ in points_of(run_config)]
    said = flatten(place.knobs)
    return [
        {name: said.get(name, value) for name, value in features.items()} for features in points_of(run_config).values()
    ]


def stages_of(run_config: RunConfig) -> list[Stage]:
    """What a run trains, in order: one task, or the stages of a curriculum."""
    if "curriculum" not in run_config:
        made, knobs = run_config["task"], run_config["knobs"]
        return [Stage("", task_name(run_config), made, knobs, int(run_config["steps"]))]
    times: Counter[str] = Counter()
    stages = []
    for stage in run_config["curriculum"]:
        name = stage["name"]
        times[name] += 1
        again = f" ({times[name]})" if times[name] > 1 else ""
        stages.append(Stage(f"{name}{again}", name, stage["task"], stage["knobs"], int(stage["steps"])))
    return stages


def evaluated_by(run_config: RunConfig) -> list[Evaluated]:
    """What a run is evaluated on, in the order of its rows: the trained tasks, other tasks, the contexts."""
    stages = {stage.task: stage for stage in stages_of(run_config)}
    trained = [Evaluated(stage.task, stage.made, stage.knobs) for stage in stages.values()]
    evaluation = run_config["evaluation"]
    others = [
        Evaluated(task, task, {}, trained=False, on_point=False)
        for task in evaluation.get("tasks", ())
        if task not in stages
    ]
    contexts = [
        replace(each, knobs={**each.knobs, **knobs}, context=name, trained=False)
        for name, knobs in evaluation.get("contexts", {}).items()
        for each in trained
    ]
    return [*trained, *others, *contexts]
