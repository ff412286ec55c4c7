"""How much longer to train at the floor: against parabolas whose area is known, and what seeds leave open."""

import math

import numpy as np
import pandas as pd
import pytest

from lcd.scores.diagnosis import diagnose_curves
from lcd.scores.leaving_floor import floor_sentences, steps_to_leave_the_floor
from tests.shared.curve_sets import study

GRID = np.linspace(0, 1000, 11)


def test_a_straight_line_is_prolonged_exactly():
    # The area under s·x up to X is s·X/2, which is the floor at X = 2·floor/s.
    slopes = {0: 2e-5, 1: 4e-5}
    found = steps_to_leave_the_floor({seed: (GRID, slope * GRID) for seed, slope in slopes.items()}, 0.05)
    assert found.steps == pytest.approx(2 * 0.05 / 3e-5)
    # Two seeds drawn anew are both the slow one, or both the fast one, in a quarter of draws each.
    assert found.low == pytest.approx(2 * 0.05 / 4e-5)
    assert found.high == pytest.approx(2 * 0.05 / 2e-5)


def test_only_the_last_half_is_prolonged():
    late = np.where(GRID < 500, 0.0, 1e-4 * (GRID - 500))
    found = steps_to_leave_the_floor({0: (GRID, late)}, 0.05)
    # 1e-4·(X − 500)²/2 = .05·X
    assert 1e-4 * (found.steps - 500) ** 2 / 2 == pytest.approx(0.05 * found.steps)
    assert math.isnan(found.low)


@pytest.mark.parametrize("values", [np.zeros(11), 0.04 - 3e-5 * GRID, np.full(11, 0.04)])
def test_what_does_not_rise_has_no_forecast(values):
    assert math.isinf(steps_to_leave_the_floor({0: (GRID, values), 1: (GRID, values)}, 0.05).steps)


def test_the_sentence_names_the_condition_that_leaves_first():
    flat = study({"toy/flat": (0.0,) * 6}, seeds=2)
    rows = []
    for view, slope in (("pixels", 1e-5), ("semantic", 4e-5)):
        for seed in (0, 1):
            known = {"task": "toy/rising", "view": view, "reward_p": 1.0, "seed": seed, "r_min": 0.0, "r_max": 1.0}
            rows.append(pd.DataFrame(known | {"step": GRID, "return_mean": slope * GRID * (1 + 0.01 * seed)}))
    told = floor_sentences(diagnose_curves(pd.concat([flat, *rows])))
    assert len(told) == 2
    # Three points are too few to say anything of the flat one but that it does not rise.
    assert "toy/flat" in told[0]
    assert "do not rise" in told[0]
    assert "semantic leaves it after about 2,488 steps, 2.5 times the 1,000" in told[1]


def test_the_sentence_names_the_front_end_and_the_shaping_that_it_is_about():
    parts = [study({"toy/flat": (0.0,) * 6}, seeds=2, frontend=name, shaping="lanes") for name in ("identity", "mine")]
    told = floor_sentences(diagnose_curves(pd.concat(parts)))
    assert [sentence.partition(" is at")[0] for sentence in told] == [
        "toy/flat (unknown, shaping lanes)",
        "toy/flat (unknown, front-end mine, shaping lanes)",
    ]
