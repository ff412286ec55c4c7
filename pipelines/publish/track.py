"""Trackers mirror a study's curves; nothing is computed from what they hold, nothing they do stops training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lcd.config.registries import trackers
from lcd.config.schema_parts import TrackerConfig
from lcd.config.settings import settings_for
from lcd.pipelines.publish.wandb_client import logged_in, unreachable, wandb_settings
from lcd.pipelines.study.configs import JobConfig, Status, TrackerEntry

Rows = Sequence[Mapping[str, Any]]


def open_tracker(tracker: TrackerEntry, run_dir: str | Path, run_config: JobConfig, status: Status) -> Tracker:
    """The tracker of one run.

    Args:
        tracker: its name, and its own settings where it has some.
        run_dir: the run's folder.
        run_config: what is trained.
        status: the run's status: its W&B id and how far it was mirrored.
    """
    name = tracker["name"]
    made = trackers.resolve(name)
    own = settings_for(made, tracker.get("settings", {}), "tracker", f"tracker={name}")
    return made(Path(run_dir), dict(run_config), dict(status), **own)


def tracker_entry(tracker: TrackerConfig) -> TrackerEntry:
    """The tracker that a command's config names."""
    return {"name": tracker.name, "settings": dict(tracker.settings)}


def usable(tracker: TrackerEntry) -> tuple[TrackerEntry, str | None]:
    """The tracker's config as it can be used here, and what a user should know of that before training."""
    if tracker["name"] != "wandb":
        return tracker, None
    if find_spec("wandb") is None:
        return {"name": "none", "settings": {}}, "W&B is not installed (pip install wandb): the study is not mirrored."
    if wandb_settings(tracker).mode != "online":
        return tracker, None
    if not logged_in():
        why = "needs a login to W&B, and there is none (run 'wandb login', or set WANDB_API_KEY)"
    elif (reason := unreachable()) is not None:
        why = f"needs W&B's server, which cannot be reached ({reason})"
    else:
        return tracker, None
    told = f"tracker.mode=online {why}: the study is mirrored offline, and 'lcd sync' can upload it later."
    return {"name": "wandb", "settings": tracker["settings"] | {"mode": "offline"}}, told


def to_try(tracker: TrackerEntry) -> TrackerEntry:
    """A tracker whose work takes time like this one's, but which tells nobody of what is only tried."""
    if tracker["name"] != "wandb":
        return {"name": "none", "settings": {}}
    mode = "disabled" if wandb_settings(tracker).mode == "disabled" else "offline"
    return {"name": "wandb", "settings": tracker["settings"] | {"mode": mode}}


class Tracker:
    """Mirrors nothing; the base of those that do."""

    logger: Any = False
    """A Lightning logger, or False for none."""
    videos: int = 0
    """Of so many evaluations it wants a video of one; 0: none."""

    def __init__(self, run_dir: Path, run_config: JobConfig, status: Status):
        self.run_dir, self.run_config, self.status = run_dir, run_config, status

    def log(self, rows: Rows, scalars: Rows, member: int | None = None) -> None:
        """Mirror rows of the run's curve and of its `train.csv`, all of which a checkpoint holds.

        Args:
            rows: of the curve.
            scalars: of `train.csv`.
            member: whose they are, where the run's members are trained one after the other; None: everybody's.
        """
        self.log_rows(rows)
        self.log_scalars(scalars)

    def log_rows(self, rows: Rows) -> None:
        """Mirror rows of the run's curve. Call it only with rows that a checkpoint holds; repeated ones are skipped."""

    def log_scalars(self, rows: Rows) -> None:
        """Mirror rows of the run's `train.csv`, as `log_rows` those of its curve."""

    def log_video(self, step: int, video: Path) -> None:
        """Mirror a GIF of a held-out episode; called before the step's rows."""

    def log_file(self, kind: str, path: Path, lineage: Mapping[str, Any]) -> None:
        """Mirror a file that the run has left, of a kind ("weights"), with what it was made of."""

    def log_pictures(self, step: int, pictures: Mapping[str, Path]) -> None:
        """Mirror PNG files of one step; called before its rows."""

    def log_table(self, step: int, name: str, table: Any) -> None:
        """Mirror a data frame of one step; called before its rows."""

    def finish(self, summary: Mapping[str, Any]) -> None:
        """End the run's mirror with its final numbers."""
