"""The commands' configs as typed dataclasses; `lcd <command> --help` prints every key's meaning."""

from dataclasses import dataclass, field
from typing import Any

from lcd.config.schema_parts import (
    MASKS,
    BenchmarkConfig,
    DeadlinesConfig,
    EvaluationConfig,
    LauncherConfig,
    PretrainingConfig,
    TaskConfig,
    TrackerConfig,
    doc,
)
from lcd.config.steering_schemas import CancelConfig, LogsConfig, RemoveConfig, RetryConfig, StatusConfig, condition
from lcd.config.task_schemas import HorizonConfig, MeasureConfig, NewConfig, ViewConfig
from lcd.config.wandb_schemas import DEVICES, SyncConfig, WandbSweepConfig
from lcd.scores.contrasts import DEFINITIONS, PERCEPTION, USUAL_DEFINITION
from lcd.statistics.confidence import ALPHA

SHAPINGS = ("none", "subgoals")
PROCESSES = "GPUs (without one: processes) that train each run together, sharing its copies"
DEFINITION_NAMES = tuple(DEFINITIONS)
SPENDINGS = ("pocock", "obrien_fleming")


@dataclass
class StudyConfig:
    """Which runs make a study."""

    name: str = field(default="lcd", metadata=doc("names the study's folder when out is not given"))
    seeds: Any = field(default=5, metadata=doc("a number of seeds, or a list of seeds"))
    steps: Any = field(
        default=None,
        metadata=doc("environment steps of each seed; or agent: steps, with default; null: the budget's"),
    )
    tasks: list[str] | None = field(default=None, metadata=doc("tasks of the benchmark; null: all of them"))
    views: list[str] | None = field(default=None, metadata=doc("views compared at p = 1; null: those of φ"))
    reward_p: list[float] | None = field(
        default=None, metadata=doc("probabilities of keeping a reward, on the solved view; null: those of ψ")
    )
    shaping: str = field(default="none", metadata=doc("extra training reward, where the benchmark has it", SHAPINGS))
    agents: list[str] | None = field(
        default=None, metadata=doc("agents compared, as they are or varied (ppo[rollout=128]); null: agent= alone")
    )
    frontends: list[str] | None = field(default=None, metadata=doc("front-ends compared; null: frontend= alone"))
    shapings: list[str] | None = field(default=None, metadata=doc("shapings compared; null: study.shaping alone"))
    agent_params: dict[str, Any] = field(
        default_factory=dict, metadata=doc("agent: its changed hyper-parameters ({ppg: {…}})")
    )
    frontend_params: dict[str, Any] = field(
        default_factory=dict, metadata=doc("front-end: its knobs ({flow: {weights: flow.pt}})")
    )
    parts: list[Any] | None = field(
        default=None,
        metadata=doc("crosses of tasks, agents, frontends, shapings, views, reward_p; null: one of all"),
    )
    contrasts: list[Any] | None = field(
        default=None,
        metadata=doc("asked beside φ and ψ: names, module:object, or {name, axis, baseline, variants, formula, …}"),
    )
    source: str | None = field(
        default=None, metadata=doc("the study whose diagnosis says what each task is trained with; null: none")
    )
    threshold: Any = field(
        default=0.5,
        metadata=doc("from where on a scaled score is hard: a number, median, largest-gap, or {phi: …, psi: …}"),
    )
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    noise_free: bool = field(default=False, metadata=doc("evaluate without noise, too, where the task has some"))
    grid: dict[str, Any] = field(
        default_factory=dict, metadata=doc("knobs.<knob> or agent.<setting>: its values; every combination is trained")
    )
    knobs: dict[str, Any] = field(default_factory=dict, metadata=doc("knobs of the tasks that are the same for all"))
    of: dict[str, Any] = field(
        default_factory=dict,
        metadata=doc("task, or what its name begins with: its own grid, knobs, seeds, steps, views, agents, …"),
    )
    seeds_per_run: int | None = field(
        default=None,
        metadata=doc("most seeds of a run, so that workers or GPUs share them; null: all in one", least=1),
    )
    family: dict[str, Any] | None = field(
        default=None,
        metadata=doc("a family of any environment: {env: CartPole-v1, contexts: {length: [0.5, 1]}, default: {…}}"),
    )
    points: Any = field(
        default=None,
        metadata=doc(
            "points of each task's family that are trained beside the task: all, how many, "
            "{choose: kmeans, budget: 40} (with seeds: turns one agent each), their names, a CSV file, or task: one of "
            "these; null: none, or with study.family all"
        ),
    )
    points_per_run: int | None = field(
        default=None,
        metadata=doc("most points of a run; null: all in one, or one by one where agents are", least=1),
    )
    steps_by_time_unit: bool = field(
        default=False,
        metadata=doc("where a task's knobs say time_unit, divide steps and evaluation.every by it: as many seconds"),
    )
    normalise: bool = field(
        default=False, metadata=doc("a grid's returns under delays and sequence lengths on one scale")
    )
    tests: list[Any] = field(default_factory=list, metadata=doc("one-sided tests of claims about the grid"))
    figures: list[Any] = field(default_factory=list, metadata=doc("a paper's figures and tables that it gives"))
    first: str | None = field(default=None, metadata=doc("the analysis that is told before all else"))


