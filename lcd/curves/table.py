"""Learning curves as one tidy table: how they are read, checked, ranged and measured."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lcd.curves.names import evaluated_name, unvaried_task
from lcd.curves.reading import as_categories, as_numbers, concatenated, group_numbers, read_csv, read_parquet
from lcd.curves.row_ranges import CurveRows
from lcd.envs.errors import InputError, nearest
from lcd.envs.families.family import parse_point

COLUMNS = (
    "benchmark", "trained_on", "stage", "task", "context", "view", "frontend", "reward_p", "shaping", "agent", "seed",
    "split", "step", "episodes", "return_mean", "return_std", "length_mean", "wall_s", "r_min", "r_max",
)  # fmt: skip
"""Of a row: `task` is what is evaluated, in the `context` (a named setting of knobs) where that is not the trained one;
`trained_on` is what was trained: a task, or a curriculum by its name, and `stage` its stage that was trained last."""
NEEDED = ("task", "view", "reward_p", "seed", "step", "return_mean")
DEFAULTS = {
    "benchmark": "imported",
    "stage": "",
    "context": "",
    "frontend": "identity",
    "shaping": "none",
    "agent": "unknown",
    "split": "eval",
}
TEXT = ("benchmark", "task", "trained_on", "stage", "context", "view", "frontend", "shaping", "agent", "split")
NUMBERS = tuple(name for name in COLUMNS if name not in TEXT)
SETTING = ("benchmark", "view", "frontend", "reward_p", "shaping", "agent")
"""How something is trained, whatever it is."""
CONDITION = ("benchmark", "trained_on", "stage", "task", "context", *SETTING[1:])
CURVE = (*CONDITION, "seed", "split")
SPLITS = ("eval", "train", "noise_free")
LARGEST = 1e100
"""Larger returns would have squares and sums that are no numbers."""

SMALLEST_RANGE = 1e-30
"""Returns divided by less, and squares of those, are no numbers any more."""

Range = tuple[float, float]


def read_curves(path: str | Path) -> pd.DataFrame:
    """Read learning curves and check them.

    Args:
        path: a CSV file, a Parquet file, or a study's folder, whose runs' curves are put together.

    Returns:
        One row an evaluation, with all of `COLUMNS` (absent ones get their defaults) and then any others.
    """
    path = Path(path)
    if path.is_dir():
        return _cleaned(_read_study(path))
    if not os.path.exists(path):
        raise InputError(f"There is nothing at '{path}': give a CSV or Parquet file or a study's folder.")
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return _cleaned(read_csv(path, TEXT, NUMBERS))
    if suffix == ".parquet":
        return _cleaned(read_parquet(path, TEXT))
    raise InputError(f"'{path.name}' is not readable as curves: its name should end in .csv or .parquet.")


def check_curves(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a clean copy of a table of curves, defaults filled in; a mistake is an `InputError`.

    Names come back as categories, sorted. Columns that are as they should be are shared with the table.

    Args:
        frame: at least the columns `NEEDED`, one row an evaluation.
    """
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"The curves are a {type(frame).__name__}: give a pandas.DataFrame with a row an evaluation.")
    if (twice := frame.columns.duplicated()).any():
        raise InputError(f"The curves have the column '{frame.columns[twice][0]}' twice: leave one of them out.")
    return _cleaned(frame.copy(deep=False))


def _cleaned(frame: pd.DataFrame) -> pd.DataFrame:
    """What `check_curves` does, to a table that nobody else has: each column is let go of when it has been replaced."""
    _refuse_missing(frame)
    if frame.empty:
        raise InputError("The curves have no rows: at least two evaluations of one condition are needed.")
    clean = frame.reset_index(drop=True)
    del frame
    told_of_training = clean.get("trained_on")
    for name in TEXT:
        # What says nothing of its training was trained on the task that is evaluated.
        default = clean["task"] if name == "trained_on" else DEFAULTS.get(name)
        clean[name] = _text(clean, name, default)
    _refuse_nameless_curricula(told_of_training, clean)
    del told_of_training
    for name in COLUMNS:
        if name not in TEXT and not _is_clean(clean, name):
            clean[name] = _numbers(clean, name)
    _check_values(clean)
    if clean["seed"].dtype != np.int64:
        clean["seed"] = clean["seed"].astype(np.int64)
    steps = clean["step"].to_numpy()
    if CurveRows(group_numbers(clean, CURVE), steps).any_twice(steps):
        row = clean.loc[clean.duplicated([*CURVE, "step"]).idxmax()]
        names = ["task", "view", "reward_p", "split", *(name for name in ("stage", "context") if row[name])]
        told = ", ".join(f"{name} '{row[name]}'" for name in names)
        raise InputError(
            f"Seed {row['seed']} has two rows at step {row['step']:g} for one condition ({told}): "
            "each condition, seed and step may come once."
        )
    return clean[[*COLUMNS, *(name for name in clean.columns if name not in COLUMNS)]]


