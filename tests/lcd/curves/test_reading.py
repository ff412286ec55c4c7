"""Many tables one below the other, and rows that come twice, beside what pandas makes of them at once."""

import numpy as np
import pandas as pd
import pytest

from lcd.curves import reading
from lcd.curves.row_ranges import CurveRows


def tables(number, rng, names=("a", "b", "c"), extra=False):
    """Small tables with a column of names, of which each has its own categories, and numbers."""
    for place in range(number):
        rows = int(rng.integers(1, 6))
        made = pd.DataFrame({"step": np.arange(rows), "value": rng.normal(size=rows), "text": [f"t{place}"] * rows})
        made["name"] = pd.Categorical(rng.choice(names[: 1 + place % len(names)], rows))
        yield made.assign(more=1.5) if extra and place > number // 2 else made


@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize("number", [1, 2, 60])
def test_tables_that_come_one_by_one_are_what_pandas_puts_together(monkeypatch, number, extra):
    monkeypatch.setattr(reading, "BATCH", 16)
    every = list(tables(number, np.random.default_rng(0), extra=extra))
    plain = pd.concat([each.assign(name=each["name"].astype(object)) for each in every], ignore_index=True)
    found = reading.concatenated(iter(every))
    assert list(found["name"].cat.categories) == sorted(set(plain["name"]))
    pd.testing.assert_frame_equal(found.assign(name=found["name"].astype(object)), plain)


def test_nothing_is_an_empty_table():
    assert reading.concatenated(iter(())).empty


def test_all_rows_of_a_table_are_the_table():
    table = pd.DataFrame({"x": [1, 2, 3]})
    assert reading.kept(table, table["x"] > 0) is table
    assert list(reading.kept(table, table["x"] > 1)["x"]) == [2, 3]


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_come_twice_are_found_as_by_comparing_all(seed):
    rng = np.random.default_rng(seed)
    curves, steps = rng.integers(0, 3, 12), rng.integers(0, 12, 12).astype(float)
    if seed % 2:
        curves, steps = np.sort(curves), np.arange(12.0)
    pairs = list(zip(curves.tolist(), steps.tolist(), strict=True))
    assert CurveRows(curves, steps).any_twice(steps) == (len(set(pairs)) < len(pairs))
