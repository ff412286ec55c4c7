"""`lcd import`: anybody's logs as a file of curves, which `lcd report` diagnoses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from lcd.config.schemas import ImportConfig
from lcd.curves.table import COLUMNS, NEEDED, check_curves
from lcd.envs.errors import InputError, Unfinished
from lcd.files import outputs
from lcd.pipelines.importing.mapping import (
    FolderNames,
    check_complete,
    mapping_from,
    read_by,
    refuse_constants_that_are_columns,
)
from lcd.pipelines.importing.read_run import ReadRun
from lcd.pipelines.publish.wandb_client import SCHEME, is_wandb

if TYPE_CHECKING:
    import pandas as pd

MOST_RUNS = 20_000
MOST_ROWS = 10_000_000
MOST_KEYS = 12
"""Keys of a history that a sentence names."""
LEAST = 0.5
"""Share of the longest curve's steps without which a curve is left out."""
TRAINING = (
    "These are episodes of training, which are no held-out returns: what is told of them is told of training. Where "
    "rewards were thinned they must be the original reward's (lcd.wrap_rewards says how)."
)


@dataclass(frozen=True)
class Imported:
    """Curves that were made of anybody's logs, and what a reader should know of how."""

    curves: pd.DataFrame
    notes: tuple[str, ...]


def run(cfg: ImportConfig) -> int:
    """Read the logs that `path` names and write their curves; returns the exit code."""
    from lcd.files.atomic import write_atomic
    from lcd.files.spreadsheets import csv_text

    if cfg.path is None:
        raise InputError("path is missing: give a folder of logs, a file, or wandb:entity/project.")
    out = _out(cfg)
    inputs = [] if is_wandb(cfg.path) else [Path(cfg.path).expanduser()]
    outputs.check_file(out, inputs)
    console = Console()
    found = imported(
        cfg.path, cfg.map, kind=cfg.format, folders=cfg.folders, names=cfg.names, grid=cfg.grid, least=cfg.least
    )
    with outputs.drafted_file(out, inputs) as draft:
        # The seconds, ranges and returns of a column that nobody has told of are no use to a reader.
        whole = found.curves.dropna(axis="columns", how="all")
        write_atomic(draft, csv_text(whole))
    for note in found.notes:
        console.print(f"Note: {note}", highlight=False, soft_wrap=True, markup=False)
    console.print(_summary(found.curves), highlight=False, soft_wrap=True, markup=False)
    console.print(f"curves     {out}\nnext       lcd report {out}", highlight=False, soft_wrap=True, markup=False)
    return 0


def imported(
    path: str | Path,
    given: str | Mapping[str, Any] | None = None,
    *,
    kind: str | None = None,
    folders: str | None = None,
    names: Mapping[str, Any] | None = None,
    grid: Any = "auto",
    least: float = LEAST,
) -> Imported:
    """Curves of anybody's logs.

    Args:
        path: a folder of logs, one file, or `wandb:…`.
        given: column of curves to its source, or a YAML file of that.
        kind: the logs' format; None: what is found.
        folders: how the runs' folders are called.
        names: column → what logs call a value → what it is called here.
        grid: steps of a bin; 0: none; auto: where rows are single episodes.
        least: share of the longest curve's steps that a curve must have.
    """
    import pandas as pd

    from lcd.pipelines.importing.binning import binned, cut_to_shared

    if isinstance(least, bool) or not isinstance(least, Real) or not 0 <= least <= 1:
        raise InputError(f"least={least} must be a share of the longest curve's steps, 0 to 1.")
    mapping, pattern, wanted = mapping_from(given), FolderNames(folders), _grid(grid)
    renamed = _names(names)
    runs, notes = _runs(str(path), mapping, kind)
    tables: list[pd.DataFrame] = []
    lost = _Lost()
    rows = count = 0
    for each in runs:
        count += 1
        table = _read(each, mapping, pattern, lost)
        rows += len(table)
        if count > MOST_RUNS or rows > MOST_ROWS:
            raise InputError(f"{path} has more than {MOST_RUNS:,} runs or {MOST_ROWS:,} rows: name a group of fewer.")
        if len(table):
            tables.append(table.assign(of_episodes=each.of_episodes))
    if not tables:
        raise lost.refusal(str(path), count, mapping)
    whole = _typed(pd.concat(tables, ignore_index=True), renamed)
    training = bool(whole.pop("of_episodes").any())
    on_grid = binned(whole, wanted, training)
    cut = cut_to_shared(check_curves(on_grid.curves), least)
    told = (*notes, *lost.notes(), *([TRAINING] if training else []), *on_grid.notes, *cut.notes)
    return Imported(cut.curves, told)