def evaluated_names(curves: pd.DataFrame) -> set[str]:
    """Every task of checked curves, with its context, as `evaluated_name` writes it."""
    pairs = curves[["task", "context"]].drop_duplicates().itertuples(index=False, name=None)
    return {evaluated_name(*pair) for pair in pairs}


def as_trained(curves: pd.DataFrame) -> pd.Series:
    """Which rows of checked curves evaluate the one task that was trained, as it was trained."""
    trained, task = (curves[name].array for name in ("trained_on", "task"))
    own = task.categories.get_indexer(trained.categories)[trained.codes] == task.codes
    return own & (curves["stage"] == "") & (curves["context"] == "")


def of_points(curves: pd.DataFrame) -> np.ndarray:
    """Which rows of checked curves evaluate a point of a family on which the agent was trained.

    Those of the default point are not among them: it is the task as it is.
    """
    names = ["trained_on", "task", "context"]
    away = np.asarray((curves["context"] != "") & (curves["stage"] == ""))
    found = np.zeros(len(curves), bool)
    if away.any():
        numbers = group_numbers(curves[away], names)
        _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
        distinct = curves.loc[away, names].iloc[first].itertuples(index=False, name=None)
        are = [
            trained == evaluated_name(task, context) and parse_point(context) is not None
            for trained, task, context in distinct
        ]
        found[away] = np.array(are)[place]
    return found


def _refuse_nameless_curricula(told_of_training: pd.Series | None, clean: pd.DataFrame) -> None:
    nameless = clean["stage"] != ""
    if told_of_training is not None and nameless.any():
        nameless &= told_of_training.isna() | (told_of_training.astype(object) == "")
    if nameless.any():
        raise InputError(
            f"Column 'trained_on' is empty in row {_row(nameless)}, which has the stage "
            f"'{clean['stage'][nameless.idxmax()]}': name the curriculum there."
        )


def _refuse_missing(frame: pd.DataFrame) -> None:
    missing = [name for name in NEEDED if name not in frame.columns]
    if len(missing) == 1:
        others = [str(column) for column in frame.columns if column not in NEEDED]
        close = nearest(missing[0], others) if others else "add it."
        raise InputError(f"The curves lack the column '{missing[0]}': {close}")
    if missing:
        told = ", ".join(repr(name) for name in missing[:-1]) + f" and '{missing[-1]}'"
        there = ", ".join(map(str, frame.columns)) or "none"
        raise InputError(f"The curves lack the columns {told}: add them (there are: {there}).")


def split_curves(frame: pd.DataFrame, keys: list[str]) -> dict[tuple, tuple[np.ndarray, np.ndarray]]:
    """Curves of the column `normalised` by the values of `keys`: (steps in order, returns)."""
    steps = frame["step"].to_numpy(float)
    rows = CurveRows(group_numbers(frame, keys), steps)
    steps, values = rows.ordered(steps), rows.ordered(frame["normalised"].to_numpy(float))
    named = [frame[name].iloc[rows.first].tolist() for name in keys]
    return {
        tuple(key): (steps[start:end], values[start:end])
        for (start, end), *key in zip(rows.spans(), *named, strict=True)
    }


