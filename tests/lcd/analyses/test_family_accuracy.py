"""What fewer points would have told of a family, and where failures are rare or common."""

import numpy as np
import pandas as pd
import pytest
from family_curves import NAMES, family_curves, scores, told

from lcd.analyses.family_settings import FamilySettings
from lcd.families.prevalence import CASES


@pytest.fixture
def frame() -> pd.DataFrame:
    return family_curves("cart", NAMES, scores(0.4, 0.6), {"a": np.array([0.9, 0.95, 1.0]), "b": np.full(3, 0.8)})


def test_errors_of_fewer_points_fall_with_their_number(frame):
    table = told(frame, FamilySettings())["families-accuracy"].table
    error = table.set_index(["how", "N"])["error"]
    assert error["with_replacement", 6] < error["with_replacement", 4]
    cases = told(frame, FamilySettings())["families-prevalence"].table
    assert tuple(dict.fromkeys(cases["failures"])) == CASES


def test_where_a_benchmark_says_by_what_points_fail_that_decides(frame):
    # Twelve points with means of waiting, in seconds: a fails on the first six, b on the first three.
    waiting = {"a": np.where(np.arange(12) < 6, 20.5, 20.0), "b": np.where(np.arange(12) < 3, 300.0, 1.0)}
    place = {name: number for number, name in enumerate(NAMES)}
    rows = frame.assign(benchmark="traffic")
    rows["waiting"] = [waiting[agent][place.get(context, 11)] for agent, context in rows[["agent", "context"]].values]
    first = rows["seed"] == rows["seed"].min()
    rows["waiting"] += np.where(first, 0.4, -0.2)  # above 20 on one seed, not on average
    found = told(rows, FamilySettings())
    table = found["families"].table.set_index("agent")
    assert table.loc[["a", "b"], "failed %"].tolist() == pytest.approx([50, 25])
    assert "solved %" not in table
    assert any("a on 50.0 % and b on 25.0 % of the family; all methods on 25.0 %" in said
               for said in found["families"].says)  # fmt: skip
    cases = found["families-prevalence"].table.drop_duplicates("failures").set_index("failures")
    assert cases["failing %"][list(CASES[:3])].tolist() == pytest.approx([25, 100 * 0.3 / 9.3, 100 * 30 / 39])
    assert "'waiting' at 20 or less" in found["families-prevalence"].note
    assert "failed %" not in told(rows.assign(benchmark="imported"))["families"].table
