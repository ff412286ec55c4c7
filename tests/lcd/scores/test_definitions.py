"""The definitions where they agree, and where the paper's fails and the calibrated one is meant not to."""

import math

import numpy as np
import pandas as pd
import pytest

from lcd.envs.errors import InputError
from lcd.scores.contrasts import PERCEPTION, REWARD, check_definition
from lcd.scores.diagnosis import Diagnosis, diagnose_curves
from lcd.scores.scoring import TaskSamples, score_columns, score_replicates

NAMES = ("pixels", "figure_ground", "semantic", "p0.75", "p0.5", "p0.25")


def score(contrast, definition, *values):
    """A contrast's score of areas in the order of `NAMES`."""
    stacked = np.stack([np.array(value, float) for value in values], axis=-1)
    of_contrast = {PERCEPTION: stacked[..., :3], REWARD: stacked[..., 2:]}[contrast]
    return contrast.formulas[definition].score(of_contrast, 0.01)


def test_by_hand():
    of = (0.2, 0.4, 0.6, 0.5, 0.3, 0.2)
    assert score(PERCEPTION, "paper", *of) == pytest.approx(1.5)
    assert score(REWARD, "paper", *of) == pytest.approx(0.4 / 3)
    assert score(PERCEPTION, "calibrated", *of) == pytest.approx(0.6)
    assert score(REWARD, "calibrated", *of) == pytest.approx(1 - 1.6 / 4)
    assert score(PERCEPTION, "gain", *of) == pytest.approx(0.3)


def test_both_phis_order_tasks_alike():
    """φ of the share lost is φ/(1 + φ) of the paper's: one rises with the other."""
    rng = np.random.default_rng(0)
    of = rng.uniform(0.05, 0.9, (6, 200))
    paper = score(PERCEPTION, "paper", *of)
    np.testing.assert_allclose(score(PERCEPTION, "calibrated", *of), paper / (1 + paper))


def learning(scale):
    """AUC of a curve that rises as 1 - exp(-t/τ) over T = 1, where thinned rewards stretch τ by 1/p."""
    x = scale / np.array([1, 1, 1, 0.75, 0.5, 0.25])[:, None]
    return 1 - x * (1 - np.exp(-1 / x))


def test_only_the_calibrated_psi_rises_with_the_time_that_learning_takes():
    times = np.geomspace(0.01, 100, 60)[None, :]
    of = learning(times)
    assert (np.diff(score(REWARD, "calibrated", *of)) > 0).all()
    change = score(REWARD, "paper", *of)
    assert change.argmax() not in (0, len(change) - 1)
    assert change[-1] < 0.02


def test_seed_noise_lifts_the_papers_psi_and_not_the_calibrated_one():
    rng = np.random.default_rng(1)
    means = 0.7 + rng.normal(0, 0.05, (6, 20_000))
    assert score(REWARD, "paper", *means).mean() > 0.04
    assert score(REWARD, "calibrated", *means).mean() == pytest.approx(0.3, abs=0.002)


def test_tasks_that_nobody_solves_are_the_hardest_to_learn(make_study):
    tasks = {"easy": (0.8, 0.8, 0.9, 0.88, 0.86, 0.8), "hard": (0.1, 0.2, 0.4, 0.3, 0.2, 0.1), "floor": (0.01,) * 6}
    curves = make_study(tasks, 3, noise=0.001)
    paper = diagnose_curves(curves, definition="paper").table.set_index("task")
    calibrated = diagnose_curves(curves, definition="calibrated").table.set_index("task")
    assert paper.loc["floor", "psi"] == 0  # the paper's ψ sees no difference where nothing is learned
    assert calibrated.loc["floor", "psi"] == 1
    assert calibrated.loc["floor", ["status", "phi_status", "psi_status"]].tolist() == ["floor", "floor", "ok"]
    assert math.isnan(calibrated.loc["floor", "phi_raw"])


def test_without_a_signal_on_pixels_everything_is_lost_there(make_study):
    tasks = {"a": (0.7, 0.7, 0.8, 0.8, 0.7, 0.6), "blind": (0.0, 0.4, 0.6, 0.5, 0.4, 0.3)}
    row = diagnose_curves(make_study(tasks, 3), definition="calibrated").table.set_index("task").loc["blind"]
    assert row["phi_raw"] == pytest.approx(1)
    assert row["phi_status"] == "ok"
    assert row["phi_paper"] == pytest.approx(50)


def test_the_headline_follows_the_definition_and_both_are_in_the_table(curves):
    paper, calibrated = (diagnose_curves(curves, definition=name) for name in ("paper", "calibrated"))
    for diagnosis in (paper, calibrated):
        for score in ("phi", "psi"):
            for end in ("", "_low", "_high"):
                headline = diagnosis.table[f"{score}_raw{end}"]
                pd.testing.assert_series_equal(
                    headline, diagnosis.table[f"{score}_{diagnosis.definition}{end}"], check_names=False
                )
    pd.testing.assert_series_equal(paper.table["phi_calibrated_low"], calibrated.table["phi_calibrated_low"])
    assert Diagnosis.from_json(calibrated.to_json()).definition == "calibrated"
    with pytest.raises(InputError, match="did you mean 'calibrated'"):
        check_definition("calibratd")


def test_ranks_begin_with_the_hardest_and_their_bounds_hold_them(curves):
    table = diagnose_curves(curves).table.set_index("task")
    assert table["phi_rank"].sort_values().index.tolist() == ["toy/perception", "toy/both", "toy/reward", "toy/easy"]
    for score in ("phi", "psi"):
        assert (table[f"{score}_rank_low"] <= table[f"{score}_rank"]).all()
        assert (table[f"{score}_rank"] <= table[f"{score}_rank_high"]).all()
    # 2.25 and 1.5 are far apart, .04 and .0375 are not.
    assert table.loc["toy/perception", ["phi_rank_low", "phi_rank_high"]].tolist() == [1, 1]
    assert table.loc["toy/easy", ["phi_rank_low", "phi_rank_high"]].tolist() == [3, 4]


def test_ranks_of_equal_tasks_span_all_places(make_study):
    rng = np.random.default_rng(0)
    rows = [make_study({f"t{n}": (0.4, 0.6, 0.7, 0.65, 0.6, 0.5)}, 8) for n in range(4)]
    frame = pd.concat(rows, ignore_index=True)
    frame["return_mean"] += rng.normal(0, 0.03, len(frame))
    table = diagnose_curves(frame).table
    assert (table["phi_rank_high"] - table["phi_rank_low"]).mean() > 1.5


def samples(seeds, offset=0.0):
    rng = np.random.default_rng(3)
    values = tuple(0.5 + offset + rng.normal(0, 0.05, len(seeds)) for _ in NAMES)
    return TaskSamples(NAMES, values, (tuple(seeds),) * len(NAMES), NAMES[2])


def test_tasks_of_the_same_seeds_are_resampled_together():
    column = score_columns().index("psi_calibrated")
    together = score_replicates({"a": samples(range(6)), "b": samples(range(6), 0.1)}, 0.01, 500)[..., column]
    apart = score_replicates({"a": samples(range(6)), "b": samples(range(1, 7), 0.1)}, 0.01, 500)[..., column]
    np.testing.assert_allclose(together[:, 0] - together[:, 1], 0.1)
    assert (apart[:, 0] - apart[:, 1]).std() > 0.003
