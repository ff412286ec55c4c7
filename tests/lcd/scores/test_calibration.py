"""Recovery and cross-talk of curves whose hardness is known by construction."""

import io
import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lcd.analyses import Evidence
from lcd.analyses.known_hardness import recovery
from lcd.envs.calibration import CALIBRATION, Truth
from lcd.envs.drawn_tasks import DRAWN
from lcd.report.calibration_figures import calibration_figure, calibration_table
from lcd.scores.calibration import MEASURES, ground_truth
from lcd.scores.contrasts import COMPARED
from lcd.scores.diagnosis import Diagnosis, diagnose_curves
from lcd.statistics.rank_correlation import spearman

MOST = math.sqrt(1 - 4 * (4**3 - 4) / (16**3 - 16))
"""The greatest Spearman correlation with four levels of four tasks each: .970."""


def grid(make_study, seeds=5, noise=0.0, **columns):
    """Pixels lose with the perceptual level, thinned rewards with the RL level; nothing else happens."""
    tasks = {}
    for task, truth in CALIBRATION.truth.items():
        by_p = [0.9 - 0.1 * truth.reward * stretch for stretch in (1.0, 1.3, 1.7, 2.2)]
        solved = by_p[0]
        tasks[task] = (solved * (1 - 0.2 * truth.perception), solved, solved, *by_p[1:])
    return make_study(tasks, seeds, noise, benchmark="calibration", **columns).drop(columns=["r_min", "r_max"])


@pytest.fixture
def ranged(monkeypatch):
    """Curves of returns from 0 to 1, whatever the toys' own range."""
    monkeypatch.setattr(type(CALIBRATION), "reward_range", lambda self, task, seed, **knobs: (0.0, 1.0))


def test_spearman_is_scipys():
    rng = np.random.default_rng(0)
    levels = np.repeat(np.arange(4.0), 4)
    scores = rng.normal(size=(5, 16)).round(1)
    expected = [stats.spearmanr(row, levels).statistic for row in scores]
    np.testing.assert_allclose(spearman(scores, levels), expected)
    assert math.isnan(spearman(np.ones(16), levels))


def test_a_perfect_grid_is_recovered_as_far_as_ties_allow(make_study, ranged):
    rng = np.random.default_rng(0)
    curves = grid(make_study)
    # What breaks the ties must not follow the other dial.
    jitter = {task: rng.normal(0, 1e-4) for task in CALIBRATION.tasks}
    curves["return_mean"] += curves["task"].map(jitter)
    found = diagnose_curves(curves).calibration
    assert set(found) == {"paper", "calibrated", "samples", "truths"}
    assert found["truths"] == {"value": pytest.approx(0), "tasks": 16}
    assert all(list(found[name]) == list(MEASURES) for name in COMPARED)
    # These lines begin at four fifths of their height: what they tell in samples is another test's.
    for measures in (found["paper"], found["calibrated"]):
        assert measures["phi_recovery"]["value"] == pytest.approx(MOST, abs=0.02)
        assert abs(measures["phi_crosstalk"]["value"]) < 0.25
    assert found["calibrated"]["psi_recovery"]["value"] == pytest.approx(MOST, abs=1e-3)
    assert abs(found["calibrated"]["psi_crosstalk"]["value"]) < 0.25


def test_noise_of_seeds_widens_the_intervals(make_study, ranged):
    def width(noise):
        found = diagnose_curves(grid(make_study, noise=noise)).calibration["calibrated"]["psi_recovery"]
        assert -1 <= found["low"] <= found["value"] <= found["high"] <= 1
        return found["high"] - found["low"]

    assert width(0.15) > width(0.02)


def test_noise_of_seeds_lowers_the_ceiling(make_study, ranged):
    found = [diagnose_curves(grid(make_study, noise=noise)).calibration["calibrated"] for noise in (0.001, 0.3)]
    quiet, noisy = (each["psi_recovery"] for each in found)
    assert quiet["ceiling"] > 0.97  # equal tasks stay in any order
    assert noisy["ceiling"] < quiet["ceiling"] - 0.02
    assert found[1]["psi_crosstalk"]["ceiling"] == noisy["ceiling"]
    assert noisy["partial"] == pytest.approx(noisy["value"], abs=0.1)  # the kinds of hardness are not correlated


