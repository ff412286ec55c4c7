"""A small part of tests/benchmarks/bench_coverage.py: intervals hold what they promise with few seeds."""

import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import bench_coverage


@pytest.fixture(scope="module")
def table():
    chosen = {name: bench_coverage.populations()[name] for name in ("normal", "beta", "boundary: no hardness")}
    found = bench_coverage.coverage(chosen, 600, 300, ("t × bootstrap SE", "percentile"))
    return pd.DataFrame(found).set_index(["population", "method", "statistic", "seeds"])["kept"].sort_index()


@pytest.mark.parametrize("statistic", ["auc", "phi_paper", "phi_calibrated", "psi_calibrated"])
@pytest.mark.parametrize("population", ["normal", "beta"])
def test_the_houses_intervals_hold(table, population, statistic):
    # 600 trials leave ± .018 about .95; the goal of .93 to .97 is for the long simulation.
    assert table[population, "t × bootstrap SE", statistic].between(0.92, 0.98).all()


def test_percentiles_do_not(table):
    assert table["normal", "percentile"].xs(5, level="seeds").max() < 0.9


def test_only_the_papers_psi_has_a_boundary_at_zero(table):
    at_zero = table["boundary: no hardness", "t × bootstrap SE"]
    assert at_zero["psi_calibrated"].between(0.92, 0.98).all()
    assert at_zero["psi_paper"][20] < 0.9
