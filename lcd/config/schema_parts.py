"""What the configs of several commands have: benchmark, task, launcher, tracker, deadlines, evaluation, pretraining."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


def doc(meaning: str, choices: Sequence[Any] = (), least: float | None = None) -> dict[str, Any]:
    """What `lcd.config.compose` shows and checks: a key's meaning, the values it may take, the least of them."""
    return {"meaning": meaning, "choices": tuple(choices), "least": least}


@dataclass
class BenchmarkConfig:
    """A set of tasks."""

    name: str = field(default="toy", metadata=doc("a registered benchmark, module:object, or gym:ID of Gymnasium's"))


MASKS = doc("of gym:ID: module:function that says labels, a YAML file of class: colour, info.KEY, or flow; null: none")


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


@dataclass
class VideosConfig:
    """The videos that a front-end is pretrained on."""

    count: int = field(default=256, metadata=doc("videos of each task", least=1))
    held_out: int = field(
        default=16, metadata=doc("further videos of each task, on which losses are measured", least=1)
    )
    length: int = field(default=20, metadata=doc("most frames of a video; an episode's end ends it earlier", least=2))
    gap: int = field(default=3, metadata=doc("steps between one frame and the next that is compared with it", least=1))
    copies: int = field(default=64, metadata=doc("environment copies that are filmed at once", least=1))


@dataclass
class FlowLossConfig:
    """What a good warp is; the defaults are the paper's."""

    mse: float = field(default=1.0, metadata=doc("weight of the mean squared error"))
    l1: float = field(default=0.0, metadata=doc("weight of the mean absolute error"))
    ssim: float = field(default=0.0, metadata=doc("weight of the structural dissimilarity"))
    smoothness: float = field(default=0.0, metadata=doc("weight of the flow's roughness off the image's edges"))
    occlusion: bool = field(default=False, metadata=doc("leave out what frame t cannot show"))


@dataclass
class FlowSizesConfig:
    """The networks' sizes where frontend.… leaves them open; null: the paper's."""

    width: int | None = field(default=None, metadata=doc("as frontend.width"))
    stem: int | None = field(default=None, metadata=doc("as frontend.stem"))
    pyramid: int | None = field(default=None, metadata=doc("as frontend.pyramid"))
    maps: int | None = field(default=None, metadata=doc("as frontend.maps"))
    hgru_kernel: int | None = field(default=None, metadata=doc("as frontend.hgru_kernel"))
    hgru_steps: int | None = field(default=None, metadata=doc("as frontend.hgru_steps"))
    motion: int | None = field(default=None, metadata=doc("as frontend.motion"))
    motion_stride: int | None = field(default=None, metadata=doc("as frontend.motion_stride"))
    decoder: int | None = field(default=None, metadata=doc("as frontend.decoder"))
    bound: float | None = field(default=None, metadata=doc("as frontend.bound"))


@dataclass
class PretrainingConfig:
    """How much is filmed and learned."""

    name: str = field(default="cpu", metadata=doc("the budget that these settings are of"))
    videos: VideosConfig = field(default_factory=VideosConfig)
    batch: int = field(default=16, metadata=doc("pairs of frames in a batch, or threes", least=1))
    iterations: int = field(default=1500, metadata=doc("batches that are learned from", least=1))
    learning_rate: float = field(default=0.001, metadata=doc("Adam's"))
    loss: FlowLossConfig = field(default_factory=FlowLossConfig)
    sizes: FlowSizesConfig = field(default_factory=FlowSizesConfig)
    decoder: str = field(
        default="convolutions",
        metadata=doc("what turns maps and motion into a flow", ("convolutions", "fpn")),
    )
    encoder: str = field(
        default="groups",
        metadata=doc(
            "what draws the maps: the paper's recurrent network, or groups of maps that compete",
            ("recurrent", "groups"),
        ),
    )
    every: int = field(default=500, metadata=doc("batches between two measurements on held-out videos", least=1))
