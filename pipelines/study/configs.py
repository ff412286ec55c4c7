"""What lies on disk of a study, as types: what a run is asked for, its status, and the names that follow from them.

A run's config, its status and a tracker's settings are YAML or JSON mappings, so they are typed dictionaries here, and
stay plain dictionaries where they are used. What never goes to disk is a dataclass.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, Required, TypedDict, TypeGuard, TypeVar

from lcd.curves.names import varied_task
from lcd.frontends.entry import FrontendEntry, WeightsFile

TRAIN, PRETRAIN = "train", "pretrain"
"""The kinds of jobs that every study may hold; `lcd.pipelines.kinds` has what they are."""
ID_LENGTH = 12
RANDOM = "random"
"""The policy that needs no trained agent."""
MOST_DIFFERENCES = 4
"""How many differences between two runs are told."""


class OutputOf(TypedDict):
    """A file that another job of the study leaves: who has it in its config waits for that job.

    Attributes:
        job: the job's run id.
        file: below its run's folder.
    """

    job: str
    file: str


class AgentEntry(TypedDict, total=False):
    """An agent by its name, with all of its hyper-parameters; it has further ones of its own."""

    name: Required[str]
    label: str
    copies: int
    rollout: int
    minibatches: int
    phase: int
    auxiliary_rollouts: int


class EvaluationEntry(TypedDict, total=False):
    """When and how a run is evaluated on held-out copies."""

    every: Required[int]
    copies: int
    episodes: int
    noise_free: bool
    greedy: bool
    tasks: list[str]
    contexts: dict[str, dict[str, Any]]


class StageEntry(TypedDict):
    """A task of a curriculum, and what curves call it."""

    name: str
    task: str
    knobs: dict[str, Any]
    steps: int


class JobConfig(TypedDict):
    """What a job of any kind is asked for; the hash of it is its run id.

    Attributes:
        kind: a registered kind of job (`lcd.pipelines.kinds.kind`) or `module:object`.
        benchmark: a registered name or `module:object`.
        seeds: those that the run is for.
        steps: how much there is to do for each seed.
        source: by part (benchmark, agent, front-end) the hashes of the user's own modules.
    """

    kind: str
    benchmark: str
    seeds: list[int]
    steps: int
    source: NotRequired[dict[str, dict[str, str]]]


AnyConfig = TypeVar("AnyConfig", bound=JobConfig)
"""The config of a job of one kind."""


class RunConfig(JobConfig):
    """A training: one condition and protocol for some seeds.

    Attributes:
        points: points of the task's family by what curves call them, each of which is trained with all seeds; without
            it the task is trained as it is.
    """

    task: str
    knobs: dict[str, Any]
    view: str
    frontend: FrontendEntry
    reward_p: float
    shaping: str
    agent: AgentEntry
    evaluation: EvaluationEntry
    curriculum: NotRequired[list[StageEntry]]
    points: NotRequired[dict[str, dict[str, float]]]


class VideosEntry(TypedDict):
    """The videos that a front-end is pretrained on; their own hash names their folder.

    Attributes:
        frames: that belong together; left out where they are pairs.
        policy: "random", or each task's run whose agent plays, by its checkpoint.
        folder: below the study's `videos/`.
    """

    benchmark: str
    tasks: list[str]
    view: str
    knobs: dict[str, Any]
    seed: int
    count: int
    held_out: int
    length: int
    gap: int
    frames: NotRequired[int]
    copies: int
    policy: str | dict[str, WeightsFile]
    folder: NotRequired[str]


class PretrainConfig(JobConfig):
    """A pretraining: a front-end's networks learn on videos, without rewards; its steps are batches."""

    frontend: FrontendEntry
    batch: int
    learning_rate: float
    loss: dict[str, Any]
    evaluation: EvaluationEntry
    videos: VideosEntry


def is_training(config: JobConfig) -> TypeGuard[RunConfig]:
    """Whether a job is a training."""
    return config["kind"] == TRAIN


def is_pretraining(config: JobConfig) -> TypeGuard[PretrainConfig]:
    """Whether a job is a pretraining."""
    return config["kind"] == PRETRAIN


class TrackerEntry(TypedDict, total=False):
    """A tracker by its name, with its own settings where it has some."""

    name: Required[str]
    settings: dict[str, Any]


class Status(TypedDict):
    """What a run's `status.json` says.

    Attributes:
        state: one of `store.STATES`.
        step, steps: how far it is, and how far it goes.
        steps_per_s: of all seeds together.
        wall_s: seconds that it has taken, resumed parts included.
        threads: of each of its processes.
        device: where its networks were.
        precision: what they were computed in, as Lightning calls it.
        where: the machine and the process that are at it, or were last.
        launcher: the hashes of the launcher's own code.
        wandb_id, mirrored_step: its W&B run, and up to where that has its rows.
        mirrored_member: whose rows these are, where members are trained one after the other.
        error: why it failed or diverged.
        diverged: the points that it goes on without, by what they are trained as, and why.
        inputs: the hashes of the files that it took of other jobs (`<run id>/<file>`).
        seal: the hashes of what it left, once it is done.
        continues: of how many steps the run is that it begins with what that left; 0 where there is none.
        updated: when this was written, in seconds since 1970.
    """

    state: str
    step: int
    steps: int
    steps_per_s: float
    wall_s: float
    threads: int
    device: str | None
    precision: str | None
    where: str | None
    launcher: dict[str, dict[str, str]]
    wandb_id: str | None
    mirrored_step: int
    mirrored_member: int
    error: str | None
    diverged: dict[str, str]
    inputs: dict[str, str]
    seal: dict[str, str]
    continues: int
    updated: float


