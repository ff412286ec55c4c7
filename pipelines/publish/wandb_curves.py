"""`lcd report wandb:…`: curves of anybody's W&B runs, by a mapping from our columns to what their runs say."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcd.curves.table import COLUMNS, NEEDED, check_curves
from lcd.envs.errors import InputError, Unfinished, nearest
from lcd.files.reading import Unreadable, read_yaml
from lcd.files.slugs import slug
from lcd.pipelines.publish.wandb_client import SCHEME, logged_in, unreachable
from lcd.pipelines.publish.wandb_records import ReadRun, plain, read_offline_run

if TYPE_CHECKING:
    import pandas as pd

OFFLINE = "offline/"
OURS = {name: f"config.{name}" for name in ("benchmark", "task", "view", "frontend", "reward_p", "shaping", "agent")}
OURS |= {"step": "history.env_step", "return_mean": "history.eval/return_mean/seed_{seed}"}
"""How runs that LCD mirrored are read."""
SEED = "{seed}"
FROM_RUN = ("id", "name", "group", "job_type")
MOST_RUNS = 20_000
MOST_ROWS = 10_000_000


def place_of(path: str) -> Path:
    """The name that stands for the runs where a file's would."""
    return Path(slug(path.removeprefix(SCHEME).strip("/").replace("/", "-")) or "wandb")


def read_wandb(path: str, given: str | Mapping[str, Any] | None) -> pd.DataFrame:
    """Curves of W&B's runs.

    Args:
        path: `wandb:entity/project`, `wandb:entity/project/group`, or `wandb:offline/FOLDER`.
        given: the mapping, or its file; none for runs that LCD mirrored.
    """
    import pandas as pd

    mapping = mapping_from(given)
    where = path.removeprefix(SCHEME)
    runs = _offline(where.removeprefix(OFFLINE)) if where.startswith(OFFLINE) else _online(where, mapping)
    rows: list[dict[str, Any]] = []
    count = 0
    for run in runs:
        count += 1
        rows += rows_of(run, mapping)
        if count > MOST_RUNS or len(rows) > MOST_ROWS:
            raise InputError(f"{path} has more than {MOST_RUNS:,} runs or {MOST_ROWS:,} rows: name a group of fewer.")
    if not rows:
        raise Unfinished(_nothing(path, count, mapping))
    return check_curves(pd.DataFrame(rows))


def _nothing(path: str, count: int, mapping: Mapping[str, Any]) -> str:
    if not count:
        return f"There is no run at {path}: nothing can be told."
    asked = ", ".join(f"{column}={mapping[column]}" for column in mapping)
    return f"None of the {count} runs at {path} has what the map asks for ({asked}): give map.COLUMN=… as they call it."


def mapping_from(given: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """The mapping that `map=FILE` or `map.COLUMN=SOURCE` give, or that of our own runs, checked."""
    if not given:
        return dict(OURS)
    content = _file(Path(given).expanduser()) if isinstance(given, str) else dict(given)
    for column, source in content.items():
        if column not in COLUMNS:
            raise InputError(f"map: '{column}' is no column of curves; {nearest(str(column), COLUMNS)}")
        if not isinstance(source, str | int | float) or isinstance(source, bool):
            raise InputError(f"map.{column}={source} must be a text or a number: config.KEY, history.KEY, a constant.")
        if str(source).startswith("run.") and source not in [f"run.{name}" for name in FROM_RUN]:
            raise InputError(
                f"map.{column}={source} is unknown: {nearest(str(source), [f'run.{n}' for n in FROM_RUN])}"
            )
    every = any(SEED in str(source) for source in content.values())
    lacking = [name for name in NEEDED if name not in content and not (name == "seed" and every)]
    if lacking:
        example = "config.KEY, summary.KEY, history.KEY, run.name or a constant"
        raise InputError(f"map says nothing of {', '.join(lacking)}: give map.{lacking[0]}=… ({example}).")
    if not any(str(content[name]).startswith("history.") for name in ("step", "return_mean")):
        raise InputError("map.step and map.return_mean must come from the history: map.return_mean=history.KEY.")
    return content


def _file(path: Path) -> dict[str, Any]:
    try:
        content = read_yaml(path)
    except Unreadable as why:
        raise InputError(f"map={path} cannot be read ({why}): give a YAML file of column: source.") from None
    if not isinstance(content, dict) or not content:
        raise InputError(f"map={path} holds no mapping: give a YAML file with a line 'column: source' for each.")
    return content


def rows_of(run: ReadRun, mapping: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of one run; those that lack what is needed, or whose return is not finite, are left out."""
    fixed = {name: _fixed(run, source) for name, source in mapping.items() if not _of_history(source)}
    if any(value is None for name, value in fixed.items() if name in NEEDED):
        return
    told = {name: str(source).removeprefix("history.") for name, source in mapping.items() if _of_history(source)}
    for seed, keys in _by_seed(run, told):
        for entry in run.history:
            row = fixed | {name: entry.get(key) for name, key in keys.items()}
            if seed is not None:
                row["seed"] = seed
            if all(row.get(name) not in (None, "") for name in NEEDED) and _finite(row["return_mean"]):
                yield {name: value for name, value in row.items() if value is not None}


def _of_history(source: Any) -> bool:
    return isinstance(source, str) and source.startswith("history.")


def _fixed(run: ReadRun, source: Any) -> Any:
    if not isinstance(source, str):
        return source
    place, _, key = source.partition(".")
    if place == "run" and key in FROM_RUN:
        return getattr(run, key)
    if place in ("config", "summary"):
        return getattr(run, place).get(key)
    return source


def _by_seed(run: ReadRun, told: Mapping[str, str]) -> list[tuple[int | None, dict[str, str]]]:
    """The history's keys of each seed that a run has, where keys name seeds (`…/seed_{seed}`)."""
    patterns = [key for key in told.values() if SEED in key]
    if not patterns:
        return [(None, dict(told))]
    pattern = re.compile(r"(\d{1,18})".join(map(re.escape, patterns[0].split(SEED, 1))))
    names = {key for entry in run.history for key in entry}
    seeds = sorted(int(found[1]) for key in names if (found := pattern.fullmatch(key)))
    return [(seed, {name: key.replace(SEED, str(seed)) for name, key in told.items()}) for seed in seeds]


def _finite(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False


def _offline(where: str) -> Iterator[ReadRun]:
    """The runs of the `.wandb` files below a folder, of one that was started several times all its starts."""
    folder = Path(where).expanduser()
    files = [folder] if folder.suffix == ".wandb" else sorted(folder.rglob("*.wandb"))
    if not folder.exists() or not files:
        raise InputError(f"There is no offline run below '{folder}': give a folder that has W&B's offline-run-… in it.")
    return (read_offline_run(path) for path in files)


def _online(where: str, mapping: Mapping[str, Any]) -> Iterator[ReadRun]:
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
    keys = [str(source).removeprefix("history.") for source in mapping.values() if _of_history(source)]
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
