"""Scores in samples: φ and ψ as factors in steps, contrasts of a study's own, statuses, and how a reader meets them."""

import math

import numpy as np
import pandas as pd
import pytest

from lcd.analyses.analysis import Evidence
from lcd.analyses.samples import SamplesSettings, in_samples
from lcd.envs.benchmarks import get_benchmark
from lcd.report.page import write_report
from lcd.report.terminal import terminal_table
from lcd.scores.asked_contrasts import parse_contrasts
from lcd.scores.diagnosis import Diagnosis, diagnose_curves
from lcd.scores.factors import factor_text

STEPS = np.linspace(0, 100_000, 51)
CONDITIONS = {
    "pixels": ("pixels", 1.0), "figure_ground": ("figure_ground", 1.0), "semantic": ("semantic", 1.0),
    "p0.75": ("semantic", 0.75), "p0.5": ("semantic", 0.5), "p0.25": ("semantic", 0.25),
}  # fmt: skip
DELAYS = dict(zip(CONDITIONS, (14.0, 12.0, 12.0, 12.4, 13.0, 14.0), strict=True))
"""Log₂ steps at which half is learned: four times as many from pixels, and at p = .25."""


def task(name="x/a", delays=DELAYS, seeds=5, noise=0.02, **columns):
    """Curves f(log₂ t − delay) of each condition; a delay of infinity is the floor."""
    rng = np.random.default_rng(len(name))
    rows = []
    for condition, delay in delays.items():
        view, p = CONDITIONS[condition]
        for seed in range(seeds):
            with np.errstate(divide="ignore"):
                heights = 0.8 / (1 + np.exp(-1.5 * (np.log2(STEPS) - delay - rng.normal(0, 0.2))))
            shared = {"task": name, "view": view, "reward_p": p, "seed": seed, "r_min": 0, "r_max": 1} | columns
            heights = heights + rng.normal(0, noise, len(STEPS))
            rows += [shared | {"step": step, "return_mean": value} for step, value in zip(STEPS, heights, strict=True)]
    return pd.DataFrame(rows)


def test_phi_and_psi_in_samples_are_the_planted_factors():
    (row,) = diagnose_curves(task()).table.to_dict("records")
    for score in ("phi_samples", "psi_samples"):
        assert row[score] == pytest.approx(2, abs=0.3)
        assert row[f"{score}_low"] < 2 < row[f"{score}_high"]
        assert row[f"{score}_status"] == "ok"
    assert factor_text(row, "psi_samples").startswith("×")


def test_what_is_never_learned_from_pixels_needs_at_least_that_many_steps():
    table = diagnose_curves(task(delays=DELAYS | {"pixels": math.inf}), definition="paper").table
    (row,) = table.to_dict("records")
    assert row["phi_samples_status"] == "at_least"
    assert row["phi_samples_high"] == math.inf
    assert row["phi_samples_low"] < row["phi_samples"] < np.log2(100_000 / 2000)
    assert factor_text(row, "phi_samples").startswith("at least ×")
    # By the paper φ divides by next to nothing there, and says how little that is.
    assert row["phi_paper"] > 10
    assert row["status"] == "no_pixels_signal"


def test_nothing_learned_and_nothing_trained_have_their_statuses():
    floor = diagnose_curves(task(delays=dict.fromkeys(CONDITIONS, math.inf), noise=0.001)).table.iloc[0]
    assert (floor["phi_samples_status"], floor["psi_samples_status"]) == ("floor", "floor")
    views = diagnose_curves(task(delays={name: DELAYS[name] for name in list(DELAYS)[:3]})).table.iloc[0]
    assert (views["phi_samples_status"], views["psi_samples_status"]) == ("ok", "missing_p")
    assert math.isnan(views["psi_samples"])


def test_areas_are_what_they_were_and_json_keeps_the_factors():
    curves = task()
    diagnosis = diagnose_curves(curves)
    back = Diagnosis.from_json(diagnosis.to_json())
    assert back.table.loc[0, "phi_samples"] == diagnosis.table.loc[0, "phi_samples"]
    assert back.table.loc[0, "phi_samples_status"] == "ok"
    assert "samples" not in (diagnosis.definition, *back.calibration)


def test_one_seed_has_a_factor_and_no_interval():
    row = diagnose_curves(task(seeds=1)).table.iloc[0]
    assert row["psi_samples"] == pytest.approx(2, abs=0.6)
    assert math.isnan(row["psi_samples_low"])
    assert "[" not in factor_text(row, "psi_samples")


