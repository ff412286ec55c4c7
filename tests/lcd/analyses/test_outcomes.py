"""What was trained against what is evaluated: one table, by hand."""

import pandas as pd
import pytest

from lcd.analyses import Evidence, analyse
from lcd.analyses.outcomes import elsewhere, outcome_table
from lcd.report.page import write_report
from lcd.scores.diagnosis import diagnose_curves

SEEDS = (0, 1)


def rows(level: float, **where) -> list[dict]:
    """A line from half of a level to one and a half of it: its area is the level; seeds differ by 0.1 around it."""
    shared = {"task": "a", "view": "state", "reward_p": 1, "r_min": 0.0, "r_max": 1.0} | where
    return [
        shared | {"seed": seed, "step": step, "return_mean": (level + (seed - 0.5) * 0.1) * (0.5 + step / 100)}
        for seed in SEEDS
        for step in (0, 50, 100)
    ]


@pytest.fixture
def curves() -> pd.DataFrame:
    """Trained on `a`: evaluated on it, on its training levels, in the context `far`, and on `b`."""
    return pd.DataFrame(
        rows(0.6) + rows(0.8, split="train") + rows(0.2, context="far") + rows(0.4, trained_on="a", task="b")
    )


def test_the_table_has_a_row_for_each_outcome(curves):
    diagnosis = diagnose_curves(curves)
    table = outcome_table(pd.concat([diagnosis.curves, diagnosis.others]))
    found = {
        (row.trained_on, row.task, row.context, row.split): (row.first, row.last, row.AUC)
        for row in table.itertuples(index=False)
    }
    areas = {"train": 0.8, "eval": 0.6}
    expected = {("a", "a", "", split): area for split, area in areas.items()}
    expected |= {("a", "a", "far", "eval"): 0.2, ("a", "b", "", "eval"): 0.4}
    assert set(found) == set(expected)
    for key, area in expected.items():
        assert found[key] == pytest.approx((0.5 * area, 1.5 * area, area))
    assert (table["AUC_low"] < table["AUC"]).all()
    assert (table["seeds"] == 2).all()


def test_it_is_told_where_something_else_is_evaluated(curves):
    alone = diagnose_curves(curves[curves["context"].isna() & curves["trained_on"].isna()])
    assert "outcomes" not in {each.key for each in analyse(Evidence(alone))[0]}
    told = next(each for each in analyse(Evidence(diagnose_curves(curves)))[0] if each.key == "outcomes")
    assert told.says == ["Trained on a; evaluated on a and b."]
    assert len(told.table) == 4


def test_points_that_nobody_says_were_trained_are_asked_about():
    points = pd.DataFrame(rows(0.6) + rows(0.2, context="length=2"))
    told = next(each for each in analyse(Evidence(diagnose_curves(points)))[0] if each.key == "outcomes")
    assert any("give the column trained_on, with task@context" in sentence for sentence in told.says)


def test_what_is_evaluated_otherwise_changes_no_score(curves):
    own = curves["context"].isna() & curves["trained_on"].isna()
    alone, all_of_it = (diagnose_curves(each).table for each in (curves[own], curves))
    pd.testing.assert_frame_equal(alone, all_of_it)


def test_curves_of_another_task_alone_have_a_page(curves, tmp_path):
    diagnosis = diagnose_curves(curves[curves["task"] == "b"])
    assert diagnosis.table.empty
    page = write_report(tmp_path, diagnosis).read_text("utf-8")
    assert "What was trained, and what was evaluated" in page
    assert elsewhere(diagnosis.others).table["task"].tolist() == ["b"]
