"""Aggregates against rliable, which has runs as rows and tasks as columns."""

import sys
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from lcd.envs.errors import InputError
from lcd.statistics.aggregates import (
    AGGREGATES,
    performance_profile,
    pooled_iqm,
    probability_of_improvement,
    with_interval,
)

SEEDS, TASKS = 6, 5


def scores(shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    return {f"task-{n}": rng.beta(2, 3, SEEDS) + 0.1 * n + shift for n in range(TASKS)}


def matrix(of):
    return np.stack(list(of.values()), axis=1)


def test_aggregates_are_rliables():
    metrics = pytest.importorskip("rliable.metrics")
    of = scores()
    twins = {
        "iqm": metrics.aggregate_iqm,
        "mean": metrics.aggregate_mean,
        "median": metrics.aggregate_median,
        "optimality_gap": metrics.aggregate_optimality_gap,
    }
    for name, twin in twins.items():
        assert AGGREGATES[name](of) == pytest.approx(twin(matrix(of)))


@pytest.fixture
def library(monkeypatch):
    """The library of rliable without its bootstrap, whose package arch does not import beside every pandas."""
    arch = ModuleType("arch")
    arch.bootstrap = ModuleType("arch.bootstrap")
    arch.bootstrap.IIDBootstrap = arch.bootstrap.IndependentSamplesBootstrap = object
    for name, module in (("arch", arch), ("arch.bootstrap", arch.bootstrap)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "rliable.library", raising=False)
    return pytest.importorskip("rliable.library")


def test_improvement_and_profiles_are_rliables(library):
    metrics = pytest.importorskip("rliable.metrics")
    a, b = scores(0.1), scores(seed=1)
    b["task-0"] = a["task-0"].copy()  # ties
    assert probability_of_improvement(a, b) == pytest.approx(metrics.probability_of_improvement(matrix(a), matrix(b)))
    thresholds = np.linspace(0, 1, 21)
    theirs = [library.run_score_deviation(matrix(a), threshold) for threshold in thresholds]
    np.testing.assert_allclose(performance_profile(a, thresholds), theirs)


def test_the_spread_of_a_pooled_mean_is_the_stratified_formula():
    of = scores()
    variance = sum(values.var(ddof=1) / SEEDS for values in of.values()) / TASKS**2
    _, low, high = with_interval(AGGREGATES["mean"], of, resamples=8000)
    expected = stats.t.ppf(0.975, TASKS * (SEEDS - 1)) * np.sqrt(variance)
    assert (high - low) / 2 == pytest.approx(expected, rel=0.03)


def test_tasks_may_have_unequal_seeds_and_are_never_resampled():
    of = {"a": np.array([0.0, 0.0, 0.0]), "b": np.array([1.0, 1.0])}
    estimate, low, high = with_interval(AGGREGATES["mean"], of)
    assert estimate == low == high == 0.5


def test_intervals_of_the_mean_keep_what_they_promise():
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(300):
        of = {n: rng.normal(n, 1, 5) for n in range(4)}
        _, low, high = with_interval(AGGREGATES["mean"], of, resamples=300)
        hits += low <= 1.5 <= high
    assert 0.92 < hits / 300 < 0.985


def test_mistakes_and_single_seeds():
    with pytest.raises(InputError, match="only one has b"):
        probability_of_improvement({"a": np.ones(2)}, {"a": np.ones(2), "b": np.ones(2)})
    with pytest.raises(InputError, match="at least one task"):
        with_interval(pooled_iqm, {})
    assert np.isnan(with_interval(pooled_iqm, {"a": np.ones(1)})[1])
