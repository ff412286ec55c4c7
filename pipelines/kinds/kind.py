"""Kinds of jobs: what a study can have done in a folder of its own, whatever it is.

A study is a graph of jobs. A job is a kind and a config; what it takes of others stands in its config
(`lcd.pipelines.study.configs.OutputOf`), so that its run id follows from theirs. To add a kind, register a `Kind`: by
an entry point (`lcd.jobs`), or as `module:object` in the config's key `kind`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcd.config.registries import kinds
from lcd.pipelines.study.configs import JobConfig, RunConfig, inputs_of, is_training, run_id
from lcd.pipelines.study.promise import Promise, broken_promise

CURVE_FILE, TRAIN_FILE = "curve.csv", "train.csv"
NAMED = ("trained_on", "stage", "seed", "step")
"""What tells rows of `train.csv` apart."""
MACHINE = ("wall_s", "steps_per_s", "memory_mb", "gpu_memory_mb", "gpu_percent")
"""Of its columns what the machine did: they are not the same again."""


def _as_one_piece(config: Any) -> int:
    return max(1, int(config["steps"]))


def _the_same(config: Any) -> tuple[Any, Scale]:
    return config, Scale()


def _with_steps(config: Any, units: int, every: int) -> Any:
    return {**config, "steps": units}


@dataclass(frozen=True)
class Scale:
    """How many times as much a job is as its scaled-down one: what it takes once, a unit's and an evaluation's time."""

    once: float = 1.0
    unit: float = 1.0
    evaluation: float = 1.0
    size: float = 1.0


@dataclass(frozen=True)
class Kind:
    """What tells jobs of one kind from others; of the functions each takes a config.

    Attributes:
        work: `module:function(config, folder, tracker, device)`, called where the job is done: from where its last
            start came to, to the end, which it tells by `lcd.pipelines.study.store.finish`.
        label: what a reader calls the job.
        is_config: whether what a stranger's file holds can be a config of this kind.
        promise: what its `curve.csv` will hold; None: it leaves no curve.
        outputs: files without which it is not done.
        condition: what two of the kind may not share in one study, unless they have other seeds; None: anything.
        shared: whether several processes may do it together.
        least_memory: bytes that it takes at the least.
        unit_steps: steps of one seed between two signs of progress.
        evaluations: how often it is measured.
        scaled_down: a job like it that takes as little as can be, and how many times as much the job itself is.
        shortened: the job with so many units, evaluated every so many, for timing.
    """

    work: str
    label: Callable[[Any], str]
    is_config: Callable[[Mapping[str, Any]], bool] = lambda config: True
    promise: Callable[[Any], Promise] | None = None
    outputs: tuple[str, ...] = ()
    condition: Callable[[Any], Mapping[str, Any]] | None = None
    shared: bool = False
    least_memory: Callable[[Any], int] = lambda config: 0
    unit_steps: Callable[[Any], int] = _as_one_piece
    evaluations: Callable[[Any], int] = lambda config: 1
    scaled_down: Callable[[Any], tuple[Any, Scale]] = _the_same
    shortened: Callable[[Any, int, int], Any] = _with_steps

    def wrong_with(self, folder: Path, config: JobConfig, upto: float) -> str:
        """What is wrong with what a job has left that has come to a step, in words that follow "its"; "" if nothing."""
        if self.promise is not None and (wrong := broken_promise(folder / CURVE_FILE, self.promise, config, upto)):
            return f"curve {wrong}"
        lacking = [name for name in self.outputs if not (folder / name).is_file()]
        return f"{lacking[0]} is missing" if lacking and upto == float("inf") else ""


@dataclass(frozen=True, eq=False)
class Job:
    """One job of a study's graph.

    Attributes:
        config: what it is asked for.
    """

    config: JobConfig

    @property
    def id(self) -> str:
        """Its run id: the name of its folder."""
        return run_id(self.config)

    @property
    def kind(self) -> Kind:
        """What kind of job it is."""
        return kind_of(self.config)

    @property
    def label(self) -> str:
        """What a reader calls it."""
        return self.kind.label(self.config)

    @property
    def after(self) -> tuple[str, ...]:
        """The run ids of the jobs that must be done before."""
        return tuple(dict.fromkeys(each["job"] for each in inputs_of(self.config)))


def kind_of(config: Mapping[str, Any]) -> Kind:
    """The kind of a job's config."""
    return kinds.resolve(config["kind"])


def trainings(jobs: Iterable[Job]) -> list[RunConfig]:
    """The configs of those jobs that are trainings."""
    return [job.config for job in jobs if is_training(job.config)]


def is_job_config(config: Any) -> bool:
    """Whether what a run's config.yaml holds can be a job's config; a stranger's study may hold anything."""
    types: dict[str, type] = {"kind": str, "benchmark": str, "seeds": list, "steps": int}
    return (
        isinstance(config, dict)
        and all(isinstance(config.get(key), kind) for key, kind in types.items())
        and all(isinstance(seed, int) for seed in config["seeds"])
        and kinds.may_resolve(config["kind"])
        and kind_of(config).is_config(config)
    )