STATUS: Status = {
    "state": "queued",
    "step": 0,
    "steps": 0,
    "steps_per_s": 0.0,
    "wall_s": 0.0,
    "threads": 1,
    "device": None,
    "precision": None,
    "where": None,
    "launcher": {},
    "wandb_id": None,
    "mirrored_step": -1,
    "mirrored_member": 0,
    "error": None,
    "diverged": {},
    "inputs": {},
    "seal": {},
    "continues": 0,
    "updated": 0.0,
}
"""The status of a new run."""


class Condition(TypedDict):
    """What tells two curves of one seed apart, as `curve.csv` names it."""

    task: str
    benchmark: str
    view: str
    reward_p: float
    shaping: str
    frontend: str
    agent: str


@dataclass(frozen=True)
class Device:
    """Where networks are trained, and by how many processes.

    Attributes:
        accelerator: as Lightning calls it: auto, cpu, cuda, mps.
        devices: GPUs, or processes without them, of each machine.
        num_nodes: machines.
    """

    accelerator: str
    devices: int = 1
    num_nodes: int = 1

    @property
    def processes(self) -> int:
        """All that train one run together."""
        return self.devices * self.num_nodes


def canonical(value: Any) -> str:
    """JSON that is the same for equal configs."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def run_id(config: Mapping[str, Any]) -> str:
    """The name of a run's folder: the hash of its config. A file counts by its content, wherever it lies."""
    return hashlib.sha256(canonical(without_places(config)).encode()).hexdigest()[:ID_LENGTH]


def without_places(value: Any) -> Any:
    """A config in which files (`{"file": …, "sha256": …}`) are their hashes."""
    if isinstance(value, Mapping):
        if set(value) == {"file", "sha256"}:
            return value["sha256"]
        return {key: without_places(each) for key, each in value.items()}
    return [without_places(each) for each in value] if isinstance(value, list | tuple) else value


def inputs_of(value: Any) -> list[OutputOf]:
    """The files of other jobs that a config names, wherever in it, each once."""
    if isinstance(value, Mapping):
        if set(value) == set(OutputOf.__annotations__):
            return [OutputOf(job=str(value["job"]), file=str(value["file"]))]
        value = list(value.values())
    inner = [each for item in value for each in inputs_of(item)] if isinstance(value, list | tuple) else []
    return [each for index, each in enumerate(inner) if each not in inner[:index]]


def condition(config: RunConfig) -> Condition:
    """Everything that tells two runs of one seed apart: what is trained (here `task`), view, front-end, p and so on."""
    return {
        "task": task_name(config),
        "benchmark": config["benchmark"],
        "view": config["view"],
        "reward_p": config["reward_p"],
        "shaping": config["shaping"],
        "frontend": frontend_name(config),
        "agent": agent_name(config["agent"]),
    }


def agent_name(entry: AgentEntry) -> str:
    """What curves call an agent: its name, or the label of one whose hyper-parameters a study varies."""
    return entry.get("label") or entry["name"]


def frontend_name(config: RunConfig) -> str:
    """What curves call a run's front-end: its name, or the label of one that may be many (any backbone, say)."""
    return config["frontend"].get("label") or config["frontend"]["name"]


def task_name(config: RunConfig) -> str:
    """What curves call that which a run is trained on: its task with the changed knobs, or its curriculum."""
    return varied_task(config["task"], config["knobs"])


def agent_of(config: RunConfig) -> tuple[str, dict[str, Any]]:
    """The agent's name and its hyper-parameters."""
    params: dict[str, Any] = {**config["agent"]}
    params.pop("label", None)
    return params.pop("name"), params


def population(config: Mapping[str, Any]) -> int:
    """How many agents a job trains: one for each seed, on each of its points where it has some."""
    return len(config["seeds"]) * len(config.get("points") or [None])


def longest_first(config: JobConfig) -> int:
    """Runs sorted by this are in the order in which launchers get them: those that need most steps first."""
    return -int(config["steps"]) * population(config)


def difference(there: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """In what two configs differ, key by key: "steps=100 there, 200 asked for"."""
    both = [flat(config) for config in (there, asked)]
    keys = [key for key in {**both[0], **both[1]} if both[0].get(key) != both[1].get(key)]
    each = [f"{key}={_shown(both[0], key)} there, {_shown(both[1], key)} asked for" for key in keys]
    more = len(each) - MOST_DIFFERENCES
    return "; ".join(each[:MOST_DIFFERENCES]) + (f"; and {more} more" if more > 0 else "")


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A config on one level: its keys are joined by dots."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) and value else {f"{prefix}{key}": value}
    return found


def _shown(levelled: Mapping[str, Any], key: str) -> str:
    value = levelled.get(key, "nothing")
    return value if isinstance(value, str) else json.dumps(value, default=str)