def attach_ranges(curves: pd.DataFrame, ranges: Mapping[str, Range] | None = None) -> tuple[pd.DataFrame, list[str]]:
    """Set the columns r_min and r_max to the ranges that normalise each row.

    Args:
        curves: checked curves.
        ranges: task, or `task@context`, to (R_min, R_max). It comes first, then the columns r_min and r_max, then the
            registered benchmark's own.

    Returns:
        The curves, and sentences on ranges that disagree. Where nothing tells R_min or R_max, that stays NaN.
    """
    if ranges is not None and not isinstance(ranges, Mapping):
        raise InputError(f"ranges={ranges!r} must be a mapping of task: (R_min, R_max).")
    ranges = {str(task): _checked(pair, f"ranges['{task}']") for task, pair in (ranges or {}).items()}
    notes = []
    low, high = (curves[name].to_numpy(float, copy=True) for name in ("r_min", "r_max"))
    places_of = curves.groupby(["benchmark", "task", "context"], observed=True).indices
    for (name, own_name, context), places in sorted(places_of.items()):
        task = evaluated_name(own_name, context)
        if task in ranges:
            low[places], high[places] = ranges[task]
            continue
        seeds, seed_of = np.unique(curves["seed"].to_numpy()[places], return_inverse=True)
        written = pd.DataFrame({"r_min": low[places], "r_max": high[places]})
        # What a context changes of the task only the curves' own columns know.
        own = None if context else _own_ranges(name, task, seeds)
        if own is not None:
            stated = pd.DataFrame(np.array([own[seed] for seed in seeds])[seed_of], columns=written.columns)
            if not np.allclose(written.fillna(stated), stated, rtol=1e-6, atol=1e-9):
                lowest, highest = stated.iloc[0]
                notes.append(
                    f"The columns r_min and r_max of task '{task}' differ from benchmark '{name}': the columns are "
                    f"used (leave them out, or give 'ranges.{task}=[{lowest:g},{highest:g}]', to use the benchmark's)."
                )
            written = written.fillna(stated)
            low[places], high[places] = written["r_min"], written["r_max"]
        _check_written(written, seeds[seed_of], task)
    found = {"r_min": low, "r_max": high}
    changed = {name: of for name, of in found.items() if not np.array_equal(of, curves[name], equal_nan=True)}
    return curves.assign(**changed), notes


def normalised(curves: pd.DataFrame) -> pd.Series:
    """Each row's return on the scale of its range, which `attach_ranges` has set; NaN where there is none.

    Args:
        curves: checked curves with the ranges that normalise them.
    """
    scaled = curves["return_mean"] - curves["r_min"]
    scaled /= curves["r_max"] - curves["r_min"]
    wrong = scaled.abs() > LARGEST
    if wrong.any():
        row = curves.loc[wrong.idxmax()]
        raise InputError(
            f"Task '{row['task']}' has a return of {row['return_mean']:g} in the range {row['r_min']:g} to "
            f"{row['r_max']:g}, which is too narrow for it: give its true R_min and R_max."
        )
    return scaled


def _read_study(folder: Path) -> pd.DataFrame:
    files = sorted(folder.glob("runs/*/curve.csv"))
    # A killed run may leave a row half-written; what follows the last line end is not yet a row.
    tables = (read_csv(file, TEXT, NUMBERS, whole_lines=True) for file in files)
    curves = concatenated(table for table in tables if len(table))
    if curves.empty:
        raise InputError(f"'{folder}' holds no curves: a study's folder has runs/<run id>/curve.csv.")
    return curves


def _text(frame: pd.DataFrame, name: str, default: Any) -> pd.Categorical:
    if name not in frame:
        if isinstance(default, pd.Series):
            return as_categories(default)
        return pd.Categorical.from_codes(np.zeros(len(frame), np.int8), [default])
    names = as_categories(frame[name])
    empty = names.isna()
    if "" in names.categories and not (isinstance(default, str) and default == ""):
        empty |= names == ""
    if empty.any():
        if default is None:
            raise InputError(f"Column '{name}' is empty in row {_row(empty)}: a name is needed.")
        names = as_categories(pd.Series(names, frame.index).astype(object).where(~empty, default))
    odd = [text for text in names.categories if not text.isprintable()]
    if odd:
        rows = names.isin(odd)
        where = _row(rows)
        raise InputError(
            f"Column '{name}' holds {names[where - 1]!a} in row {where}: a name has printable characters only."
        )
    return names


def _is_clean(frame: pd.DataFrame, name: str) -> bool:
    """Whether a column of numbers is one already, so that it needs no copy."""
    return name in frame and frame[name].dtype == (np.int64 if name == "seed" else np.float64)


