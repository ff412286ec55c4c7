"""Trackers mirror a study's curves; nothing is computed from what they hold, nothing they do stops training."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import logging
import secrets
import shutil
import socket
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from lcd.config.registries import trackers
from lcd.config.schema_parts import TrackerConfig
from lcd.config.settings import checked, settings_for
from lcd.envs.errors import InputError, nearest
from lcd.pipelines.kinds.kind import kind_of
from lcd.pipelines.study import store
from lcd.pipelines.study.configs import JobConfig, Status, TrackerEntry
from lcd.pipelines.study.lease import run_folder

STEP = "env_step"
STATISTICS = ("return_mean", "return_std", "length_mean", "episodes", "loss", "static_loss", "speed", "outside")
INIT_TIMEOUT_S = 30.0
FLUSH_TIMEOUT_S = 3.0
HEADER, BLOCK = 7, 32768

QUIET = {
    "silent": True,
    "console": "off",
    "disable_git": True,
    "disable_code": True,
    "disable_job_creation": True,
    "save_code": False,
    "init_timeout": INIT_TIMEOUT_S,
    "x_disable_meta": True,
    "x_disable_stats": True,
    "x_disable_machine_info": True,
    "x_save_requirements": False,
    # Whole blocks only until the run is finished: see `finish`.
    "x_transaction_log_flush_interval": 0,
}

REACHED_IN_S = 5.0
"""So long a connection may take to open."""
MODES = ("offline", "online", "disabled")


@dataclass(frozen=True)
class WandbSettings:
    """How W&B mirrors a study.

    Attributes:
        mode: offline needs no login.
        project: W&B's project.
        entity: W&B's user or team; None: who is logged in.
    """

    mode: str = "offline"
    project: str = "lcd"
    entity: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"tracker.mode={self.mode} is unknown: {nearest(self.mode, MODES)}")


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
    told = f"tracker.mode=online {why}: the study is mirrored offline, and 'wandb sync' can upload it later."
    return {"name": "wandb", "settings": tracker["settings"] | {"mode": "offline"}}, told


def to_try(tracker: TrackerEntry) -> TrackerEntry:
    """A tracker whose work takes time like this one's, but which tells nobody of what is only tried."""
    if tracker["name"] != "wandb":
        return {"name": "none", "settings": {}}
    mode = "disabled" if wandb_settings(tracker).mode == "disabled" else "offline"
    return {"name": "wandb", "settings": tracker["settings"] | {"mode": mode}}


def wandb_settings(tracker: TrackerEntry) -> WandbSettings:
    return checked(WandbSettings, tracker.get("settings", {}), "tracker", "tracker=wandb", "setting")


def logged_in() -> bool:
    """Whether W&B has a key, or is too old to say so without asking for one; nothing is sent anywhere."""
    import wandb

    logging.getLogger("wandb").setLevel(logging.ERROR)
    if "prompt" not in inspect.signature(wandb.login).parameters:
        return True
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            return bool(wandb.login(prompt=False, verify=False))
        except wandb.Error:
            return False


def unreachable() -> str | None:
    """Why no connection to W&B's server can be opened; None where one can, or where a proxy stands between."""
    import wandb

    url = urlsplit(wandb.setup().settings.base_url)
    if not url.hostname or url.scheme in getproxies():
        return None
    try:
        socket.create_connection((url.hostname, url.port or 443), timeout=REACHED_IN_S).close()
    except OSError as error:
        return f"{url.netloc}: {error.strerror or error}"
    return None


class Tracker:
    """Mirrors nothing; the base of those that do."""

    logger: Any = False
    """A Lightning logger, or False for none."""

    def __init__(self, run_dir: Path, run_config: JobConfig, status: Status):
        self.run_dir, self.run_config, self.status = run_dir, run_config, status

    def log_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Mirror rows of the run's curve. Call it only with rows that a checkpoint holds; repeated ones are skipped."""

    def log_pictures(self, step: int, pictures: Mapping[str, Path]) -> None:
        """Mirror PNG files of one step, after its rows."""

    def log_table(self, step: int, name: str, table: Any) -> None:
        """Mirror a data frame of one step, after its rows."""

    def finish(self, summary: Mapping[str, Any]) -> None:
        """End the run's mirror with its final numbers."""


def harmless(method: Callable[..., Any]) -> Callable[..., Any]:
    """Turn whatever W&B raises into one warning, after which the mirror stays quiet."""

    @functools.wraps(method)
    def wrapped(self: Any, *arguments: Any, **knobs: Any) -> Any:
        if self.broken:
            return None
        try:
            return method(self, *arguments, **knobs)
        except Exception as error:
            self.broken = True
            message = " ".join(str(error).split())
            warnings.warn(f"W&B is left out from here on: {type(error).__name__}: {message}", stacklevel=2)
            return None

    return wrapped