def test_a_contrast_of_a_study_may_be_scored_in_samples():
    frames = [
        task(f"x/a[delay={delay}]", {"semantic": at}, task=f"x/a[delay={delay}]")
        for delay, at in {0: 11.5, 2: 12.5, 4: 14.5}.items()
    ]
    frames += [task(f"x/b[delay={delay}]", {"semantic": at}) for delay, at in {0: 12.0, 2: 12.0, 4: math.inf}.items()]
    delay = {"name": "delay", "axis": "knobs.delay", "baseline": 0, "variants": [2, 4]}
    for formula, expected in {"samples_added": 2, "samples_saved": -2, "samples_to_last": 3}.items():
        diagnosis = diagnose_curves(pd.concat(frames), contrasts=parse_contrasts([delay | {"formula": formula}]))
        first, second = diagnosis.table.to_dict("records")
        assert first["delay_raw"] == pytest.approx(expected, abs=0.35)
        assert first["delay_status"] == first[f"delay_{formula}_status"] == "ok"
        assert second["delay_status"] == ("at_most" if formula == "samples_saved" else "at_least")
        assert abs(first["delay_rank"] - second["delay_rank"]) == 1
        assert undescribed_again(diagnosis) == diagnosis.table["delay_raw"].tolist()


def undescribed_again(diagnosis):
    return Diagnosis.from_json(diagnosis.to_json()).table["delay_raw"].tolist()


def test_terminal_and_report_tell_the_factors(tmp_path):
    frames = [task(), task("x/b", DELAYS | {"pixels": math.inf})]
    diagnosis = diagnose_curves(pd.concat(frames))
    page = write_report(tmp_path, diagnosis).read_text()
    assert "steps to see" in page
    assert "at least ×" in page
    told = in_samples(Evidence(diagnosis), SamplesSettings())
    assert told.table["steps to see"].tolist() == [
        factor_text(row, "phi_samples") for _, row in diagnosis.table.iterrows()
    ]
    frontends = {"name": "seen", "axis": "view", "baseline": "pixels", "variants": ["semantic"], "at": {"reward_p": 1},
                 "formula": "samples_saved"}  # fmt: skip
    of_study = diagnose_curves(pd.concat(frames), contrasts=parse_contrasts([frontends]))
    assert "seen, steps [95 %]" in [str(each.header) for each in terminal_table(of_study, 160).columns]


def test_hardness_that_multiplies_steps_does_not_cross_over(monkeypatch):
    """Perception costs a doubling a level from pixels, reward one at p = .25: neither moves the other's score."""
    benchmark = get_benchmark("calibration")
    monkeypatch.setattr(type(benchmark), "reward_range", lambda self, task, seed, **knobs: (0.0, 1.0))
    frames = []
    for name, truth in benchmark.truth.items():
        learned = 10.5 + 0.5 * truth.reward
        delays = dict.fromkeys(("figure_ground", "semantic"), learned) | {"pixels": learned + truth.perception}
        delays |= {f"p{p:g}": learned - np.log2(p) * truth.reward / 2 for p in (0.75, 0.5, 0.25)}
        rows = task(name, {each: delays[each] for each in CONDITIONS}, seeds=3, benchmark="calibration")
        frames.append(rows.drop(columns=["r_min", "r_max"]))
    found = diagnose_curves(pd.concat(frames)).calibration["samples"]
    assert found["phi_recovery"]["value"] > 0.95
    assert found["psi_recovery"]["value"] > 0.95
    assert abs(found["phi_crosstalk"]["value"]) < 0.25
    assert abs(found["psi_crosstalk"]["value"]) < 0.25


def test_a_reference_task_is_one_that_others_are_measured_against():
    slower = {name: delay + 1.5 for name, delay in DELAYS.items()}
    diagnosis = diagnose_curves(pd.concat([task(), task("x/b", slower)]))
    told = in_samples(Evidence(diagnosis), SamplesSettings(reference="x/a"))
    assert math.isnan(told.table["log₂ against"][0])
    assert told.table["log₂ against"][1] == pytest.approx(1.5, abs=0.3)
    assert told.table["steps against x/a"][0] == "–"
    strange = in_samples(Evidence(diagnosis), SamplesSettings(reference="x/aa"))
    assert "did you mean 'x/a'" in strange.says[0]
    assert len(strange.table) == 2


def test_intervals_hold_planted_shifts_with_five_and_ten_seeds():
    """Coverage of nominal 95 %, by few trials; tests/benchmarks/bench_coverage.py has many."""
    from lcd.scores.contrasts import REWARD
    from lcd.scores.scoring import samples_between

    rng = np.random.default_rng(0)
    for count in (5, 10):
        held = []
        for _ in range(60):
            curves = {}
            for name, delay in (("semantic", 11.5), ("p0.75", 11.9), ("p0.5", 12.5), ("p0.25", 13.5)):
                at = delay + rng.normal(0, 0.4, (count, 1))
                with np.errstate(divide="ignore"):
                    heights = 0.8 / (1 + np.exp(-1.2 * (np.log2(STEPS) - at)))
                noisy = heights + rng.normal(0, 0.03, heights.shape)
                curves[name] = {seed: (STEPS, noisy[seed]) for seed in range(count)}
            samples = samples_between(curves, dict.fromkeys(curves, (0.0, STEPS[-1])), "semantic", (REWARD,))
            ((_, interval),) = samples.shift_intervals().values()
            held.append(interval.low <= 2 <= interval.high)
        assert np.mean(held) >= 0.87
