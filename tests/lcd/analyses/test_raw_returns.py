"""What is told where nobody knows the range of a task."""

import json

import numpy as np
import pandas as pd
import pytest

from lcd.analyses import Evidence, analyse
from lcd.analyses.raw_returns import raw_returns
from lcd.analyses.transfer import transfers
from lcd.envs.errors import InputError
from lcd.report.curve_figures import draw_curves
from lcd.report.curve_lines import task_curves
from lcd.report.page import write_report
from lcd.report.terminal import terminal_table, transfer_table
from lcd.scores.asked_contrasts import parse_contrasts
from lcd.scores.diagnosis import diagnose_curves, normalised_curves

RANGE = ["r_min", "r_max"]
CONTRAST = {"name": "agents", "axis": "agent", "baseline": "unknown", "variants": ["other"], "formula": "gain"}


@pytest.fixture
def unranged(curves) -> pd.DataFrame:
    """The four tasks, one of them without R_max."""
    return curves.assign(r_max=curves["r_max"].mask(curves["task"] == "toy/both"))


def told(diagnosis) -> dict[str, pd.DataFrame]:
    return {each.key: each.table for each in analyse(Evidence(diagnosis))[0]}


def test_scores_that_need_a_range_say_so(unranged, curves, tmp_path):
    diagnosis = diagnose_curves(unranged, contrasts=parse_contrasts([CONTRAST]))
    table = diagnosis.table.set_index("task")
    row = table.loc["toy/both"]
    assert {row[name] for name in ("status", "phi_status", "psi_status")} == {"no_range"}
    numbers = [name for name in table if name.startswith(("phi", "psi", "auc", "final")) and "status" not in name]
    assert row[numbers].isna().all()
    assert (row["seeds"], row["steps"]) == (5, 1000)
    others = diagnose_curves(curves[curves["task"] != "toy/both"], contrasts=parse_contrasts([CONTRAST])).table
    pd.testing.assert_frame_equal(others.set_index("task"), table.drop("toy/both"))
    saved = diagnosis.save(tmp_path)
    assert "no_range" in saved["csv"].read_text()
    assert "no_range" in {each["psi_status"] for each in json.loads(saved["json"].read_text())["tasks"]}
    assert any("'ranges.toy/both=[R_min,R_max]'" in note for note in diagnosis.notes)
    columns = terminal_table(diagnosis).columns
    assert any("no range" in str(cell) for cell in columns[-1].cells)


def test_returns_and_differences_are_told_as_they_are(unranged):
    table = told(diagnose_curves(unranged))["returns"]
    assert set(table["task"]) == {"toy/both"}
    assert table["mean return"].tolist() == pytest.approx([0.2, 0.4, 0.6, 0.4, 0.25, 0.1])
    assert table["last return"].tolist() == pytest.approx([1.2 * mean for mean in table["mean return"]], abs=0.02)
    assert table["difference"].tolist()[1:] == pytest.approx([0.2, 0.4, 0.2, 0.05, -0.1])
    assert np.isnan(table["difference"][0])
    assert (table["difference_low"] < table["difference"])[1:].all()
    assert table["rank"].tolist() == [5, 2.5, 1, 2.5, 4, 6]


def test_ranks_over_tasks_need_no_range(make_study):
    tasks = {"a": (0.1, 0.2, 0.3, None, None, None), "b": (0.1, 0.3, 0.2, None, None, None)}
    curves = make_study(tasks, 3, noise=0.001)
    # Another scale of one task changes no rank.
    scaled = curves.assign(return_mean=curves["return_mean"].where(curves["task"] == "a", 1000 * curves["return_mean"]))
    for each in (curves, scaled):
        (_, ranks) = raw_returns(diagnose_curves(each.drop(columns=RANGE)).curves)
        assert ranks.table["view"].tolist() == ["pixels", "figure_ground", "semantic"]
        assert ranks.table["mean rank"].tolist() == [3, 1.5, 1.5]


def test_no_rank_lies_beyond_the_first_or_the_last_one(make_study):
    # Two tasks on which seeds disagree about who is ahead, and a setting that is always the last.
    tasks = dict.fromkeys("ab", (0.1, 0.3, 0.31, None, None, None))
    (_, ranks) = raw_returns(diagnose_curves(make_study(tasks, 3, noise=0.05).drop(columns=RANGE)).curves)
    low, high = (ranks.table[f"mean rank_{end}"].to_numpy() for end in ("low", "high"))
    assert (low >= 1).all()
    assert (high <= 3).all()
    assert low[1:].min() == 1
    assert (high > low).any()
    assert (low <= ranks.table["mean rank"]).all()
    assert (ranks.table["mean rank"] <= high).all()


def test_a_page_without_any_range(curves, tmp_path):
    diagnosis = diagnose_curves(curves.drop(columns=RANGE))
    assert set(diagnosis.table["status"]) == {"no_range"}
    page = write_report(tmp_path, diagnosis).read_text("utf-8")
    assert "Returns of tasks whose range is not known" in page
    assert "Ranks by return" in page
    row = diagnosis.table.iloc[0]
    assert draw_curves(task_curves(diagnosis, row)).axes[0].get_ylabel() == "return"
    with pytest.raises(InputError, match="No task has a range"):
        normalised_curves(curves.drop(columns=RANGE))


def test_a_range_in_some_rows_is_a_mistake(curves):
    with pytest.raises(InputError, match="are empty in some rows, and not in others"):
        diagnose_curves(curves.assign(r_max=curves["r_max"].mask(curves["step"] == 0)))


def test_a_context_without_a_range_leaves_the_trained_one_alone(curves):
    far = curves.assign(context="far").drop(columns=RANGE)
    asked = {"name": "far", "axis": "context", "variants": ["far"], "formula": "loss"}
    table = diagnose_curves(pd.concat([curves, far]), contrasts=parse_contrasts([asked])).table
    assert set(table["far_status"]) == {"no_range"}
    pd.testing.assert_frame_equal(table[list(diagnose_curves(curves).table)], diagnose_curves(curves).table)


def test_a_curriculum_without_a_range_has_a_matrix_and_no_measures(make_curve, tmp_path):
    rows = [
        row
        for stage, steps in (("a", (0, 100)), ("b", (200, 300)))
        for task in "ab"
        for seed in (0, 1)
        for row in make_curve(5.0, task=task, seed=seed, trained_on="c", stage=stage, steps=steps)
    ]
    diagnosis = diagnose_curves(pd.DataFrame(rows).drop(columns=RANGE))
    (found,) = transfers(diagnosis.others)
    assert found.scale == "return"
    assert found.matrix[-1].tolist() == pytest.approx([6.0, 6.0])
    assert all(value["mean"] is None for value in found.plain()["measures"].values())
    assert "no_range" in transfer_table(found).caption.plain
    assert "no_range" in write_report(tmp_path, diagnosis, transfers=[found]).read_text("utf-8")
    assert set(told(diagnosis)["outcomes"]["scale"]) == {"return"}
