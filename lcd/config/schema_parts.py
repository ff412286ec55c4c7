"""What the configs of several commands have: benchmark, task, launcher, tracker, deadlines, evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


def doc(meaning: str, choices: Sequence[Any] = (), least: float | None = None) -> dict[str, Any]:
    """What `lcd.config.compose` shows and checks: a key's meaning, the values it may take, the least of them."""
    return {"meaning": meaning, "choices": tuple(choices), "least": least}


@dataclass
class BenchmarkConfig:
    """A set of tasks."""

    name: str = field(default="toy", metadata=doc("a registered benchmark, or module:object"))


@dataclass
class TaskConfig:
    """One task of the benchmark."""

    name: str = field(default="???", metadata=doc("the task's name in its benchmark"))
    knobs: dict[str, Any] = field(default_factory=dict, metadata=doc("what is passed on to the environment"))


SETTINGS = "settings"
OWN_KEYS = "the chosen one's own keys, which are given as launcher.KEY, tracker.KEY"


@dataclass
class LauncherConfig:
    """Where runs are trained."""

    name: str = field(default="local", metadata=doc("the launcher"))
    workers: Any = field(default="auto", metadata=doc("runs at the same time; auto: one a usable core", least=1))
    threads: int = field(default=1, metadata=doc("threads of each worker", least=1))
    grace: int = field(default=60, metadata=doc("seconds to keep what is trained after a signal to stop", least=0))
    settings: dict[str, Any] = field(default_factory=dict, metadata=doc(OWN_KEYS))


@dataclass
class DeadlinesConfig:
    """Seconds after which a run that makes no progress fails; the other runs go on."""

    start: int = field(
        default=1800,
        metadata=doc("from a run's start to its first step: imports, environments, networks", least=1),
    )
    heartbeat: int = field(
        default=1800, metadata=doc("from a step of all environments, or an update, to the next one", least=1)
    )
    episode: int = field(default=3600, metadata=doc("of an evaluation in which no episode ends", least=1))


@dataclass
class TrackerConfig:
    """What mirrors a study's curves."""

    name: str = field(default="wandb", metadata=doc("what mirrors the curves"))
    settings: dict[str, Any] = field(default_factory=dict, metadata=doc(OWN_KEYS))


@dataclass
class EvaluationConfig:
    """Held-out evaluation; it is also made at both ends of training."""

    every: int = field(default=1000, metadata=doc("steps of a seed between two evaluations", least=1))
    copies: int = field(default=8, metadata=doc("held-out environment copies of a seed", least=1))
    episodes: int = field(default=4, metadata=doc("episodes on each copy", least=1))
    greedy: bool = field(default=False, metadata=doc("play the most probable actions instead of sampled ones"))
    tasks: list[str] = field(
        default_factory=list, metadata=doc("further tasks of the benchmark on which each agent is evaluated")
    )
    contexts: dict[str, Any] = field(
        default_factory=dict,
        metadata=doc("settings of knobs under which each agent is evaluated, by name ({far: {delay: 4}})"),
    )
