"""A diagnosis that says what it was made without."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from lcd.scores.calibration import ground_truth
from lcd.scores.challenge_table import KEYS, numeric, table_columns
from lcd.scores.contrasts import HEADLINE, PERCEPTION, most_solved
from lcd.scores.diagnosis import Diagnosis
from lcd.scores.left_out import STATES, LeftOut
from lcd.scores.validity import OK


def mark(diagnosis: Diagnosis, left_out: Sequence[LeftOut]) -> Diagnosis:
    """The diagnosis with statuses that say which tasks lack runs; tasks of which nothing is left get a row."""
    keys = list(KEYS)
    marked = [each for each in left_out if not each.aside]
    # Of a benchmark of which nothing is left no curve says in which view perception is out of the way.
    solved = {each.benchmark: most_solved(PERCEPTION.values) for each in marked} | diagnosis.solved
    columns = list(table_columns(diagnosis.contrasts, solved.values()))
    known = set(diagnosis.table[keys].itertuples(index=False, name=None))
    lost = list(dict.fromkeys(tuple(getattr(each, name) for name in keys) for each in marked))
    rows = [*diagnosis.table.to_dict("records"), *(_blank(key, columns) for key in lost if key not in known)]
    table = pd.DataFrame(sorted(rows, key=lambda row: [row[name] for name in keys]), columns=columns)
    table = table.astype(dict.fromkeys(numeric(columns), float) | {"seeds": int})
    for state in reversed(STATES):
        for each in marked:
            if each.state == state:
                _set_status(table, (table[keys] == [getattr(each, name) for name in keys]).all(axis=1), each)
    notes = (*diagnosis.notes, *(each.sentence for each in left_out))
    return replace(diagnosis, table=table, notes=notes, left_out=tuple(left_out), solved=solved)


def _blank(key: tuple[str, ...], columns: Sequence[str]) -> dict:
    """The row of a task that nothing is known of."""
    named = dict(zip(KEYS, key, strict=True))
    numbers = dict.fromkeys(numeric(columns), math.nan) | {"seeds": 0}
    numbers |= ground_truth(named["benchmark"], named["task"])
    statuses = {name: "missing_values" for name in columns if name.endswith("_status")}
    statuses |= {f"{contrast.name}_status": contrast.lacks for contrast in HEADLINE}
    return named | numbers | {"status": "ok", **statuses, "validity": OK}


def _set_status(table: pd.DataFrame, mine: pd.Series, left_out: LeftOut) -> None:
    """Say in a task's row, in place, that a run of it is left out."""
    table.loc[mine, "status"] = left_out.state
    lacks = {contrast.lacks for contrast in HEADLINE} | {"missing_values"}
    for score in (name for name in table if name.endswith("_status")):
        # Nobody knows whether a condition that is left out would have been unsolved, too.
        table.loc[mine & table[score].isin([*lacks, "floor", *STATES]), score] = left_out.state
