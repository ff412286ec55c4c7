"""Tables that anybody has written: RLlib's `progress.csv`, Stable-Baselines3's of that name, and any other CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcd.curves.reading import EMPTY, parsed_csv, refuse_twice
from lcd.curves.table import COLUMNS
from lcd.envs.errors import InputError
from lcd.files.reading import Unreadable, open_regular, parse_json, read_bytes
from lcd.pipelines.importing.read_run import ReadRun, plain

if TYPE_CHECKING:
    import pandas as pd

PROGRESS = "progress.csv"
SETTINGS = "params.json"
"""What RLlib writes a trial's settings into, beside its progress."""
MOST_SETTINGS = 1 << 24
MOST_ROWS = 10_000_000
STEPS = ("num_env_steps_sampled_lifetime", "timesteps_total", "num_env_steps_sampled", "time/total_timesteps")
RETURNS = (
    "evaluation/env_runners/episode_return_mean",
    "evaluation/sampler_results/episode_reward_mean",
    "evaluation/episode_reward_mean",
    "eval/mean_reward",
    "env_runners/episode_return_mean",
    "sampler_results/episode_reward_mean",
    "episode_reward_mean",
    "rollout/ep_rew_mean",
)
"""Columns of RLlib's two generations and of Stable-Baselines3's logger, those of evaluation first."""
TIMES = ("time_total_s", "time/time_elapsed")


def read_progress(path: Path, name: str) -> ReadRun:
    """The run of a `progress.csv`, with the settings of the `params.json` beside it."""
    table = _table(path)
    config = _settings(path.parent / SETTINGS)
    usual: dict[str, str] = {}
    for column, known in (("step", STEPS), ("return_mean", RETURNS), ("wall_s", TIMES)):
        found = next((each for each in known if each in table and table[each].notna().any()), None)
        usual |= {column: f"history.{found}"} if found else {}
    for column, key in (("task", "env"), ("seed", "seed")):
        usual |= {column: f"config.{key}"} if config.get(key) is not None else {}
    return ReadRun(name=name, config=config, history=table, usual=usual)


def read_any_csv(path: Path, name: str) -> ReadRun:
    """The rows of any CSV file; columns that are called as those of curves are taken for them."""
    table = _table(path)
    return ReadRun(name=name, history=table, usual={each: f"history.{each}" for each in COLUMNS if each in table})


def _settings(path: Path) -> dict[str, Any]:
    """What a trial was told, as far as it is plain data: RLlib writes numbers there that JSON does not have."""
    if not path.is_file():
        return {}
    try:
        return plain(parse_json(read_bytes(path, most=MOST_SETTINGS).decode("utf-8", "replace")), "")
    except Unreadable:
        return {}


def _table(path: Path) -> pd.DataFrame:

    try:
        with open_regular(path) as file:
            # No name is taken for a missing value: a task may be called "NA".
            table = parsed_csv(
                file, encoding="utf-8-sig", keep_default_na=False, na_values=list(EMPTY), low_memory=False,
                nrows=MOST_ROWS + 1, skipinitialspace=True,
            )  # fmt: skip
            refuse_twice(table, file)
    except (Unreadable, OSError) as why:
        reason = why.strerror if isinstance(why, OSError) else why
        raise InputError(f"'{path}' cannot be read ({reason}): give a CSV file.") from None
    except ValueError as error:
        raise InputError(f"'{path}' is not readable as CSV: {' '.join(str(error).split())[:200]}.") from None
    if len(table) > MOST_ROWS:
        raise InputError(f"'{path}' has more than {MOST_ROWS:,} rows: split it.")
    return table
