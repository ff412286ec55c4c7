"""The configs of the commands that speak with W&B."""

from dataclasses import dataclass, field

from lcd.config.schema_parts import DeadlinesConfig, LauncherConfig, TrackerConfig, doc

DEVICES = ("auto", "cpu", "cuda", "mps")


@dataclass
class SyncConfig:
    """Upload a study's offline W&B runs."""

    path: str | None = field(default=None, metadata=doc("study folder; path= may be left out"))
    project: str | None = field(default=None, metadata=doc("W&B's project; null: the one that the runs were made for"))
    entity: str | None = field(default=None, metadata=doc("W&B's user or team; null: who is logged in"))
    dry_run: bool = field(default=False, metadata=doc("only say what would be uploaded; --dry-run is the same"))


@dataclass
class WandbSweepConfig:
    """Make a W&B sweep whose agents train a study's runs; with run=, train that one, as they do."""

    path: str | None = field(default=None, metadata=doc("study folder; path= may be left out"))
    run: str | None = field(default=None, metadata=doc("a run of the study: train it (what the sweep's agents call)"))
    out: str | None = field(default=None, metadata=doc("the sweep's file; null: wandb-sweep.yaml in the study"))
    launcher: LauncherConfig = field(default_factory=LauncherConfig)
    deadlines: DeadlinesConfig = field(default_factory=DeadlinesConfig)
    tracker: TrackerConfig = field(default_factory=TrackerConfig)
    device: str = field(default="auto", metadata=doc("where networks are trained", DEVICES))
