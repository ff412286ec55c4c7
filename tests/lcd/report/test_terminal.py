import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from lcd.analyses.analysis import Analysis
from lcd.report.terminal import analysis_table


def lines(table: pd.DataFrame, width: int) -> list[str]:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(analysis_table(Analysis("key", "A title", table), width))
    return console.export_text().splitlines()


def test_a_narrow_terminal_shows_whole_numbers_in_the_columns_that_it_has_room_for():
    numbers = {f"share {place} %": np.array([10.5, 99.5]) + place for place in range(20)}
    table = pd.DataFrame(
        {"agent": ["ours", "a very long name of an agent with its settings"], "score": [0.25, 0.75], **numbers}
    )
    told = lines(table, 80)
    assert max(map(len, told)) <= 80
    shown = [value for value in np.concatenate([*numbers.values()]) if any(f" {value:.1f} " in line for line in told)]
    said = " ".join(told)
    left = [name for name in numbers if name in said]
    assert 4 <= len(left) <= 16, "some columns are left out, and named"
    assert len(shown) == 2 * (20 - len(left)), "the others' numbers stand in one line each"


@pytest.mark.parametrize("width", [40, 300])
def test_two_columns_are_always_there_and_a_wide_terminal_shows_all(width):
    table = pd.DataFrame(
        {"agent": ["x" * 60, "y"], "point": ["z" * 60, "w"], **{f"n{i}": [i, i + 1.5] for i in range(9)}}
    )
    told = " ".join(lines(table, width))
    assert "agent" in told
    assert "point" in told
    assert ("More columns" in told) == (width == 40)


def test_a_factor_is_told_once_and_an_empty_column_not_at_all():
    table = pd.DataFrame({"task": ["a", "b"], "steps to see": ["2 times", "–"], "log₂ steps to see": [1.0, np.nan]})
    told = " ".join(lines(table.assign(x=np.nan), 100))
    assert "2 times" in told
    assert "log₂" not in told
    assert "1.00" not in told
    assert " x " not in told
