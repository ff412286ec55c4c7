"""Who needs more seeds: widths, classes against a scale that others set, and which conditions get them."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import stdtrit

from lcd.scores.challenge_table import KEYS
from lcd.scores.contrasts import HEADLINE, all_conditions
from lcd.scores.enough_seeds import Enough, margins, next_conditions, open_scores
from lcd.scores.hard import FROM_HALF, HardFrom
from lcd.scores.scoring import TaskSamples

NAMES = tuple(all_conditions(HEADLINE, "semantic"))
WIDTHS = {"phi": 0.2, "psi": 0.1}


def table(phi, half, status="ok", psi_half=0.01):
    """Tasks t0, t1, … with these raw φ and half widths, and a ψ that is sure."""
    rows = []
    for place, (raw, wide) in enumerate(zip(phi, half, strict=True)):
        row = dict.fromkeys(KEYS, "x") | {"task": f"t{place}"}
        for score, value, width in (("phi", raw, wide), ("psi", 0.1 * place, psi_half)):
            row |= {f"{score}_raw": value, f"{score}_raw_low": value - width, f"{score}_raw_high": value + width}
            row |= {f"{score}_status": status}
        rows.append(row)
    return pd.DataFrame(rows)


def opened(rows, enough):
    return {(key[-1], score) for key, score in open_scores(rows, enough)}


def test_width_alone_looks_at_each_score_by_itself():
    rows = table([0, 0.5, 1], [0.19, 0.21, np.nan])
    assert opened(rows, Enough(WIDTHS)) == {("t1", "phi")}
    assert opened(table([0, 1], [0.3, 0.1], psi_half=0.2), Enough(WIDTHS)) == {
        ("t0", "phi"),
        ("t0", "psi"),
        ("t1", "psi"),
    }


def test_a_class_is_sure_where_the_distance_to_the_border_is_beyond_its_interval():
    """From 0 to 1 hard begins at .5, which is as unsure as half of each end."""
    half = np.array([0.1, 0.3, 0.3, 0.1])
    rows = table([0, 0.1, 0.45, 1], half)
    found = {key[-1]: each for (key, score), each in margins(rows, Enough(WIDTHS, FROM_HALF)).items() if score == "phi"}
    border = 2 * (0.5 * 0.1) ** 2
    assert found["t1"] == pytest.approx((0.3, np.sqrt(0.4**2 - border)))
    assert found["t2"] == pytest.approx((0.3, 0.2))
    assert opened(rows, Enough(WIDTHS, FROM_HALF)) == {("t2", "phi")}
    assert opened(rows, Enough(WIDTHS)) == {("t1", "phi"), ("t2", "phi")}


def test_tasks_that_set_the_scale_go_on_while_a_class_depends_on_them():
    wide = [0.3, 0.05, 0.3]
    # The middle task's class is decided: so is that of the ends.
    assert opened(table([0, 0.1, 1], wide), Enough(WIDTHS, FROM_HALF)) == set()
    unsure = table([0, 0.45, 1], [0.3, 0.25, 0.3])
    assert opened(unsure, Enough(WIDTHS, FROM_HALF)) == {("t0", "phi"), ("t1", "phi"), ("t2", "phi")}


def test_a_score_that_a_task_lacks_keeps_nobody_waiting():
    assert opened(table([np.nan, 0.5], [np.nan, 0.1]), Enough(WIDTHS, FROM_HALF)) == set()


@pytest.mark.parametrize(
    ("rule", "raw", "expected"),
    [
        (0.25, [0.4, np.nan, 0.1, 0.9], {2: 0.75, 3: 0.25}),
        ("median", [0.4, 0.2, 0.9], {0: 1.0}),
        ("median", [0.4, np.nan, 0.1, 0.9, 0.2], {0: 0.5, 4: 0.5}),
        ("largest-gap", [0.9, 0.1, 0.3, np.nan], {2: 0.5, 0: 0.5}),
        (0.5, [0.3, np.nan], None),
    ],
)
def test_where_hard_begins_is_what_the_scaled_scores_say(rule, raw, expected):
    hard = HardFrom(phi=rule)
    found = hard.border("phi", raw)
    assert found == expected
    if found is not None:
        raw = np.array(raw)
        low, high = np.nanmin(raw), np.nanmax(raw)
        scaled = pd.DataFrame({"phi": (raw - low) / (high - low), "psi": raw})
        unscaled = sum(weight * raw[place] for place, weight in found.items())
        assert (unscaled - low) / (high - low) == pytest.approx(hard.of(scaled)["phi"])


def samples(spread, counts, shared=0.0):
    """Areas whose deviations have these spreads, exactly; `shared` is what conditions have in common."""
    rng = np.random.default_rng(0)
    means = np.array([0.4, 0.7, 0.8, 0.75, 0.6, 0.4])
    drawn = rng.normal(size=(8, 7))
    drawn = np.linalg.qr(drawn - drawn.mean(0))[0] * np.sqrt(7)
    drawn = drawn - drawn.mean(0)
    areas = means + np.array(spread) * drawn[:, :6] + shared * drawn[:, 6:]
    return TaskSamples(
        NAMES,
        tuple(areas[:count, place] for place, count in enumerate(counts)),
        tuple(tuple(range(count)) for count in counts),
        "semantic",
    )


def test_seeds_go_to_the_condition_that_the_variance_comes_from():
    calm, wild = 0.001, 0.1
    of_pixels = samples([wild, calm, calm, calm, calm, calm], [8] * 6)
    of_thinned = samples([calm, calm, calm, calm, calm, wild], [8] * 6)
    for column, found, expected in (
        ("phi_calibrated", of_pixels, "pixels"),
        ("psi_calibrated", of_thinned, "p0.25"),
    ):
        assert next_conditions(found, column, 1e-3, 10, 0.95, 0.01) == (expected,)


def test_the_fewest_conditions_that_are_expected_to_be_enough():
    """ψ is the mean of four areas: with equal spreads of s and n seeds its variance is s²/4n."""
    found, level = samples([0.1] * 6, [8] * 6), 0.95
    variance = 0.1**2 / 16 * (3 / 8 + 1 / 16)
    half = stdtrit(15, 0.975) * np.sqrt(variance)
    assert len(next_conditions(found, "psi_calibrated", 1.01 * half, 16, level, 0.01)) == 1
    assert len(next_conditions(found, "psi_calibrated", 0.99 * half, 16, level, 0.01)) == 2
    # Where nothing would be enough, most of what all of them would bring.
    assert len(next_conditions(found, "psi_calibrated", 1e-6, 16, level, 0.01)) == 4


def test_what_conditions_share_needs_the_seeds_of_all():
    """Of a difference that seeds have in common, seeds of one side alone bring less than nothing."""
    found = samples([0.001] * 6, [8] * 6, shared=0.1)
    assert set(next_conditions(found, "phi_calibrated", 1e-9, 12, 0.95, 0.01)) > {"pixels"}


def test_who_stayed_behind_catches_up():
    found = samples([0.1] * 6, [8, 8, 4, 8, 8, 8])
    assert next_conditions(found, "psi_calibrated", 1e-6, 8, 0.95, 0.01) == ("semantic",)
