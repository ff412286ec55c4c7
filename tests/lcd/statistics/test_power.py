import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lcd.statistics.power import power_of, seeds_needed, tell_apart


@pytest.mark.parametrize(("effect", "seeds"), [(0.5, 34), (1.0, 10), (0.2, 199)])
def test_seeds_are_those_of_the_tables(effect, seeds):
    """Cohen (1988) and every calculator of power: one-sample t, two-sided .05, power .8."""
    assert seeds_needed(effect) == seeds


def test_many_seeds_follow_the_normal_formula():
    closed = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) ** 2 / 0.05**2
    assert seeds_needed(0.05) == pytest.approx(closed, rel=0.005)


def test_power_is_how_often_the_test_finds_it():
    values = np.random.default_rng(0).normal(0.9, 1, (20_000, 7))
    found = stats.ttest_1samp(values, 0, axis=1).pvalue < 0.05
    assert power_of(7, 0.9) == pytest.approx(found.mean(), abs=0.01)


def test_what_is_not_there_is_never_found():
    assert math.isinf(seeds_needed(0.0))
    assert math.isinf(seeds_needed(1e-4))
    assert power_of(1, 3.0) == 0
    assert seeds_needed(50.0) == 2


def noisy(make_curve, levels, seeds, noise, rng):
    """Curves of tasks whose pixels' AUC is known and the other conditions' is .8."""
    rows = []
    for task, level in levels.items():
        for condition in ("pixels", "figure_ground", "semantic", "p0.75", "p0.5", "p0.25"):
            for seed in range(seeds):
                area = (level if condition == "pixels" else 0.8) + rng.normal(0, noise)
                rows += make_curve(area, task=task, condition=condition, seed=seed)
    return pd.DataFrame(rows)


def test_the_studys_own_variance_says_how_many_seeds(make_curve):
    """φ = 1 - P/.8 of two tasks: the difference's deviation a seed follows from the noise by the delta method."""
    noise, levels = 0.1, {"a": 0.5, "b": 0.4}
    curves = noisy(make_curve, levels, 200, noise, np.random.default_rng(0))
    row = tell_apart(curves, "calibrated").set_index("score").loc["phi"]
    variance = sum((noise / 0.8) ** 2 + (level * noise / 0.8**2) ** 2 / 2 for level in levels.values())
    expected = seeds_needed(0.125 / math.sqrt(variance))
    assert row["difference"] == pytest.approx(-0.125, abs=0.03)
    assert row["seeds_needed"] == pytest.approx(expected, rel=0.3)
    assert row["power"] > 0.99
    assert row["seeds"] == 200


def test_steps_count_where_tasks_differ_early_only(make_curve):
    """One task learns at once and one in the second half; told at a quarter of the steps as well as at the end."""
    rng, rows = np.random.default_rng(1), []
    for task, early in (("slow", 0.0), ("fast", 1.0)):
        for p in (1, 0.75, 0.5, 0.25):
            for seed in range(5):
                for step, height in ((0, early), (500, early), (1000, 0.9)):
                    value = height + rng.normal(0, 0.02)
                    rows.append(
                        {
                            "task": task,
                            "view": "semantic",
                            "reward_p": p,
                            "seed": seed,
                            "step": step,
                            "return_mean": value,
                            "r_min": 0,
                            "r_max": 1,
                        }
                    )
    row = tell_apart(pd.DataFrame(rows), "calibrated").iloc[0]
    assert row["score"] == "psi"
    assert row["steps_needed"] == row["best_steps"] == 250
    assert row["best_seeds"] <= 5


def test_single_seeds_and_missing_scores_have_no_rows(make_study):
    assert tell_apart(make_study({"a": (0.3, 0.5, 0.7, 0.6, 0.5, 0.4), "b": (0.5,) * 6}, 1)).empty