class WandbTracker(Tracker):
    """One W&B run for each of our runs, grouped by study, through Lightning's logger.

    Offline, a start replaces what earlier starts of the run left on disk (unless that was synced) and logs the rows
    up to the checkpoint again, so that one run is one complete folder. Where that is impossible, online or synced,
    `mirrored_step` says what not to log again.
    """

    def __init__(self, run_dir: Path, run_config: JobConfig, status: Status, settings: WandbSettings):
        super().__init__(run_dir, run_config, status)
        self.settings = settings
        self.broken = settings.mode == "disabled"
        self.mirrored_step = -1
        self.run: Any = None
        self._open()

    @harmless
    def _open(self) -> None:
        run_id = self.status.get("wandb_id") or new_id()
        store.update_status(self.run_dir, wandb_id=run_id)
        offline = self.settings.mode == "offline"
        if not (offline and discard_unsynced(self.run_dir)):
            self.mirrored_step = int(self.status.get("mirrored_step", -1))
        config = self.run_config
        fields = {
            "group": run_folder(self.run_dir.resolve()).parents[1].name,
            "name": kind_of(config).label(config),
            "job_type": config["kind"],
            "config": config,
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
            self.mirrored_step = -1
            # W&B's service still holds the first one's id.
            run_id = new_id()
            store.update_status(self.run_dir, wandb_id=run_id)
            self.run = start(replace(self.settings, mode="offline"), self.run_dir, run_id, **fields)
        # Not for "*": W&B would then repeat the last environment step in whatever Lightning logs.
        for split in ("eval", "train"):
            self.run.define_metric(f"{split}/*", step_metric=STEP)
        self.logger = _logger(self.run)

    @harmless
    def log_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        by_step: dict[int, list[Mapping[str, Any]]] = {}
        for row in rows:
            step = int(float(row["step"]))
            if step > self.mirrored_step:
                by_step.setdefault(step, []).append(row)
        for step in sorted(by_step):
            self.logger.experiment.log({STEP: step} | metrics(by_step[step]))
        if by_step:
            self.mirrored_step = max(by_step)
            store.update_status(self.run_dir, mirrored_step=self.mirrored_step)

    @harmless
    def log_pictures(self, step: int, pictures: Mapping[str, Path]) -> None:
        import wandb

        images = {f"pictures/{name}": wandb.Image(str(path)) for name, path in pictures.items()}
        self.logger.experiment.log({STEP: step} | images)

    @harmless
    def log_table(self, step: int, name: str, table: Any) -> None:
        import wandb

        self.logger.experiment.log({STEP: step, f"tables/{name}": wandb.Table(dataframe=table)})

    @harmless
    def finish(self, summary: Mapping[str, Any]) -> None:
        self.run.summary.update(dict(summary))
        finish(self.run, self.run_dir)


def metrics(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What one step's rows are called in W&B: each seed's numbers, and their mean over seeds (of points: over all)."""
    from lcd.curves.names import evaluated_name

    values: dict[str, list[float]] = {}
    logged: dict[str, float] = {}
    for row in rows:
        # Several tasks may be evaluated at a step; the one that is trained alone needs no name.
        name, context = row.get("task", ""), row.get("context") or ""
        trained = not row.get("stage") and row.get("trained_on", name) == evaluated_name(name, context)
        # Points of a family are told together: hundreds would each be a chart.
        point = trained and bool(context)
        place = f"{row['split']}/{evaluated_name(name, context)}"
        if trained:
            place = f"{row['split']}/points" if point else row["split"]
        for statistic in STATISTICS:
            value = row.get(statistic)
            if value not in (None, ""):
                if not point:
                    logged[f"{place}/{statistic}/seed_{row['seed']}"] = float(value)
                values.setdefault(f"{place}/{statistic}", []).append(float(value))
    return logged | {name: sum(found) / len(found) for name, found in values.items()}


def new_id() -> str:
    """A W&B run id, minted at random once and then kept."""
    return secrets.token_hex(6)


def discard_unsynced(folder: Path) -> bool:
    """Remove the offline W&B folders in `folder`; returns whether none is left, i.e. none was synced."""
    left = [path for path in offline_folders(folder) if list(path.glob("*.synced"))]
    for path in set(offline_folders(folder)) - set(left):
        shutil.rmtree(path, ignore_errors=True)
    return not left


def offline_folders(folder: Path) -> list[Path]:
    """The offline W&B runs that a run's or a diagnosis's folder holds."""
    try:
        return sorted((folder / "wandb").glob("offline-run-*"))
    except PermissionError:  # somebody else's, whose folder may not be read
        return []


def start(settings: WandbSettings, folder: Path, run_id: str, **fields: Any) -> Any:
    """A W&B run in `folder`, silent, with nothing gathered about the machine."""
    import wandb

    logging.getLogger("wandb").setLevel(logging.ERROR)
    # Releases of W&B differ in what can be set.
    quiet = wandb.Settings(**{key: value for key, value in QUIET.items() if key in wandb.Settings.model_fields})
    # A run that an earlier failure left open in this process would take this run's rows.
    if wandb.run is not None:
        wandb.run.finish(exit_code=1)
    return wandb.init(
        project=settings.project,
        entity=settings.entity,
        mode=settings.mode,
        dir=str(folder),
        id=run_id,
        resume="allow",
        settings=quiet,
        **fields,
    )


def finish(run: Any, folder: Path) -> None:
    """End a W&B run and wait until its offline file is whole, which W&B's service sees to a little later.

    The service writes blocks of 32 KiB; the file's end is written, and its length another, when the run is closed.
    """
    run.finish()
    end = time.monotonic() + FLUSH_TIMEOUT_S
    files = [path for place in offline_folders(folder) for path in place.glob(f"run-{run.id}.wandb")]
    while any(path.stat().st_size <= HEADER or path.stat().st_size % BLOCK == 0 for path in files):
        if time.monotonic() >= end:
            break
        time.sleep(0.005)


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
