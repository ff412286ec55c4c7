"""Tables of curves as they stand in files, unchecked: CSV and Parquet, names as categories and numbers as numbers.

A categorical column holds each name once: millions of rows are read, compared and grouped as small whole numbers.
"""

import io
import sys
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pandas as pd

from lcd.envs.errors import InputError
from lcd.files.reading import Unreadable, open_regular

if TYPE_CHECKING:
    import pyarrow.parquet

EMPTY = ("", "nan", "NaN", "none", "None", "<NA>")
"""What a CSV file writes for a number that is missing."""
BATCH = 2**18
"""Rows of small tables that are put together before anything else: freed in large pieces, memory is given back."""
INDEX = "__index_level_"
"""What the columns are called in which pandas keeps the labels of rows."""


def read_csv(path: Path, names: Sequence[str], numbers: Sequence[str], whole_lines: bool = False) -> pd.DataFrame:
    """Read a CSV file.

    Args:
        path: The file.
        names: Columns that hold names; they come back as categories.
        numbers: Columns that hold numbers; where one holds a word, all come back as text, for a check to name it.
        whole_lines: Leave out what follows the last line end: a killed run may leave a row half-written.

    Returns:
        The rows; other columns are text.
    """
    try:
        with open_regular(path) as file:
            if whole_lines:
                content = file.read()
                file = io.BytesIO(content[: content.rfind(b"\n") + 1])
            table = _parsed(file, names, numbers)
            refuse_twice(table, file, {*names, *numbers})
            return table
    except pd.errors.EmptyDataError:
        return pd.DataFrame(columns=[*names, *numbers])
    except (Unreadable, OSError) as why:
        reason = why.strerror if isinstance(why, OSError) else why
        raise InputError(f"'{path}' cannot be read ({reason}): give a CSV file of curves.") from None
    except (UnicodeDecodeError, pd.errors.ParserError, ValueError) as error:
        raise InputError(f"'{path}' is not readable as CSV: {' '.join(str(error).split())}.") from error


def parsed_csv(file: BinaryIO, **how: Any) -> pd.DataFrame:
    """`pandas.read_csv`, whose columns stand over their own cells.

    Where rows have more cells than the first line has names, it would take the first ones for labels of rows, so that
    every name stood over the next one's numbers.

    Raises:
        ValueError: where there are such rows, or no CSV.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return pd.read_csv(file, index_col=False, **how)
        except pd.errors.ParserWarning:
            raise ValueError("its rows have more cells than its first line has names") from None


def refuse_twice(table: pd.DataFrame, file: BinaryIO, columns: Collection[str] | None = None) -> None:
    """Refuse a column whose name comes twice: pandas calls the second one by another name.

    Args:
        table: what was read.
        file: what it was read from.
        columns: those that may not come twice; None: all.

    Raises:
        ValueError: where one does.
    """
    there = set(map(str, table.columns))
    if not any(f"{name}.1" in there for name in there if columns is None or name in columns):
        return
    file.seek(0)
    named = pd.read_csv(file, header=None, nrows=1, dtype=str, encoding="utf-8-sig", skipinitialspace=True).iloc[0]
    twice = [name for name in named[named.duplicated()].dropna() if columns is None or name in columns]
    if twice:
        raise ValueError(f"it has the column '{twice[0]}' twice")


def as_numbers(column: pd.Series) -> pd.Series:
    """A column's numbers; what is none is missing, and what is too large for one is infinite."""
    try:
        return pd.to_numeric(column, errors="coerce").astype(float)
    except OverflowError:  # whole numbers of any length, as Python has them
        large = column.map(lambda value: isinstance(value, int) and abs(value) > sys.float_info.max)
        return pd.to_numeric(column.mask(large, np.inf), errors="coerce").astype(float)


def _parsed(file: BinaryIO, names: Sequence[str], numbers: Sequence[str]) -> pd.DataFrame:
    # No name is taken for a missing value: a task may be called "NA" or "None".
    how: dict[str, Any] = {"encoding": "utf-8-sig", "keep_default_na": False, "skipinitialspace": True}
    text: dict[str, Any] = dict.fromkeys(names, "category")
    try:
        kinds: defaultdict[str, Any] = defaultdict(lambda: str, text | dict.fromkeys(numbers, np.float64))
        return parsed_csv(file, dtype=kinds, na_values=dict.fromkeys(numbers, EMPTY), **how)
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError):
        raise
    except ValueError:
        file.seek(0)
        kinds = defaultdict(lambda: str, text)
        return parsed_csv(file, dtype=kinds, **how)


