"""Ranges of returns by name and from a table, and how scores change between them."""

import pandas as pd
import pytest

from lcd.analyses.other_ranges import other_ranges
from lcd.curves.ranges import range_sets, ranges_from
from lcd.envs.benchmarks import get_benchmark
from lcd.envs.errors import InputError
from lcd.scores.diagnosis import diagnose_curves

TASKS = {
    "procgen/maze": (0.30, 0.50, 0.80, 0.78, 0.77, 0.75),
    "procgen/coinrun": (0.60, 0.62, 0.74, 0.50, 0.30, 0.20),
    "procgen/bigfish": (0.20, 0.40, 0.60, 0.40, 0.25, 0.10),
}


@pytest.fixture
def curves(make_study):
    stated = get_benchmark("procgen").range_sets["cobbe"]
    named = {"benchmark": "procgen", "agent": "ppo"}
    parts = []
    for task, areas in TASKS.items():
        low, high = stated[task]
        parts.append(make_study({task: areas}, 3, 0.01, r_min=low, r_max=high, **named))
    return pd.concat(parts, ignore_index=True)


def test_scores_under_other_ranges_are_those_of_a_diagnosis_with_them(curves):
    sets = range_sets(curves)
    assert list(sets) == ["cobbe", "measured"]
    table = other_ranges(diagnose_curves(curves)).table.set_index("task")
    for name, ranges in sets.items():
        again = diagnose_curves(curves, ranges).table.set_index("task")
        for score, sign in (("phi", "φ"), ("psi", "ψ")):
            pd.testing.assert_series_equal(table[f"{sign}, {name}"], again[f"{score}_raw"], check_names=False)
    assert (table["φ, cobbe"] != table["φ, measured"]).any()


def test_the_report_says_which_ranges_it_uses(curves):
    sets = range_sets(curves)
    assert "use the ranges 'cobbe'" in other_ranges(diagnose_curves(curves)).note
    assert "use the ranges 'measured'" in other_ranges(diagnose_curves(curves, sets["measured"])).note
    own = dict.fromkeys(TASKS, (0.0, 50.0))
    assert "use other ranges than these" in other_ranges(diagnose_curves(curves, own)).note


def test_a_benchmark_with_one_range_has_nothing_to_compare(make_study):
    assert other_ranges(diagnose_curves(make_study({"a": TASKS["procgen/maze"]}, 3, 0.01))) is None


def test_a_name_or_the_table_of_a_measurement_gives_ranges(curves, tmp_path):
    sets = range_sets(curves)
    assert ranges_from("measured", TASKS, sets) == sets["measured"]
    table = tmp_path / "ranges.csv"
    table.write_text("task,r_min,r_max,episodes\nprocgen/maze,3.5,10,8\nprocgen/ninja,1,10,8\n")
    assert ranges_from(str(table), TASKS, sets) == {"procgen/maze": (3.5, 10.0)}
    for text, sentence in {
        "task,r_min\nprocgen/maze,1\n": "holds no ranges: it has no r_max",
        "task,r_min,r_max\n": "has no rows",
        "task,r_min,r_max\nprocgen/maze,1,2\nprocgen/maze,1,3\n": "has the task 'procgen/maze' twice",
        "task,r_min,r_max\nprocgen/maze,low,2\n": "must be two numbers",
        "task,r_min,r_max\nprocgen/maze,,2\n": "must be two numbers",
    }.items():
        table.write_text(text)
        with pytest.raises(InputError, match=sentence):
            ranges_from(str(table), TASKS, sets)
    with pytest.raises(InputError, match="ranges that are known of these tasks: cobbe, measured"):
        ranges_from("mesured", TASKS, sets)
