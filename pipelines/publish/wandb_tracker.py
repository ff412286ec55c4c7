"""The mirror of a run in W&B."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lcd.pipelines.kinds.kind import kind_of
from lcd.pipelines.publish.track import Rows, Tracker
from lcd.pipelines.publish.wandb_client import (
    WandbSettings,
    discard_unsynced,
    finish,
    harmless,
    id_of_sweep,
    new_id,
    rows_there,
    start,
)
from lcd.pipelines.publish.wandb_names import (
    STEP,
    flat_config,
    metrics,
    scalar_metrics,
    study_of,
    tags_of,
)
from lcd.pipelines.study import store
from lcd.pipelines.study.configs import JobConfig, Status, population

FILES = ("curve.csv", "train.csv", "config.yaml")
"""Of a run, what goes along as an artifact."""


class WandbTracker(Tracker):
    """One W&B run for each of our runs, grouped by study, through Lightning's logger.

    Offline, a start replaces what earlier starts of the run left on disk (unless that was synced) and logs the rows
    up to the checkpoint again, so that one run is one complete folder. Where that is impossible, online or synced,
    `mirrored` says what not to log again. Online the server's own word counts, which is how many rows it has: what is
    logged last need not have arrived. A step is one row of the history, with all that belongs to it; a start logs the
    same rows in the same order.
    """

    def __init__(self, run_dir: Path, run_config: JobConfig, status: Status, settings: WandbSettings):
        super().__init__(run_dir, run_config, status)
        self.settings = settings
        self.broken = settings.mode == "disabled"
        self.videos = 0 if self.broken else settings.videos
        self.mirrored = (0, -1)
        self.there = 0
        self.run: Any = None
        self._beside: dict[int, dict[str, Callable[[], Any]]] = {}
        self._of_step: dict[int, tuple[list[Any], list[Any]]] = {}
        self._open()

    @harmless
    def _open(self) -> None:
        known = self.status.get("wandb_id")
        run_id = id_of_sweep() or known or new_id()
        store.update_status(self.run_dir, wandb_id=run_id)
        offline = self.settings.mode == "offline"
        if not (offline and discard_unsynced(self.run_dir)) and run_id == known:
            self.mirrored = (int(self.status.get("mirrored_member", 0)), int(self.status.get("mirrored_step", -1)))
        config = self.run_config
        fields = {
            "group": study_of(self.run_dir),
            "name": kind_of(config).label(config),
            "job_type": config["kind"],
            "tags": tags_of(config),
            "config": flat_config(config, self.run_dir),
        }
        try:
            self.run = start(self.settings, self.run_dir, run_id, **fields)
        except Exception as error:
            if offline:
                raise
            # The service may not be reached: a copy on the disk can be synced later.
            warnings.warn(
                f"W&B is mirrored offline: {type(error).__name__}: {' '.join(str(error).split())}", stacklevel=2
            )
            self.mirrored = (0, -1)
            # W&B's service still holds the first one's id.
            run_id = new_id()
            store.update_status(self.run_dir, wandb_id=run_id)
            self.settings = replace(self.settings, mode="offline")
            self.run = start(self.settings, self.run_dir, run_id, **fields)
        if self.settings.mode == "online":
            self.there, self.mirrored = rows_there(self.run) if self.run.resumed else 0, (0, -1)
        # Not for "*": W&B would then repeat the last environment step in whatever Lightning logs.
        for place in ("eval", "train", "noise_free", "learning", "machine", "videos"):
            self.run.define_metric(f"{place}/*", step_metric=STEP)
        self.logger = _logger(self.run)

    def log_rows(self, rows: Rows) -> None:
        """Mirror rows of the curve."""
        self.log(rows, [])

    def log_scalars(self, rows: Rows) -> None:
        """Mirror rows of `train.csv`."""
        self.log([], rows)

    @harmless
    def log(self, rows: Rows, scalars: Rows, member: int | None = None) -> None:
        """Mirror both, step by step."""
        by_step: dict[int, tuple[list[Any], list[Any]]] = {}
        for kind, given in enumerate((rows, scalars)):
            for row in given:
                by_step.setdefault(int(float(row["step"])), ([], []))[kind].append(row)
        before = self.mirrored
        for step in sorted(by_step):
            told = self._told(step, *by_step[step], member)
            if (member or 0, step) <= self.mirrored:
                continue
            self.mirrored = (member or 0, step)
            if self.there > 0:
                self.there -= 1
            else:
                beside = {name: make() for name, make in self._beside.pop(step, {}).items()}
                self.logger.experiment.log({STEP: step} | told | beside)
        self._beside.clear()
        if self.mirrored != before:
            store.update_status(self.run_dir, mirrored_member=self.mirrored[0], mirrored_step=self.mirrored[1])

    def _told(self, step: int, rows: list[Any], scalars: list[Any], member: int | None) -> dict[str, float]:
        """What a step's row of the history holds; of members one by one, means come with the last member's."""
        if member is None:
            return metrics(rows) | scalar_metrics(scalars)
        found = metrics(rows) | scalar_metrics(scalars)
        told: dict[str, float] = {name: value for name, value in found.items() if "/seed_" in name}
        told |= {name: value for name, value in found.items() if name.startswith("machine/")}
        every = self._of_step.setdefault(step, ([], []))
        for kept, new in zip(every, (rows, scalars), strict=True):
            kept.extend(new)
        if member == population(self.run_config) - 1:
            whole = metrics(every[0]) | scalar_metrics(every[1])
            told |= {name: value for name, value in whole.items() if "/seed_" not in name}
        return told

    def log_video(self, step: int, video: Path) -> None:
        """Mirror a GIF of a held-out episode with the step's rows."""
        self._with(step, "videos/eval", lambda wandb: wandb.Video(str(video), format="gif"))

    @harmless
    def log_file(self, kind: str, path: Path, lineage: Mapping[str, Any]) -> None:
        """Mirror a file as an artifact, with its lineage as metadata."""
        if self.settings.artifacts:
            self._artifact(f"{path.stem}-{self.run_dir.name}", kind, [path], lineage)

    def log_pictures(self, step: int, pictures: Mapping[str, Path]) -> None:
        """Mirror PNG files with the step's rows."""
        for name, path in pictures.items():
            self._with(step, f"pictures/{name}", partial(_image, path))

    def log_table(self, step: int, name: str, table: Any) -> None:
        """Mirror a data frame with the step's rows."""
        self._with(step, f"tables/{name}", lambda wandb: wandb.Table(dataframe=table))

    def _with(self, step: int, name: str, make: Callable[[Any], Any]) -> None:
        def made() -> Any:
            import wandb

            return make(wandb)

        self._beside.setdefault(step, {})[name] = made

    @harmless
    def finish(self, summary: Mapping[str, Any]) -> None:
        """End the run, with its files."""
        self.run.summary.update(dict(summary))
        try:
            if self.settings.artifacts:
                files = [self.run_dir / name for name in FILES]
                inputs = store.read_status(self.run_dir)["inputs"]
                self._artifact(f"run-{self.run_dir.name}", "curves", files, {"inputs": inputs})
                self._take(inputs)
        finally:
            finish(self.run, self.run_dir)

    def _artifact(self, name: str, kind: str, files: list[Path], lineage: Mapping[str, Any]) -> None:
        import wandb

        artifact = wandb.Artifact(name, kind, metadata={"run_id": self.run_dir.name, **lineage})
        for path in files:
            if path.is_file():
                # Where it lies: else W&B keeps a copy of its own in the user's home.
                artifact.add_file(str(path), policy="immutable")
        self.run.log_artifact(artifact)

    def _take(self, inputs: Mapping[str, str]) -> None:
        """Say whose weights the run has used; W&B can be told that only online, and offline the metadata say it."""
        if self.settings.mode == "online":
            for run_id, _, file in (name.partition("/") for name in inputs):
                self.run.use_artifact(f"{Path(file).stem}-{run_id}:latest")


def _image(path: Path, wandb: Any) -> Any:
    return wandb.Image(str(path))


def _logger(run: Any) -> Any:
    """Lightning's W&B logger around a run, harmless when W&B fails during training."""
    from lightning.pytorch.loggers import WandbLogger

    class HarmlessLogger(WandbLogger):
        broken = False
        log_metrics = harmless(WandbLogger.log_metrics)
        log_hyperparams = harmless(WandbLogger.log_hyperparams)
        save = harmless(WandbLogger.save)
        finalize = harmless(WandbLogger.finalize)

    return HarmlessLogger(experiment=run)
