"""φ and ψ over the points of a family."""

import pandas as pd
import pytest
from curve_sets import TASKS, study
from family_curves import GRID, NAMES

from lcd.analyses import Evidence
from lcd.analyses.family_scores import challenges_over_families
from lcd.curves.names import evaluated_name
from lcd.envs.families.family import Family
from lcd.scores.diagnosis import diagnose_curves


def test_phi_of_points_is_that_of_the_same_curves_as_a_task():
    plain = study(dict(list(TASKS.items())[:1]), seeds=4, noise=0.02)
    task = plain["task"].iloc[0]
    parts = [plain.assign(context=name, trained_on=evaluated_name(task, name)) for name in NAMES[:3]]
    evidence = Evidence(diagnose_curves(pd.concat([plain.assign(context="", trained_on=task), *parts])))
    found = challenges_over_families(evidence).table
    alone = diagnose_curves(plain).table.iloc[0]
    for sign, name in (("φ", "phi"), ("ψ", "psi")):
        row = found[found["score"] == sign].iloc[0]
        assert row["family"] == pytest.approx(alone[f"{name}_raw"])
        assert row["default"] == pytest.approx(alone[f"{name}_raw"])
        assert row["family_high"] - row["family"] == pytest.approx(
            alone[f"{name}_raw_high"] - alone[f"{name}_raw"], rel=0.25
        )


def test_phi_over_the_family_counts_a_default_that_is_one_of_its_points(monkeypatch):
    tasks = list(TASKS.items())[1:3]
    points, default = (study({tasks[0][0]: areas}, seeds=4, noise=0.02) for _, areas in tasks)
    task = tasks[0][0]
    family = Family(GRID.points[:4], GRID.points[3])
    monkeypatch.setattr("lcd.families.weights.known_family", lambda benchmark, name: family)
    parts = [points.assign(context=name, trained_on=evaluated_name(task, name)) for name in NAMES[:3]]
    found = challenges_over_families(Evidence(diagnose_curves(pd.concat([default, *parts])))).table
    of_points, of_default = (diagnose_curves(each).table.iloc[0] for each in (points, default))
    for sign, name in (("φ", "phi_raw"), ("ψ", "psi_raw")):
        row = found[found["score"] == sign].iloc[0]
        assert row["points"] == "4"
        assert row["default"] == pytest.approx(of_default[name])
        assert row["family"] == pytest.approx((3 * of_points[name] + of_default[name]) / 4)
        assert abs(of_points[name] - of_default[name]) > 0.01


def test_one_agent_a_point_has_a_mean_over_the_family_and_no_interval():
    plain = study(dict(list(TASKS.items())[:1]), seeds=2, noise=0.02)
    task = plain["task"].iloc[0]
    parts = [
        plain[plain["seed"] == place % 2].assign(context=name, trained_on=evaluated_name(task, name))
        for place, name in enumerate(NAMES[:3])
    ]
    told = challenges_over_families(Evidence(diagnose_curves(pd.concat([plain, *parts]))))
    assert told.table["family"].notna().all()
    assert told.table["family_low"].isna().all()
    assert len(told.says) == 2
    assert "nan" not in " ".join(told.says)