RETRY = doc("train runs that diverged anew, from the start; runs that failed are always tried again")
BUDGET = doc("how much is trained, and what an agent's name means there; else the benchmark's own")


@dataclass
class StoppingConfig:
    """When a study has seen enough seeds of a task."""

    name: str = field(
        default="none",
        metadata=doc(
            "auto runs seeds in rounds, for those conditions on which a score still depends", ("none", "auto")
        ),
    )
    until: str = field(
        default="width",
        metadata=doc(
            "certain enough: by the interval's width alone, or also once hard or easy is decided", ("width", "class")
        ),
    )
    first: int = field(default=4, metadata=doc("seeds of the first round", least=2))
    every: int = field(default=2, metadata=doc("seeds of each further round, up to study.seeds", least=1))
    phi: float = field(default=0.2, metadata=doc("certain enough: half the width of the raw φ's interval"))
    psi: float = field(default=0.1, metadata=doc("certain enough: half the width of the raw ψ's interval"))
    alpha: float = field(default=ALPHA, metadata=doc("error of a task's intervals over all looks together"))
    spending: str = field(default="pocock", metadata=doc("how the looks share the error", SPENDINGS))


ANALYSES = doc("what the report analyses, in order (lcd list analyses); all: the others; null: all")
SECTIONS = doc("what the report's page tells, in order (lcd list sections); all: the others; null: all")
DEFINITION = doc("of φ and ψ in the headline; both are always reported", DEFINITION_NAMES)
AS_DIAGNOSED = doc(f"of φ and ψ; null: what the study was diagnosed by, else {USUAL_DEFINITION}", DEFINITION_NAMES)
AGENT = doc("the learner and its hyper-parameters")
FRONTEND = doc("the frozen encoder between view and agent")


@dataclass
class DiagnoseConfig:
    """Train a study's runs, diagnose its tasks and report."""

    benchmark: BenchmarkConfig = field(default_factory=BenchmarkConfig)
    masks: str | None = field(default=None, metadata=MASKS)
    agent: dict[str, Any] = field(default_factory=dict, metadata=AGENT)
    frontend: dict[str, Any] = field(default_factory=dict, metadata=FRONTEND)
    study: StudyConfig = field(default_factory=StudyConfig)
    budget: str = field(default="cpu", metadata=BUDGET)
    stopping: StoppingConfig = field(default_factory=StoppingConfig)
    definition: str = field(default=USUAL_DEFINITION, metadata=DEFINITION)
    analyses: list[str] | None = field(default=None, metadata=ANALYSES)
    analysis_params: dict[str, Any] = field(default_factory=dict, metadata=doc("analysis: its own settings"))
    sections: list[str] | None = field(default=None, metadata=SECTIONS)
    section_params: dict[str, Any] = field(default_factory=dict, metadata=doc("section: its own settings"))
    launcher: LauncherConfig = field(default_factory=LauncherConfig)
    deadlines: DeadlinesConfig = field(default_factory=DeadlinesConfig)
    tracker: TrackerConfig = field(default_factory=TrackerConfig)
    out: str | None = field(default=None, metadata=doc("the study's folder; null: studies/<benchmark>-<study>"))
    retry: bool = field(default=False, metadata=RETRY)
    device: str = field(default="auto", metadata=doc("where networks are trained", DEVICES))
    devices: int = field(default=1, metadata=doc(PROCESSES, least=1))
    dry_run: bool = field(default=False, metadata=doc("only say what it will cost; --dry-run is the same"))


@dataclass
class AblateConfig(DiagnoseConfig):
    """Train conditions that differ in one thing alone (front-end or shaping) and say what it changes."""


@dataclass
class SweepConfig(DiagnoseConfig):
    """Vary one or two dimensions of hardness and say what becomes of the agents."""


@dataclass
class CheckConfig(DiagnoseConfig):
    """Say what is wrong with a benchmark before anything is trained, and what to do: the same words as lcd diagnose."""

    moments: int = field(
        default=16384, metadata=doc("steps of each task by which views, returns and lengths are judged", least=256)
    )
    patience: int = field(default=30, metadata=doc("seconds after which a task is judged by what was seen", least=1))
    forecast: bool = field(default=True, metadata=doc("time a little training, to say what the diagnosis costs"))
    format: str = field(default="text", metadata=doc("how it is told; --json is format=json", ("text", "json")))