def _runs(path: str, mapping: Mapping[str, Any], kind: str | None) -> tuple[Iterator[ReadRun], list[str]]:
    """The runs at a place, and what is to be known of the choice among its logs."""
    from lcd.pipelines.importing.places import FORMATS, found_at, runs_of
    from lcd.pipelines.importing.wandb_curves import OURS, wandb_runs

    if is_wandb(path):
        if kind is not None:
            raise InputError(f"format={kind}: {SCHEME} runs have no other format: leave it out.")
        asked = mapping or OURS
        return (_as_usual(run, {} if mapping else OURS) for run in wandb_runs(path, check_complete(asked))), []
    source = Path(path).expanduser()
    kind, folders, others = found_at(source, kind)
    several = len(others) > 1
    notes = [
        f"Read are {FORMATS[kind].words}; {' and '.join(others)} {'are' if several else 'is'} there, too: "
        f"format={others[0]} takes {'those' if several else 'that'}."
    ] if others else []  # fmt: skip
    runs = runs_of(source, kind, folders)
    if kind == "wandb" and not mapping:
        runs = (_as_usual(run, OURS) for run in runs)
    return runs, notes


def _as_usual(run: ReadRun, usual: Mapping[str, Any]) -> ReadRun:
    run.usual = usual
    return run


class _Lost:
    """Runs of which no row was taken, and why."""

    def __init__(self) -> None:
        self.misnamed: list[str] = []
        self.unmapped: dict[str, InputError] = {}
        self.empty: dict[str, list[str]] = {}
        self.pattern = ""

    def notes(self) -> list[str]:
        """A sentence for each reason."""
        told = [
            (self.misnamed, f"their names are not of the form folders={self.pattern}"),
            (list(self.unmapped), " ".join(dict.fromkeys(str(why).rstrip(".") for why in self.unmapped.values()))),
            (list(self.empty), "they have no row with all that the map asks for"),
        ]
        return [
            f"{len(names)} {'runs are' if len(names) > 1 else 'run is'} left out ({', '.join(names[:3])}"
            f"{', …' if len(names) > 3 else ''}): {why}."
            for names, why in told
            if names
        ]

    def refusal(self, path: str, count: int, mapping: Mapping[str, Any]) -> Exception:
        """Why nothing at all was taken."""
        if not count:
            return Unfinished(f"There is no run at {path}: nothing can be told.")
        if self.misnamed and not (self.unmapped or self.empty):
            return InputError(
                f"folders={self.pattern} fits none of the {count} runs at {path}, which are called "
                f"{', '.join(self.misnamed[:3])}: write {{_}} for what says nothing."
            )
        if self.unmapped and not self.empty:
            return next(iter(self.unmapped.values()))
        asked = ", ".join(f"{column}={source}" for column, source in mapping.items())
        keys = next((keys for keys in self.empty.values() if keys), [])
        named = ", ".join(keys[:MOST_KEYS]) + (", …" if len(keys) > MOST_KEYS else "")
        return Unfinished(
            f"None of the {count} runs at {path} has what the map asks for ({asked or 'as it is for such runs'}): give "
            f"map.COLUMN=… as they call it" + (f" (their histories have {named})." if named else ".")
        )