def read_parquet(path: Path, names: Sequence[str]) -> pd.DataFrame:
    """Read a Parquet file.

    Args:
        path: The file.
        names: Columns that hold names; where they are text they come back as categories.
    """
    try:
        import pyarrow
        import pyarrow.parquet as pq
    except Exception as error:  # pyarrow built for another numpy fails in other ways than ImportError
        raise InputError(
            f"Reading '{path.name}' needs pyarrow, which does not import here ({type(error).__name__}): "
            "install the extra 'parquet' or save the curves as CSV."
        ) from error
    try:
        kinds = {field.name: str(field.type) for field in pq.read_schema(path)}
        texts = [name for name in names if kinds.get(name) in ("string", "large_string")]
        file, columns = pq.ParquetFile(path, read_dictionary=texts), {}
        for name in kinds:
            if INDEX not in name:
                columns[name] = _column(file, name)
                # What Arrow keeps for its next reading would count among what a report needs.
                pyarrow.default_memory_pool().release_unused()
        return pd.DataFrame(columns, copy=False)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise InputError(f"'{path}' is not readable as Parquet: {reason.rstrip('.')}.") from error


def _column(file: "pyarrow.parquet.ParquetFile", name: str) -> pd.Series:
    """One column at a time, so that no more than one of them is held twice."""
    # What is no number and no name (dates, lists) is left to pandas.
    return file.read(columns=[name]).column(0).to_pandas()


def as_categories(column: pd.Series) -> pd.Categorical:
    """A column of anything as categories that are texts, sorted, each of them used; what is missing has none."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, found = column.cat.codes.to_numpy(), column.cat.categories
        in_order = (
            found.dtype == object and all(isinstance(each, str) for each in found) and found.is_monotonic_increasing
        )
        if in_order and np.bincount(codes[codes >= 0], minlength=len(found)).all():
            return column.array
    else:
        plain = column.astype(object)
        try:
            codes, found = pd.factorize(plain)
        except TypeError:  # lists and the like
            codes, found = pd.factorize(plain.map(str))
    used = np.bincount(codes[codes >= 0], minlength=len(found)).astype(bool)
    texts = np.array([str(value) for value, there in zip(found, used, strict=True) if there], dtype=object)
    categories, merged = np.unique(texts, return_inverse=True)
    places = np.full(len(found) + 1, -1)
    places[np.flatnonzero(used)] = merged
    return pd.Categorical.from_codes(places[codes], pd.Index(categories, dtype=object))


def concatenated(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Tables one below the other; columns that are categories in all of them stay so.

    Of many tables that are made as they are asked for, all rows are held once, and one column of them twice.
    """
    batches, waiting, rows = [], [], 0
    for table in tables:
        waiting.append(table)
        rows += len(table)
        if rows >= BATCH:
            batches.append(_by_column(_joined(waiting)))
            waiting, rows = [], 0
    last = _joined(waiting) if waiting else pd.DataFrame()
    if not batches:
        return last
    batches += [_by_column(last)] if waiting else []
    if any(batch.keys() != batches[0].keys() for batch in batches):
        return _joined([pd.DataFrame(batch, copy=False) for batch in batches])
    # Each column's parts are let go of when it is made.
    made = {name: _joined([batch.pop(name).to_frame() for batch in batches])[name] for name in list(batches[0])}
    return pd.DataFrame(made, copy=False)


def _by_column(table: pd.DataFrame) -> dict[str, pd.Series]:
    """The columns of a table, none of which keeps the memory of another."""
    return {name: table[name].copy() for name in table.columns}


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    columns = dict.fromkeys(name for table in tables for name in table.columns)
    shared = [
        name
        for name in columns
        if all(name in table and isinstance(table[name].dtype, pd.CategoricalDtype) for table in tables)
    ]
    for name in shared:
        every = sorted(set().union(*(table[name].cat.categories for table in tables)))
        kind = pd.CategoricalDtype(pd.Index(every, dtype=object))
        tables = [table.assign(**{name: table[name].astype(kind)}) for table in tables]
    return pd.concat(tables, ignore_index=True)


def kept(table: pd.DataFrame, rows: np.ndarray | pd.Series) -> pd.DataFrame:
    """The rows of a table for which something holds; where that is all of them, the table, which is not copied."""
    return table if np.all(rows) else table[rows]


def group_numbers(frame: pd.DataFrame, names: Sequence[str]) -> np.ndarray:
    """For each row a whole number that tells its values of some columns from others, in the order of these values."""
    numbers = np.zeros(len(frame), np.int64)
    most = 1
    for name in names:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes, count = column.cat.codes.to_numpy(), len(column.cat.categories)
        else:
            codes, found = pd.factorize(column, sort=True)
            count = len(found)
        if most * count > 2**62:
            numbers, found = pd.factorize(numbers, sort=True)
            most = len(found)
        numbers *= count
        numbers += codes
        most *= count
    return numbers
