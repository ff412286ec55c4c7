"""The configs of the commands that look at tasks before anything is trained, and of the one that begins some."""

from dataclasses import dataclass, field
from typing import Any

from lcd.config.schema_parts import MASKS, BenchmarkConfig, TaskConfig, doc


@dataclass
class ViewConfig:
    """Draw a task under each of its views; where masks have labels, several levels with a legend, and an animation."""

    benchmark: BenchmarkConfig = field(default_factory=BenchmarkConfig)
    masks: str | None = field(default=None, metadata=MASKS)
    task: TaskConfig = field(default_factory=TaskConfig)
    view: str | None = field(default=None, metadata=doc("one view; null: all of the benchmark's"))
    seed: int = field(default=0, metadata=doc("seed of the environment and of the random actions", least=0))
    steps: int = field(default=8, metadata=doc("number of successive steps of a sheet without labels", least=1))
    levels: int = field(default=4, metadata=doc("levels of a sheet with labels", least=1))
    frames: int = field(default=60, metadata=doc("frames of the animation that goes with it", least=1))
    split: str = field(default="train", metadata=doc("training or held-out copies", ("train", "eval")))
    out: str | None = field(default=None, metadata=doc("the PNG, or the folder of several; null: <task>.png"))


@dataclass
class MeasureConfig:
    """Measure a random agent's mean return on tasks, beside the stated R_min; or how well a front-end shows objects."""

    benchmark: BenchmarkConfig = field(default_factory=BenchmarkConfig)
    masks: str | None = field(default=None, metadata=MASKS)
    frontend: dict[str, Any] = field(
        default_factory=dict, metadata=doc("identity: returns; another: its objectness, on paired views")
    )
    tasks: list[str] | None = field(default=None, metadata=doc("tasks of the benchmark; null: all of them"))
    episodes: int = field(default=256, metadata=doc("episodes of each task", least=1))
    copies: int = field(default=64, metadata=doc("environment copies, each of which plays as many", least=1))
    seed: int = field(default=0, metadata=doc("seed of the environment and of the random actions", least=0))
    split: str = field(default="train", metadata=doc("training or held-out copies", ("train", "eval")))
    videos: int = field(
        default=16, metadata=doc("objectness: videos that choose maps, and as many that score", least=2)
    )
    deadline: int = field(default=3600, metadata=doc("seconds in which no episode ends until it fails", least=1))
    out: str | None = field(
        default=None,
        metadata=doc("folder of ranges.csv, for lcd report ranges=; of a front-end the table and sheets; null: none"),
    )


@dataclass
class HorizonConfig:
    """Say how far a deterministic task asks an agent to look ahead: k, m, H, and the bounds on them."""

    mdp: str | None = field(
        default=None,
        metadata=doc(
            "an .npz file, module:object, a task that can be tabulated, a benchmark of such, or a study's folder (its "
            "tasks as they were trained); mdp= may be left out"
        ),
    )
    knobs: dict[str, Any] = field(
        default_factory=dict,
        metadata=doc("of a task: its knobs, and start=… where it begins in one of several states"),
    )
    tasks: list[str] | None = field(
        default=None, metadata=doc("of a benchmark, or a study: these of its tasks alone; null: all of them")
    )
    horizon: int | None = field(default=None, metadata=doc("steps of an episode; null: what the MDP says"))
    sticky: float | None = field(
        default=None, metadata=doc("probability that a step repeats the last action; null: what the MDP says")
    )
    discount: float = field(default=0.99, metadata=doc("γ while planning; policies are judged without discount"))
    tolerance: float | None = field(
        default=None, metadata=doc("relative difference up to which Q-values are tied; null: that of rounding")
    )
    timesteps: float = field(
        default=1e7, metadata=doc("most timesteps of a run of GORP, T² · A^k · m; 0: what is exact alone")
    )
    up_to: float | None = field(
        default=None,
        metadata=doc("where nothing succeeds within them, an H up to which is looked on; null: none"),
    )
    most_steps: float = field(
        default=1e10,
        metadata=doc("simulated steps of all runs after which up_to is given up, and H a lower bound"),
    )
    runs: int = field(default=400, metadata=doc("most runs of GORP for each k and m", least=1))
    simulated: int = field(
        default=2_000_000, metadata=doc("of a task without tables: steps of its environment in all", least=1)
    )
    copies: int = field(default=64, metadata=doc("of a task without tables: copies that are stepped together", least=1))
    confidence: float = field(default=0.95, metadata=doc("of the bounds on m"))
    most_k: int | None = field(default=None, metadata=doc("greatest k that is tried; null: all, for some minutes"))
    seed: int = field(default=0, metadata=doc("of a task's tables, and of GORP's random actions", least=0))
    save: bool = field(default=False, metadata=doc("of a benchmark: write its MDPs as .npz files, too"))
    bridge: str | None = field(
        default=None, metadata=doc("of a benchmark: BRIDGE's summary.csv, whose MDPs are drawn beside its own")
    )
    out: str | None = field(
        default=None,
        metadata=doc("a JSON file for all of it; of a benchmark a folder, which is gone on with"),
    )


@dataclass
class NewConfig:
    """Write a file to begin with, which runs as it is; nothing is written over."""

    what: str = field(default="benchmark", metadata=doc("what is begun; what= may be left out", ("benchmark",)))
    name: str | None = field(
        default=None, metadata=doc("what it is called, as a Python module is (my_worlds); name= may be left out")
    )
    out: str | None = field(default=None, metadata=doc("the folder of NAME.py; null: where the command is given"))
