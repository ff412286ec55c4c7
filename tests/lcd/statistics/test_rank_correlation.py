"""Spearman's correlation, partial ones, and the ceiling of simulated scores whose truth is known."""

import math

import numpy as np
import pytest
from scipy import stats

from lcd.statistics.rank_correlation import ceiling, partial, spearman, spearman_brown


def test_spearman_is_scipys_row_by_row():
    rng = np.random.default_rng(0)
    scores, levels = rng.normal(size=(2, 5, 16)).round(1)
    expected = [stats.spearmanr(row, other).statistic for row, other in zip(scores, levels, strict=True)]
    np.testing.assert_allclose(spearman(scores, levels), expected)
    assert math.isnan(spearman(np.ones(16), levels[0]))


def test_a_partial_correlation_is_that_of_residuals():
    rng = np.random.default_rng(1)
    third = rng.normal(size=200)
    one, two = third + rng.normal(size=(2, 200))
    left = [each - np.polyval(np.polyfit(third, each, 1), third) for each in (one, two)]
    given = partial(*(np.corrcoef(*pair)[0, 1] for pair in ((one, two), (one, third), (two, third))))
    assert given == pytest.approx(np.corrcoef(*left)[0, 1])
    assert math.isnan(partial(0.5, 1.0, 0.5))


def test_twice_the_seeds_agree_as_spearman_and_brown_say():
    assert spearman_brown(0.5, 2) == pytest.approx(2 / 3)
    assert spearman_brown(0.8, 1) == pytest.approx(0.8)


@pytest.mark.parametrize("noise", [0.3, 1.0, 3.0])
def test_the_ceiling_is_the_correlation_that_scores_have_with_a_known_truth(noise):
    """24 tasks of 8 seeds, 300 times: what the ceiling foretells is what a right truth is recovered by."""
    rng = np.random.default_rng(2)
    reached, foretold = [], []
    for _ in range(300):
        truth = rng.normal(size=24)
        seeds = truth[:, None] + noise * rng.normal(size=(24, 8))
        reached.append(spearman(seeds.mean(1), truth))
        halves = [rng.permutation(8) for _ in range(20)]
        first, second = (
            np.array([seeds[:, half[part]].mean(1) for half in halves]) for part in (slice(4), slice(4, 8))
        )
        foretold.append(ceiling(first, second, 2))
    assert np.mean(foretold) == pytest.approx(np.mean(reached), abs=0.03)


def test_tasks_without_a_score_in_both_halves_do_not_count():
    rng = np.random.default_rng(3)
    first = rng.normal(size=(4, 10))
    second = first.copy()
    second[:, 0] = np.nan
    assert ceiling(first, second, 2) == pytest.approx(1)
    assert ceiling(first, -first, 2) == 0
    assert math.isnan(ceiling(first[:, :2], first[:, :2], 2))
    assert math.isnan(ceiling(np.full((4, 10), np.nan), first, 2))
