"""Overall performance under other distributions than the family's own."""

import numpy as np
import pandas as pd
import pytest
from family_curves import NAMES, family_curves, scores, told

from lcd.analyses.family_settings import FamilySettings

UNEVEN = FamilySettings(approximations=False, concentration=0.01, draws=2000)


@pytest.fixture
def frame() -> pd.DataFrame:
    return family_curves("cart", NAMES, scores(0.45, 0.55))


def test_each_of_five_distributions_weighs_the_points_anew(frame):
    table = told(frame, FamilySettings(approximations=False, draws=7))["families-distributions"].table
    table = table.set_index("agent")
    assert [name for name in table if "_" not in name] == ["family", "D1", "D2", "D3", "D4", "D5"]
    best = frame[(frame["step"] == frame["step"].max())]
    means = best.groupby(["agent", "context"])["return_mean"].mean().unstack().loc[table.index] / 500
    np.testing.assert_allclose(table["family"], means.mean(axis=1))
    for name in ("D1", "D5"):
        assert (means.min(axis=1) < table[name]).all()
        assert (table[name] < means.max(axis=1)).all()
    assert table["D1"].tolist() != table["D2"].tolist()
    # All seeds of a method lie as far apart everywhere, and so the interval is the same under every distribution.
    assert (table["D3_high"] - table["D3_low"]).tolist() == pytest.approx(
        (table["family_high"] - table["family_low"]).tolist()
    )


def test_they_are_the_same_ones_however_many_are_drawn(frame):
    few, many = (told(frame, FamilySettings(approximations=False, draws=draws)) for draws in (5, 500))
    pd.testing.assert_frame_equal(few["families-distributions"].table, many["families-distributions"].table)


def test_what_is_said_of_orders_is_what_the_table_has(frame):
    found = told(frame, UNEVEN)["families-distributions"]
    table = found.table.set_index("agent")
    other = [name for name in ("D1", "D2", "D3", "D4", "D5") if table.loc["a", name] > table.loc["b", name]]
    assert other
    (said,) = found.says
    assert [name for name in ("D1", "D2", "D3", "D4", "D5") if f"{name} " in said or f"{name}," in said] == other
    # A distribution of about one point: the share of the points, by weight, on which the order is another one.
    behind = told(frame, UNEVEN)["families-pairs"].table.iloc[0]["behind, points %"]
    assert float(said.rpartition("under ")[2].removesuffix(" %.")) == pytest.approx(behind, abs=5)


def test_delays_are_ranked_the_other_way_round(frame):
    down = FamilySettings(approximations=False, higher_is_better=False, concentration=0.01, draws=2000)
    table = told(frame, down)["families-distributions"].table
    assert table["agent"].tolist() == ["a", "b"]
    (said,) = told(frame, down)["families-distributions"].says
    (as_usual,) = told(frame, UNEVEN)["families-distributions"].says
    assert said.rpartition("under ")[2] == as_usual.rpartition("under ")[2]
