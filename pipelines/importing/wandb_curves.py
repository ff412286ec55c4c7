"""Anybody's W&B runs: those of a project, of a group, or of a folder of offline files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lcd.envs.errors import InputError, Unfinished
from lcd.files.slugs import slug
from lcd.pipelines.importing.mapping import HISTORY, SEED, of_history
from lcd.pipelines.importing.read_run import ReadRun, plain
from lcd.pipelines.importing.wandb_records import read_offline_run
from lcd.pipelines.publish.wandb_client import SCHEME, logged_in, unreachable

OFFLINE = "offline/"
SUFFIX = ".wandb"
OURS = {name: f"config.{name}" for name in ("benchmark", "task", "view", "frontend", "reward_p", "shaping", "agent")}
OURS |= {"step": "history.env_step", "return_mean": "history.eval/return_mean/seed_{seed}"}
"""How runs that LCD mirrored are read."""


def place_of(path: str) -> Path:
    """The name that stands for the runs where a file's would."""
    return Path(slug(path.removeprefix(SCHEME).strip("/").replace("/", "-")) or "wandb")


def wandb_runs(path: str, mapping: Mapping[str, Any]) -> Iterator[ReadRun]:
    """The runs at `wandb:entity/project`, `wandb:entity/project/group`, or `wandb:offline/FOLDER`.

    Args:
        path: one of these.
        mapping: what is asked of the runs; of runs online nothing else is fetched.
    """
    where = path.removeprefix(SCHEME)
    return offline_runs(where.removeprefix(OFFLINE)) if where.startswith(OFFLINE) else _online(where, mapping)


def offline_runs(where: str) -> Iterator[ReadRun]:
    """The runs of the `.wandb` files below a folder, of one that was started several times all its starts."""
    folder = Path(where).expanduser()
    files = [folder] if folder.suffix == SUFFIX else sorted(folder.rglob(f"*{SUFFIX}"))
    if not folder.exists() or not files:
        raise InputError(f"There is no offline run below '{folder}': give a folder that has W&B's offline-run-… in it.")
    return (read_offline_run(path) for path in files)


def _online(where: str, mapping: Mapping[str, Any]) -> Iterator[ReadRun]:
    if Path(where).expanduser().is_dir():
        raise InputError(f"{SCHEME}{where} is a folder here: give {SCHEME}{OFFLINE}{where} for the offline runs in it.")
    parts = where.strip("/").split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise InputError(
            f"{SCHEME}{where} is not understood: give {SCHEME}entity/project, or …/group, or offline/FOLDER."
        )
    if not logged_in():
        raise InputError(f"{SCHEME}{where} needs a login to W&B: run 'wandb login', or set WANDB_API_KEY.")
    if (reason := unreachable()) is not None:
        raise Unfinished(f"{SCHEME}{where} cannot be read: W&B's server cannot be reached ({reason}).")
    return _asked(where, parts, mapping)


def _asked(where: str, parts: list[str], mapping: Mapping[str, Any]) -> Iterator[ReadRun]:
    import wandb

    filters = {"group": parts[2]} if len(parts) == 3 else {}
    keys = [str(source).removeprefix(HISTORY) for source in mapping.values() if of_history(source)]
    try:
        for run in wandb.Api(timeout=30).runs("/".join(parts[:2]), filters=filters):
            yield _read(run, keys)
    except Exception as error:  # the client raises whatever its server and its own checks bring up
        raise Unfinished(f"{SCHEME}{where} cannot be read: {' '.join(str(error).split())[:300]}") from None


def _read(run: Any, keys: Iterable[str]) -> ReadRun:
    # Seeds' keys are not known before; all of the history is asked for then.
    known = None if any(SEED in key for key in keys) else list(keys)
    history = [plain(dict(entry), "") for entry in run.scan_history(keys=known)]
    config, summary = plain(dict(run.config), ""), plain(dict(run.summary), "")
    return ReadRun(run.id, run.name or "", run.group or "", run.job_type or "", config, summary, history)
