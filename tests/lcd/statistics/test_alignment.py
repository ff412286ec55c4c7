"""Shifts that are planted in curves of a closed form are found again, whatever hides their ends."""

import numpy as np
import pytest

from lcd.statistics.alignment import (
    BINS,
    SPAN,
    Shift,
    bin_centres,
    bin_edges,
    binned,
    mean_shift,
    passing,
    returns_that_matter,
    shift_between,
)

LAST = 2.0**14
STEPS = np.concatenate([[0.0], np.geomspace(1, LAST, 300)])


def rising(log_steps):
    """f: from 0 to 1 over about four doublings."""
    return 1 / (1 + np.exp(-1.5 * log_steps))


def curve(delay, steps=STEPS, height=1.0):
    """f(log₂ t − delay)."""
    with np.errstate(divide="ignore"):
        return height * rising(np.log2(steps) - delay)


def passings(curves, grids=None, first=1.0):
    """When each of several curves passes the returns that matter."""
    grids = grids or [STEPS] * len(curves)
    edges = bin_edges(first, LAST)
    profiles = np.array([binned(*each, edges) for each in zip(grids, curves, strict=True)])
    returns = returns_that_matter(profiles, np.array([each[0] for each in curves]))
    return [passing(profile, returns, bin_centres(edges)) for profile in profiles]


def shift(slow, fast, **given):
    found = passings([slow, fast], **given)
    return shift_between(*found)


@pytest.mark.parametrize("planted", [-4.0, -1.3, 0.0, 0.5, 2.0, 4.7])
def test_a_planted_shift_is_found(planted):
    found = shift(curve(5 + planted), curve(5))
    assert found.value == pytest.approx(planted, abs=0.01)
    assert found.open == 0


@pytest.mark.parametrize("planted", [8.0, 9.0, 9.5])
def test_a_curve_that_is_cut_off_by_the_budget_has_the_whole_shift(planted):
    """At 9 it ends at half of the other's height: what it does not reach bounds the shift, and does not lower it."""
    assert curve(5 + planted)[-1] < SPAN[1]
    assert shift(curve(5 + planted), curve(5)).value == pytest.approx(planted, abs=0.01)


def test_a_curve_that_never_leaves_the_floor_gives_a_bound():
    found = shift(np.zeros(len(STEPS)), curve(5))
    passed_first = 5 + np.log2(SPAN[0] / (1 - SPAN[0])) / 1.5 * np.log(2)
    assert found.open == 1
    assert found.value == pytest.approx(np.log2(LAST) - passed_first, abs=0.2)
    back = shift(curve(5), np.zeros(len(STEPS)))
    assert (back.open, back.value) == (-1, -found.value)


def test_a_return_that_is_passed_before_the_first_evaluation_bounds_the_shift_alone():
    steps = np.concatenate([[0.0], np.linspace(LAST / 16, LAST, 16)])
    slow, fast = curve(12, steps), curve(0, steps)
    found = shift(slow, fast, grids=[steps, steps], first=steps[1])
    assert found.open == 1
    assert 1 < found.value < 12


def test_curves_that_are_above_from_the_first_evaluation_on_cannot_be_told_apart():
    steps = np.concatenate([[0.0], np.linspace(LAST / 16, LAST, 16)])
    found = shift(curve(0, steps), curve(-2, steps), grids=[steps, steps], first=steps[1])
    assert np.isnan(found.value)


def test_curves_that_never_rise_say_nothing():
    assert np.isnan(shift(np.zeros(len(STEPS)), np.zeros(len(STEPS))).value)


def test_factors_turn_round_and_multiply_along_a_chain():
    first, second, third = passings([curve(4), curve(6.5), curve(7, height=0.97)])
    there, back = shift_between(first, third).value, shift_between(third, first).value
    assert there == pytest.approx(-back)
    by_way = shift_between(first, second).value + shift_between(second, third).value
    assert by_way == pytest.approx(there, abs=1e-9)


def test_returns_in_other_units_change_nothing():
    noise = np.random.default_rng(0).normal(0, 0.03, (2, len(STEPS)))
    slow, fast = curve(7) + noise[0], curve(5) + noise[1]
    assert shift(300 * slow - 40, 300 * fast - 40).value == pytest.approx(shift(slow, fast).value)


def test_evaluations_at_other_steps_change_little():
    even = np.linspace(0, LAST, 400)
    found = shift(curve(10), curve(8, even), grids=[STEPS, even], first=even[1])
    assert found.value == pytest.approx(2, abs=0.05)


def test_noise_that_makes_curves_fall_does_not_move_them():
    rng = np.random.default_rng(1)
    found = [shift(*(curve(delay) + rng.normal(0, 0.1, len(STEPS)) for delay in (8, 5))).value for _ in range(20)]
    assert np.mean(found) == pytest.approx(3, abs=0.1)


def test_it_is_what_trying_all_shifts_finds():
    """The least sum of squared distances to what each return leaves open, by trying."""
    rng = np.random.default_rng(2)
    for cut in (0.3, 0.6, 1.0):
        slow, fast = passings([curve(11, height=cut) + rng.normal(0, 0.03, len(STEPS)), curve(5)])
        low, high = slow.earliest - fast.latest, slow.latest - fast.earliest
        tried = np.linspace(0, 10, 20_001)[:, None]
        nearest = np.clip(tried, low, high)
        best = tried[((tried - nearest) ** 2).sum(1).argmin(), 0]
        found = shift_between(slow, fast)
        assert found.open == 0
        assert found.value == pytest.approx(best, abs=2e-3)


def test_many_at_once_are_each_alone():
    rng = np.random.default_rng(3)
    profiles = np.sort(rng.random((50, 2, BINS)), axis=-1) * rng.uniform(0.1, 1, (50, 2, 1))
    starts, centres = np.zeros((50, 2)), np.linspace(3, 14, BINS)
    returns = returns_that_matter(profiles, starts)
    together = shift_between(*(passing(profiles[:, each], returns, centres) for each in range(2)))
    for place in range(50):
        mine = returns_that_matter(profiles[place], starts[place])
        alone = shift_between(*(passing(profiles[place, each], mine, centres) for each in range(2)))
        assert alone.least == pytest.approx(together.least[place], abs=1e-9)
        assert alone.most == pytest.approx(together.most[place], abs=1e-9)


def test_bins_are_means_of_the_line_between_evaluations():
    edges = np.array([1.0, 2.0, 6.0])
    assert binned(np.array([0.0, 4.0, 8.0]), np.array([0.0, 4.0, 0.0]), edges) == pytest.approx([1.5, 3])


def test_a_mean_of_shifts_is_a_bound_where_one_is_and_leaves_out_what_nothing_is_known_of():
    known, bound = Shift(np.array(1.0), np.array(1.0)), Shift(np.array(3.0), np.array(np.inf))
    nothing = Shift(np.array(-np.inf), np.array(np.inf))
    both = mean_shift([known, bound])
    assert (both.value, both.open) == (2, 1)
    assert mean_shift([known, nothing]).value == 1
    assert np.isnan(mean_shift([nothing, nothing]).value)
