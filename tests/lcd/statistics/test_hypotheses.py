import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from lcd.envs.errors import InputError
from lcd.statistics.hypotheses import adjust, correlation, t_test


def test_the_one_sample_test_is_students_formula():
    values = np.array([0.1, 0.4, 0.3, 0.2])
    t = values.mean() / (values.std(ddof=1) / 2)
    found = t_test(values)
    assert found.statistic == pytest.approx(t)
    assert found.p == pytest.approx(stats.t.sf(t, 3))
    assert t_test(values, alternative="less").p == pytest.approx(1 - found.p)
    assert t_test(values, alternative="two-sided").p == pytest.approx(2 * found.p)


def test_paired_values_are_their_differences_and_others_welchs():
    rng = np.random.default_rng(0)
    a, b = rng.normal(1, 1, 6), rng.normal(0, 3, 6)
    assert t_test(a, b, paired=True) == t_test(a - b)
    t = (a.mean() - b.mean()) / math.sqrt(a.var(ddof=1) / 6 + b.var(ddof=1) / 6)
    assert t_test(a, b).statistic == pytest.approx(t)
    with pytest.raises(InputError, match="paired test needs as many"):
        t_test(a, b[:3], paired=True)


def test_nothing_to_test_is_nan():
    assert math.isnan(t_test(np.array([1.0])).p)
    assert math.isnan(t_test(np.ones(4)).p)
    assert math.isnan(correlation([1, 2], [1, 2]).p)
    assert math.isnan(correlation([1, 1, 1], [1, 2, 3]).statistic)


def test_a_rank_correlation_over_three_games_has_no_value_of_point_92_and_no_small_p():
    values = {round(correlation([1, 2, 3], order).statistic, 9) for order in permutations([1, 2, 3])}
    assert values == {-1.0, -0.5, 0.5, 1.0}
    assert correlation([1, 2, 3], [4, 5, 6], alternative="greater").p == pytest.approx(1 / 6)


def test_few_pairs_have_exact_p_values_and_many_students():
    # Spearman's critical value for n = 7 at a two-sided .05 is .786 (Zar 1972).
    ranks = np.arange(7)
    by_rho = [
        (correlation(ranks, order) if number % 97 == 0 else None) for number, order in enumerate(permutations(ranks))
    ]
    for found in filter(None, by_rho):
        assert (found.p <= 0.05) == (abs(found.statistic) >= 0.786 - 5e-4)
    x = np.random.default_rng(1).normal(size=(2, 30))
    assert correlation(*x).p == pytest.approx(stats.spearmanr(*x).pvalue)
    assert correlation(*x, kind="pearson").p == pytest.approx(stats.pearsonr(*x).pvalue)


def test_missing_pairs_are_left_out():
    found = correlation([1, 2, math.nan, 4, 7], [1, 2, 3, math.nan, 5])
    assert found.samples == 3


def test_holm_by_hand_and_bonferroni():
    p = [0.01, 0.04, math.nan, 0.03]
    # Sorted .01 × 3, .03 × 2, .04 × 1, and never falling.
    np.testing.assert_allclose(adjust(p), [0.03, 0.06, math.nan, 0.06])
    np.testing.assert_allclose(adjust(p, "bonferroni"), [0.03, 0.12, math.nan, 0.09])
    assert adjust([0.9, 0.8]).max() <= 1
    with pytest.raises(InputError, match="did you mean 'holm'"):
        adjust(p, "hölm")


def test_corrections_keep_the_family_wise_error():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=(4000, 8))
    any_found = np.mean([(adjust(row) <= 0.05).any() for row in p])
    assert 0.035 < any_found < 0.06
