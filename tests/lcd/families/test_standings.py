from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata

from lcd.envs.errors import InputError
from lcd.families.prevalence import random_distributions
from lcd.families.profiles import dominance, profile
from lcd.families.standings import leads, rank_shares, rank_shares_of_choices

RNG = np.random.default_rng(11)


def by_hand(performances: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Shares of ranks, one case after the other: who ties takes each of the tied ranks in equal parts."""
    methods = performances.shape[1]
    shares = np.zeros((methods, methods))
    for case, weight in zip(performances, weights, strict=True):
        first, last = (rankdata(-case, method=how).astype(int) for how in ("min", "max"))
        for method in range(methods):
            shares[method, first[method] - 1 : last[method]] += weight / (last[method] - first[method] + 1)
    return shares / weights.sum()


@pytest.mark.parametrize("sizes", [(7,), (5, 4), (6, 3, 4), (2, 3, 2, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_rank_shares_over_every_choice_of_points_equal_those_of_enumeration(sizes, weighted):
    # Scores of few values, so that methods tie.
    tasks = [RNG.integers(0, 4, size=(4, size)).astype(float) / 3 for size in sizes]
    distributions = [RNG.dirichlet(np.ones(size)) if weighted else np.full(size, 1 / size) for size in sizes]
    choices = list(product(*(range(size) for size in sizes)))
    performances = np.array([sum(task[:, at] for task, at in zip(tasks, places, strict=True)) for places in choices])
    weights = np.array([np.prod([p[at] for p, at in zip(distributions, places, strict=True)]) for places in choices])
    found = rank_shares_of_choices(tasks, distributions if weighted else None)
    np.testing.assert_allclose(found, by_hand(performances.round(9), weights), atol=1e-12)
    np.testing.assert_allclose(found.sum(0), 1)
    np.testing.assert_allclose(rank_shares(performances, weights), found, atol=1e-12)


def test_a_task_that_would_take_for_ever_is_refused():
    with pytest.raises(InputError, match="choices of one point a task"):
        rank_shares_of_choices([RNG.normal(size=(2, 2000))] * 3)
    with pytest.raises(InputError, match="same methods on all of them"):
        rank_shares_of_choices([np.ones((2, 3)), np.ones((3, 3))])


def test_who_leads_is_counted_without_ties():
    found = leads(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [2.0, 1.0]]))
    np.testing.assert_allclose(found, [[0, 0.5], [0.25, 0]])


def test_random_distributions_shrink_towards_single_points_with_their_concentration():
    wide, narrow = (random_distributions(50, 200, RNG, each) for each in (1.0, 0.01))
    np.testing.assert_allclose(wide.sum(1), 1)
    # Of a Dirichlet distribution E Σ w² = (α + 1) / (n α + 1).
    for drawn, alpha in ((wide, 1.0), (narrow, 0.01)):
        assert (drawn**2).sum(1).mean() == pytest.approx((alpha + 1) / (50 * alpha + 1), rel=0.1)


@pytest.mark.parametrize("higher", [True, False])
def test_a_profile_is_the_share_of_what_is_at_least_as_good(higher):
    scores, p = RNG.integers(0, 5, size=(30, 3)).astype(float), RNG.dirichlet(np.ones(30))
    levels = np.linspace(-1, 5, 25)
    good = scores[..., None] >= levels if higher else scores[..., None] <= levels
    np.testing.assert_allclose(profile(scores, p, levels, higher), p @ good.mean(1), atol=1e-12)


@pytest.mark.parametrize("higher", [True, False])
def test_dominance_is_what_a_fine_grid_of_thresholds_sees(higher):
    p, levels = RNG.dirichlet(np.ones(20)), np.linspace(-3, 8, 40001)
    scores = RNG.normal(size=(20, 2))
    for others in (scores - np.abs(RNG.normal(size=(20, 2))), RNG.normal(size=(20, 2))):
        gap = profile(scores, p, levels, higher) - profile(others, p, levels, higher)
        found = dominance(scores, others, p, higher)
        assert found.holds == bool((gap > -1e-12).all() and (gap > 1e-12).any())
        assert found.against == pytest.approx(np.maximum(-gap, 0).sum() / np.abs(gap).sum(), abs=2e-3)


def test_what_is_better_when_high_is_worse_when_low():
    p = np.full(4, 0.25)
    better, worse = np.array([[1.0], [2], [3], [4]]), np.array([[0.0], [2], [2], [4]])
    assert dominance(better, worse, p).holds
    assert not dominance(better, worse, p, higher_is_better=False).holds
    assert dominance(worse, better, p, higher_is_better=False).holds
    assert np.isnan(dominance(better, better, p).against)


def test_more_choices_than_a_report_has_room_for_are_refused():
    tasks = [np.array([[0.1, 0.4], [0.3, 0.2]])] * 30
    with pytest.raises(InputError, match=r"There are 1.07e\+09 choices of one point a task, more than 2e\+07"):
        rank_shares_of_choices(tasks)