def _read(run: ReadRun, given: Mapping[str, Any], pattern: FolderNames, lost: _Lost) -> pd.DataFrame:
    import pandas as pd

    said = pattern.read(run.name)
    lost.pattern = pattern.pattern or ""
    if said is None:
        lost.misnamed.append(run.name)
        return pd.DataFrame()
    columns = [str(name) for name in run.table.columns]
    refuse_constants_that_are_columns(run, given)
    try:
        mapping = check_complete({**run.usual, **pattern.mapping, **given})
    except InputError as lacking:
        named = ", ".join(columns[:MOST_KEYS]) + (", …" if len(columns) > MOST_KEYS else "")
        settings = ", ".join(list(run.config)[:MOST_KEYS])
        has = f" (a history has {named}" + (f"; a config {settings}" if settings else "") + ")."
        lost.unmapped[run.name] = InputError(str(lacking).rstrip(".") + has if named else str(lacking))
        return pd.DataFrame()
    table = read_by(run, mapping, said)
    if table.empty:
        lost.empty[run.name] = columns
    return table


def _typed(curves: pd.DataFrame, names: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Numbers as numbers, where they are some, and values by what they are called here."""
    import numpy as np
    import pandas as pd

    from lcd.curves.reading import as_numbers
    from lcd.curves.table import NUMBERS

    for column, known in names.items():
        if column in curves:
            curves[column] = curves[column].map(lambda value, known=known: known.get(_plainly(value), value))
    for column in NUMBERS:
        if column in curves:
            # What is no number is named, with its row, when the curves are checked.
            numbers = as_numbers(curves[column])
            if numbers.notna().sum() == curves[column].notna().sum():
                curves[column] = numbers
    # Averages are made before anything else is checked, and would hide what cannot be a step.
    for column in ("step", "return_mean"):
        if not pd.api.types.is_numeric_dtype(curves[column]):
            value = curves[column][as_numbers(curves[column]).isna()].iloc[0]
            raise InputError(f"map.{column} leads to '{value}', which is no number: name another key.")
    wrong = ~curves["step"].between(0, np.inf, inclusive="left")
    if wrong.any():
        value = curves["step"][wrong].iloc[0]
        raise InputError(f"map.step leads to {value:g}: steps are finite numbers of at least 0; name another key.")
    return curves


def _plainly(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _names(given: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"names={given!r} must say for a column what is called how: names.view={{raw:pixels}}.")
    found: dict[str, dict[str, Any]] = {}
    for column, known in (given or {}).items():
        if column not in COLUMNS:
            raise InputError(f"names.{column}: '{column}' is no column of curves; choose from {', '.join(NEEDED)}, …")
        if not isinstance(known, Mapping) or not all(isinstance(to, str | int | float) for to in known.values()):
            raise InputError(f"names.{column}={known} must say what is called how: names.view={{raw:pixels}}.")
        found[column] = {str(old): new for old, new in known.items()}
    return found


def _grid(given: Any) -> float | None:
    if given is None or (isinstance(given, str) and given == "auto"):
        return None
    steps = float(given) if isinstance(given, Real) and not isinstance(given, bool) else -1.0
    if not 0 <= steps < 1e15:
        raise InputError(f"grid={given} must be auto, 0 (steps as they are), or the steps of a bin.")
    return steps


def _out(cfg: ImportConfig) -> Path:
    from lcd.pipelines.importing.wandb_curves import place_of

    if cfg.out is not None:
        out = Path(cfg.out).expanduser()
        if out.suffix != ".csv":
            raise InputError(f"out={cfg.out} must end in .csv: curves are written as a table.")
        return out
    path = str(cfg.path)
    stem = place_of(path).name if is_wandb(path) else Path(path).expanduser().absolute().stem
    return Path(f"{stem}-curves.csv")


def _summary(curves: pd.DataFrame) -> str:
    from lcd.curves.table import CONDITION

    conditions = curves[[*CONDITION]].drop_duplicates()
    seeds = curves.groupby([*CONDITION], observed=True)["seed"].nunique()
    told = f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
    tasks = curves["task"].nunique()
    return (
        f"{len(curves):,} rows: {tasks} task{'s' * (tasks > 1)}, {len(conditions)} "
        f"condition{'s' * (len(conditions) > 1)} ({', '.join(sorted(map(str, curves['view'].unique())))}; p = "
        f"{', '.join(f'{p:g}' for p in sorted(curves['reward_p'].unique(), reverse=True))}), seeds: {told}."
    )