@dataclass
class TrainConfig:
    """Train one run: one condition for a set of seeds."""

    benchmark: BenchmarkConfig = field(default_factory=BenchmarkConfig)
    masks: str | None = field(default=None, metadata=MASKS)
    task: TaskConfig = field(default_factory=TaskConfig)
    agent: dict[str, Any] = field(default_factory=dict, metadata=AGENT)
    frontend: dict[str, Any] = field(default_factory=dict, metadata=FRONTEND)
    budget: str = field(default="cpu", metadata=BUDGET)
    launcher: LauncherConfig = field(default_factory=LauncherConfig)
    deadlines: DeadlinesConfig = field(default_factory=DeadlinesConfig)
    tracker: TrackerConfig = field(default_factory=TrackerConfig)
    curriculum: Any = field(
        default=None,
        metadata=doc(
            "tasks learned one after the other, in place of task: [[task,steps],…], {name, stages}, or a file"
        ),
    )
    view: str = field(default=PERCEPTION.baseline, metadata=doc("what the environment shows"))
    reward_p: float = field(default=1.0, metadata=doc("probability of keeping a reward in training"))
    shaping: str = field(default="none", metadata=doc("extra training reward, where the benchmark has it", SHAPINGS))
    points: Any = field(
        default=None,
        metadata=doc("points of the task's family that are trained beside it, as study.points has them; null: none"),
    )
    seeds: Any = field(default=5, metadata=doc("a number of seeds, or a list of seeds"))
    steps: int = field(default=10000, metadata=doc("environment steps each seed is trained for", least=1))
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    out: str | None = field(default=None, metadata=doc("the folder of the run's study; null: below studies/"))
    retry: bool = field(default=False, metadata=RETRY)
    device: str = field(default="auto", metadata=doc("where networks are trained", DEVICES))
    devices: int = field(default=1, metadata=doc(PROCESSES, least=1))
    num_nodes: int = field(default=1, metadata=doc("machines that train the run, each with `devices`", least=1))
    dry_run: bool = field(default=False, metadata=doc("only say what it will cost; --dry-run is the same"))


@dataclass
class ReportConfig:
    """Diagnose a study's folder, a CSV or Parquet file of curves, or W&B's runs, and report."""

    path: str | None = field(
        default=None,
        metadata=doc("study folder, curves, wandb:entity/project/group, wandb:offline/FOLDER; path= may be left out"),
    )
    against: str | None = field(
        default=None, metadata=doc("a second study or file, to compare with; against= may be left out")
    )
    tables: list[str] = field(default_factory=list, metadata=doc("further formats of all tables: markdown, latex"))
    ranges: Any = field(
        default=None,
        metadata=doc(
            "YAML or JSON file of task: [lo, hi], ranges.csv of lcd measure, or measured; or 'ranges.TASK=[lo,hi]'"
        ),
    )
    map: Any = field(
        default=None,
        metadata=doc("of wandb: runs, YAML file of column: config.KEY or history.KEY; or one by one, map.COLUMN=…"),
    )
    horizons: str | None = field(
        default=None, metadata=doc("CSV file of tasks' effective horizons, as lcd horizon writes it; null: none")
    )
    threshold: Any = field(
        default=0.5,
        metadata=doc("from where on a scaled score is hard: a number, median, largest-gap, or {phi: …, psi: …}"),
    )
    out: str | None = field(default=None, metadata=doc("folder of the report; null: in the study, beside the file"))
    definition: str | None = field(default=None, metadata=AS_DIAGNOSED)
    analyses: list[str] | None = field(default=None, metadata=ANALYSES)
    analysis_params: dict[str, Any] = field(default_factory=dict, metadata=doc("analysis: its own settings"))
    sections: list[str] | None = field(default=None, metadata=SECTIONS)
    section_params: dict[str, Any] = field(default_factory=dict, metadata=doc("section: its own settings"))


@dataclass
class ImportConfig:
    """Make curves of anybody's logs: W&B, TensorBoard, Stable-Baselines3, RLlib, CleanRL, rliable, any CSV."""

    path: str | None = field(
        default=None,
        metadata=doc("logs' folder or file, wandb:entity/project/group, wandb:offline/FOLDER; path= may be left out"),
    )
    map: Any = field(
        default=None,
        metadata=doc("YAML file of column: config.KEY, history.KEY, path.NAME or a constant; or map.COLUMN=…"),
    )
    folders: str | None = field(
        default=None,
        metadata=doc("how runs' folders are called: '{task}/{view}/p{reward_p}/seed_{seed}'; {_}: anything"),
    )
    names: dict[str, Any] = field(
        default_factory=dict,
        metadata=doc("column: {what logs call it: what it is here} ({view: {raw: pixels}})"),
    )
    format: str | None = field(
        default=None,
        metadata=doc("of the logs: evaluations, progress, wandb, tensorboard, monitor, rliable, csv; null: as found"),
    )
    grid: Any = field(
        default="auto", metadata=doc("steps over which returns are averaged; 0: as they are; auto: of episodes alone")
    )
    least: float = field(
        default=0.5, metadata=doc("share of the longest curve's steps without which a curve is left out")
    )
    out: str | None = field(default=None, metadata=doc("the CSV file; null: NAME-curves.csv, here"))