def _numbers(frame: pd.DataFrame, name: str) -> pd.Series:
    if name not in frame:
        return pd.Series(np.nan, index=frame.index)
    column = frame[name]
    numbers = as_numbers(column)
    wordy = numbers.isna() & column.notna()
    if wordy.any():
        wrong = wordy & ~column.where(wordy, "").map(str).str.strip().str.lower().isin(["", "nan", "none", "<na>"])
        _refuse(frame, name, wrong, "a number is needed")
    return numbers


def _check_values(frame: pd.DataFrame) -> None:
    for name in NEEDED:
        if name not in TEXT:
            _refuse(frame, name, ~np.isfinite(frame[name]), "a finite number is needed")
    for name in ("step", "return_mean"):
        _refuse(frame, name, frame[name].abs() > LARGEST, f"numbers above {LARGEST:g} have no sums")
    _refuse(frame, "seed", frame["seed"].abs() >= 2**53, "seeds below 2^53 are told apart")
    _refuse(frame, "reward_p", ~frame["reward_p"].between(0, 1, inclusive="right"), "it should be in (0, 1]")
    _refuse(frame, "step", frame["step"] < 0, "it should be 0 or more")
    _refuse(frame, "seed", frame["seed"] % 1 != 0, "it should be a whole number")
    _refuse(frame, "split", ~frame["split"].isin(SPLITS), "it should be 'eval' (held out), 'train' or 'noise_free'")


def _refuse(frame: pd.DataFrame, name: str, wrong: pd.Series, right: str) -> None:
    if wrong.any():
        value = frame[name][wrong.idxmax()]
        raise InputError(f"Column '{name}' holds '{value}' in row {_row(wrong)}: {right}.")


def _row(wrong: pd.Series | np.ndarray) -> int:
    """Rows are counted as a reader does: from 1, below the header."""
    return int(np.flatnonzero(np.asarray(wrong))[0]) + 1


def _own_ranges(name: str, task: str, seeds: np.ndarray) -> dict[int, Range] | None:
    """Range of each seed by a registered benchmark; None where it is not registered or lacks the task."""
    if unvaried_task(task) != task:
        return None  # its range is another one
    from lcd.envs.benchmarks import registered_benchmark, reward_range

    benchmark = registered_benchmark(name)
    if benchmark is None or task not in benchmark.tasks:
        return None
    try:
        found = {seed: reward_range(benchmark, task, int(seed)) for seed in seeds}
    except (InputError, ImportError):
        return None
    if np.isnan(list(found.values())).any():
        return None
    where = f"The range of '{task}' in benchmark '{name}'"
    return {seed: _checked(pair, where) for seed, pair in found.items()}


def _check_written(written: pd.DataFrame, seeds: np.ndarray, task: str) -> None:
    values = written.to_numpy(float)
    if (values == values[0]).all():  # nearly always, and asked for each point of a family
        _checked(values[0], f"The range in the columns r_min and r_max of task '{task}'")
        return
    if written.isna().all().any():
        return  # nobody knows R_max, say
    if written.isna().any(axis=None):
        raise InputError(
            f"The columns r_min and r_max of task '{task}' are empty in some rows, and not in others: give them in all "
            f"rows or in none, or 'ranges.{task}=[R_min,R_max]'."
        )
    for pair in written.drop_duplicates().itertuples(index=False):
        _checked(pair, f"The range in the columns r_min and r_max of task '{task}'")
    by_seed = written.groupby(seeds)
    differing = (by_seed.max() - by_seed.min()).max(axis=1) > 1e-6 * (written["r_max"] - written["r_min"]).min()
    if differing.any():
        raise InputError(
            f"The columns r_min and r_max of task '{task}' have several ranges for seed {differing.idxmax()}: returns "
            f"under different ranges cannot be compared; give one, or 'ranges.{task}=[R_min,R_max]'."
        )


def _checked(pair: Any, where: str) -> Range:
    try:
        low, high = (float(bound) for bound in pair)
    except (TypeError, ValueError):
        raise InputError(f"{where} is {pair!r}: it should be two numbers (R_min, R_max).") from None
    if not (np.isfinite([low, high]).all() and low < high):
        raise InputError(f"{where} is ({low:g}, {high:g}): R_max should be above R_min, and both finite.")
    if not SMALLEST_RANGE <= high - low < np.inf:
        raise InputError(
            f"{where} is ({low:g}, {high:g}): returns cannot be divided by a range of {high - low:g}; R_max should be "
            f"above R_min by at least {SMALLEST_RANGE:g}."
        )
    return low, high
