"""A diagnosis that says what it was made without."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from lcd.calibration import ground_truth
from lcd.diagnosis import GROUP, Diagnosis, numeric_columns, table_columns
from lcd.left_out import STATES, LeftOut


def mark(diagnosis: Diagnosis, left_out: Sequence[LeftOut]) -> Diagnosis:
    """The diagnosis with statuses that say which tasks lack runs; tasks of which nothing is left get a row."""
    keys = [*GROUP, "task"]
    marked = [each for each in left_out if not each.curriculum]
    known = set(diagnosis.table[keys].itertuples(index=False, name=None))
    lost = list(dict.fromkeys(tuple(getattr(each, name) for name in keys) for each in marked))
    rows = [*diagnosis.table.to_dict("records"), *(_blank(key) for key in lost if key not in known)]
    table = _table(sorted(rows, key=lambda row: [row[name] for name in keys]))
    for state in reversed(STATES):
        for each in marked:
            if each.state == state:
                _set_status(table, (table[keys] == [getattr(each, name) for name in keys]).all(axis=1), each)
    notes = (*diagnosis.notes, *(each.sentence for each in left_out))
    return replace(diagnosis, table=table, notes=notes, left_out=tuple(left_out))


def _blank(key: tuple[str, ...]) -> dict:
    """The row of a task that nothing is known of."""
    named = dict(zip((*GROUP, "task"), key, strict=True))
    numbers = dict.fromkeys(numeric_columns(), math.nan) | {"seeds": 0}
    numbers |= ground_truth(named["benchmark"], named["task"])
    return named | numbers | {"status": "ok", "phi_status": "missing_view", "psi_status": "missing_p"}


def _table(rows: list[dict]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=list(table_columns()))
    return table.astype(dict.fromkeys(numeric_columns(), float) | {"seeds": int})


def _set_status(table: pd.DataFrame, mine: pd.Series, left_out: LeftOut) -> None:
    """Say in a task's row, in place, that a run of it is left out."""
    table.loc[mine, "status"] = left_out.state
    for score, lack in (("phi_status", "missing_view"), ("psi_status", "missing_p")):
        # Nobody knows whether a condition that is left out would have been unsolved, too.
        table.loc[mine & table[score].isin([lack, "floor", *STATES]), score] = left_out.state
