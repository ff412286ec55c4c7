"""The family of intersections: both moments of table 4, and the same family from the same seed."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from scipy import stats

from lcd.envs.errors import InputError
from lcd.envs.traffic.intersections import DRAWS, FEATURES, GRIDS, built, clipped, draws, family
from lcd.envs.traffic.moments import MARGINALS, TABLE_4, Count, Lognormal, drawn

FAMILY_HASH = "023994d0edca40cb6b816ae6eb616aad20427d68839fb34ebbe66decbbbd9681"


@pytest.mark.parametrize("name", TABLE_4)
def test_every_feature_has_the_mean_and_the_deviation_of_table_4(name):
    marginal, moments = MARGINALS[name], TABLE_4[name]
    if isinstance(marginal, Count):
        probabilities, values = marginal.probabilities, np.array(marginal.values)
        assert (probabilities > 0).all()
        mean = probabilities @ values
        found = mean, np.sqrt(probabilities @ (values - mean) ** 2)
    else:
        centre, spread = marginal.log_moments
        found = stats.lognorm(s=spread, scale=np.exp(centre)).stats("mv")
        found = found[0], np.sqrt(found[1])
    assert found == pytest.approx(moments, rel=1e-9)


def test_quantiles_are_those_of_the_distribution():
    shares = np.array([1e-6, 0.01, 0.3, 0.5, 0.77, 0.999, 1 - 1e-9])
    inflow = MARGINALS["inflow"]
    centre, spread = inflow.log_moments
    assert inflow.quantiles(shares) == pytest.approx(stats.lognorm(s=spread, scale=np.exp(centre)).ppf(shares))
    lanes = MARGINALS["lanes"]
    assert lanes.quantiles(shares) == pytest.approx(
        stats.rv_discrete(values=(lanes.values, lanes.probabilities)).ppf(shares)
    )


def test_of_all_counts_with_these_moments_ours_has_the_largest_entropy():
    lanes = MARGINALS["lanes"]
    ours, values = lanes.probabilities, np.array(lanes.values)
    # Whatever leaves mass, mean and variance as they are.
    changes = np.linalg.svd(np.stack([np.ones(8), values, values**2]))[2][3:]
    for change in np.random.default_rng(0).normal(size=(50, 5)) @ changes:
        other = ours + 1e-3 * change / np.abs(change).max()
        assert stats.entropy(other) < stats.entropy(ours)


def test_no_whole_numbers_have_the_moments_of_right_turn_lanes():
    mean, deviation = TABLE_4["right_lanes"]
    assert deviation**2 + mean**2 < mean


def test_a_large_draw_has_the_moments_of_what_is_not_heavy_tailed():
    uniforms = np.random.default_rng(1).random((len(MARGINALS), 2 * 20_000))
    for name, column in drawn(uniforms).items():
        if name != "inflow":  # 94 % of its variance lies beyond one intersection in 345
            assert (column.mean(), column.std()) == pytest.approx(TABLE_4[name], rel=0.01)
    inflow = drawn(uniforms)["inflow"]
    centre, spread = MARGINALS["inflow"].log_moments
    assert (np.log(inflow).mean(), np.log(inflow).std()) == pytest.approx((centre, spread), rel=0.01)


def test_features_are_independent():
    columns = draws(0, 5000)
    correlations = np.corrcoef([np.log1p(column) for column in columns.values()])
    assert np.abs(correlations - np.eye(len(columns))).max() < 0.05


def test_what_is_drawn_and_what_is_built():
    columns = draws()
    for name in ("lanes", "speed", "length", "left_lanes", "right_lanes"):
        assert (columns[name].mean(), columns[name].std()) == pytest.approx(TABLE_4[name], rel=0.05)
    beyond = {name: int((column != clipped(columns)[name]).sum()) for name, column in columns.items()}
    assert beyond == {"lanes": 0, "speed": 0, "length": 8, "inflow": 68, "left_lanes": 0, "right_lanes": 0}
    for name, grid in GRIDS.items():
        assert set(built(columns)[name]) <= set(grid)


def test_the_family_is_a_recipe():
    found = family()
    assert len(found.points) == 250
    assert sum(found.weights) == DRAWS == 345
    assert max(found.weights) == 7
    assert hashlib.sha256(found.table.tobytes() + np.array(found.weights).tobytes()).hexdigest() == FAMILY_HASH
    family.cache_clear()
    assert family() == found
    assert family(1) != found
    assert len(family(1).points) >= 164
    for feature in FEATURES:
        column = found.table[:, found.features.index(feature.name)]
        assert column.min() >= feature.low
        assert column.max() <= feature.high


def test_weights_are_how_often_a_point_was_drawn():
    columns = built(draws())
    found = family()
    point = found.points[int(np.argmax(found.weights))]
    equal = np.all([columns[name] == value for name, value in point.items()], axis=0)
    assert equal.sum() == max(found.weights)


def test_the_generic_point_is_the_nearest_to_the_mean():
    found = family()
    mean, deviation = (
        found.distribution @ found.table,
        np.sqrt(found.distribution @ found.table**2 - (found.distribution @ found.table) ** 2),
    )
    distances = (((found.table - mean) / deviation) ** 2).sum(axis=1)
    assert found.marks["generic"] == distances.argmin()


@pytest.mark.parametrize(("seed", "number"), [(-1, 345), (0, 0), (0.5, 3)])
def test_wrong_recipes_are_refused(seed, number):
    with pytest.raises(InputError, match="must be a whole number"):
        family(seed, number)


def test_lognormal_of_no_spread_is_refused_by_nobody_but_has_one_value():
    assert Lognormal(5.0, 1e-9).quantiles(np.array([0.1, 0.9])) == pytest.approx([5, 5])