def test_where_one_kind_of_hardness_is_not_known_the_other_is_judged(make_study, ranged, monkeypatch):
    curves = grid(make_study, seeds=2)
    known = {task: Truth(math.nan, truth.reward) for task, truth in CALIBRATION.truth.items()}
    monkeypatch.setattr(type(CALIBRATION), "truth", known)
    diagnosis = diagnose_curves(curves)
    assert set(diagnosis.calibration) == {"paper", "calibrated", "samples"}
    assert list(diagnosis.calibration["calibrated"]) == ["psi_recovery", "phi_crosstalk"]
    assert diagnosis.calibration["calibrated"]["psi_recovery"]["value"] == pytest.approx(1)  # equal where levels are
    assert "partial" not in diagnosis.calibration["calibrated"]["psi_recovery"]
    assert [column.header for column in calibration_table(diagnosis).columns] == [
        *("definition", "ψ with RL level", "at best", "φ with RL level")
    ]
    calibration_figure(diagnosis, "calibrated").savefig(io.BytesIO())


def test_tasks_without_a_score_are_left_out_and_counted(make_study, ranged):
    curves = grid(make_study)
    lost = curves["task"] == CALIBRATION.tasks[-1]
    curves.loc[lost, "return_mean"] = 0.0
    found = diagnose_curves(curves).calibration
    # The paper scores every task, ours only what can be told: φ of what nobody learned cannot.
    assert found["paper"]["psi_recovery"]["tasks"] == 16
    assert found["calibrated"]["psi_recovery"]["tasks"] == 16
    assert found["calibrated"]["phi_recovery"]["tasks"] == 15


def test_the_truth_and_the_outcome_are_in_the_json_and_come_back(make_study, ranged, tmp_path):
    diagnosis = diagnose_curves(grid(make_study, noise=0.05))
    content = json.loads(diagnosis.to_json())
    for definition in ("paper", "calibrated"):
        for measure in ("phi_recovery", "psi_recovery", "phi_crosstalk", "psi_crosstalk"):
            assert {"value", "low", "high"} <= set(content["calibration"][definition][measure])
    levels = {row["task"]: (row["perception_level"], row["reward_level"]) for row in content["tasks"]}
    assert levels == {task: (truth.perception, truth.reward) for task, truth in CALIBRATION.truth.items()}
    back = Diagnosis.from_json(diagnosis.to_json())
    assert back.calibration == diagnosis.calibration
    assert [figure.name for figure in recovery(Evidence(back)).figures] == [
        "calibration-paper",
        "calibration-calibrated",
        "calibration-samples",
    ]
    assert calibration_table(back).row_count == 3


def test_each_group_is_calibrated_for_itself(make_study, ranged):
    both = pd.concat([grid(make_study, agent="ppo"), grid(make_study, agent="ppg")])
    found = diagnose_curves(both).calibration
    assert [entry["group"]["agent"] for entry in found["groups"]] == ["ppg", "ppo"]
    assert found["paper"] == found["groups"][0]["paper"]


def test_other_benchmarks_have_no_calibration_and_no_name_is_imported(curves):
    assert diagnose_curves(curves).calibration == {}
    assert math.isnan(ground_truth("os:system", "x")["perception_level"])
    assert math.isnan(ground_truth("calibration", "calibration/other")["perception_level"])


def test_measured_levels_are_real_numbers_and_are_drawn_as_such(make_study, monkeypatch):
    monkeypatch.setattr(type(DRAWN), "reward_range", lambda self, task, seed, **knobs: (0.0, 1.0))
    tasks = {}
    for task, truth in DRAWN.truth.items():
        by_p = [0.95 - truth.reward * stretch / 40 for stretch in (1.0, 1.3, 1.7, 2.2)]
        tasks[task] = (by_p[0] * (1 - truth.perception / 10), by_p[0], *by_p)
    curves = make_study(tasks, 2, 0.0, benchmark="calibration-drawn").drop(columns=["r_min", "r_max"])
    diagnosis = diagnose_curves(curves)
    found = diagnosis.calibration["calibrated"]
    assert found["phi_recovery"]["value"] == found["psi_recovery"]["value"] == pytest.approx(1)
    truths = diagnosis.calibration["truths"]["value"]
    assert found["phi_crosstalk"]["value"] == found["psi_crosstalk"]["value"] == pytest.approx(truths)
    assert found["phi_recovery"]["partial"] == pytest.approx(1)
    calibration_figure(diagnosis, "calibrated").savefig(io.BytesIO())