@dataclass
class VerifyConfig:
    """Check that a study's files are what its runs left: configs, curves, checkpoints, sources, diagnosis."""

    path: str | None = field(default=None, metadata=doc("study folder; path= may be left out"))


@dataclass
class PowerConfig:
    """Say how many seeds and steps it takes to tell the scores of a study's tasks apart."""

    path: str | None = field(default=None, metadata=doc("study folder or file of curves; path= may be left out"))
    ranges: Any = field(
        default=None,
        metadata=doc(
            "YAML or JSON file of task: [lo, hi], ranges.csv of lcd measure, or measured; or 'ranges.TASK=[lo,hi]'"
        ),
    )
    definition: str | None = field(default=None, metadata=AS_DIAGNOSED)
    power: float = field(default=0.8, metadata=doc("wanted probability of finding a difference"))
    alpha: float = field(default=ALPHA, metadata=doc("probability of finding one that is not there"))
    most: int = field(default=20, metadata=doc("pairs of tasks shown for each score, the hardest first", least=1))
    out: str | None = field(default=None, metadata=doc("a CSV file for all pairs; null: none"))


@dataclass
class PretrainConfig:
    """Film a benchmark's tasks and pretrain a front-end on the videos, without rewards."""

    benchmark: BenchmarkConfig = field(default_factory=BenchmarkConfig)
    masks: str | None = field(default=None, metadata=MASKS)
    frontend: dict[str, Any] = field(default_factory=dict, metadata=FRONTEND)
    budget: str = field(default="cpu", metadata=doc("how much is filmed and learned; else the benchmark's own"))
    pretraining: PretrainingConfig = field(default_factory=PretrainingConfig)
    launcher: LauncherConfig = field(default_factory=LauncherConfig)
    deadlines: DeadlinesConfig = field(default_factory=DeadlinesConfig)
    tracker: TrackerConfig = field(default_factory=TrackerConfig)
    tasks: list[str] | None = field(
        default=None, metadata=doc("tasks that are filmed; null: those that the benchmark calls moving, or all")
    )
    knobs: dict[str, Any] = field(default_factory=dict, metadata=doc("what is passed on to the environments"))
    view: str = field(default=PERCEPTION.baseline, metadata=doc("what is filmed"))
    policy: str = field(default="random", metadata=doc("who plays: random, or the folder of a run or of a study"))
    seed: int = field(default=0, metadata=doc("of the videos, the networks and the order of learning", least=0))
    out: str | None = field(default=None, metadata=doc("the study's folder; null: below studies/"))
    retry: bool = field(default=False, metadata=RETRY)
    device: str = field(default="auto", metadata=doc("where networks are trained", DEVICES))


@dataclass
class ListConfig:
    """List what can be chosen."""

    what: str | None = field(default=None, metadata=doc("benchmarks, agents, contrasts, …; what= may be left out"))
    benchmark: str | None = field(
        default=None, metadata=condition("tasks: those of one benchmark, gym:ID and yours included; null: of all")
    )


@dataclass
class CompletionConfig:
    """Print what a shell needs to complete lcd's commands, keys and names."""

    shell: str | None = field(default=None, metadata=doc("bash, zsh or fish; shell= may be left out"))


@dataclass
class DoctorConfig:
    """Say what works on this machine."""


SCHEMAS: dict[str, type] = {
    "diagnose": DiagnoseConfig,
    "ablate": AblateConfig,
    "train": TrainConfig,
    "pretrain": PretrainConfig,
    "sweep": SweepConfig,
    "report": ReportConfig,
    "import": ImportConfig,
    "power": PowerConfig,
    "verify": VerifyConfig,
    "sync": SyncConfig,
    "wandb-sweep": WandbSweepConfig,
    "status": StatusConfig,
    "logs": LogsConfig,
    "cancel": CancelConfig,
    "retry": RetryConfig,
    "remove": RemoveConfig,
    "view": ViewConfig,
    "measure": MeasureConfig,
    "horizon": HorizonConfig,
    "new": NewConfig,
    "check": CheckConfig,
    "list": ListConfig,
    "completion": CompletionConfig,
    "doctor": DoctorConfig,
}
