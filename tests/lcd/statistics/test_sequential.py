"""Alpha spending against published boundaries, and against what repeated looks at noise really do."""

import numpy as np
import pytest
from scipy.special import stdtrit

from lcd.statistics.sequential import boundaries, looks, nominal_levels, obrien_fleming, pocock

FIFTHS = [0.2, 0.4, 0.6, 0.8, 1.0]


@pytest.mark.parametrize(
    ("spending", "published"),
    [
        # Two-sided .05 at five equal looks, Lan and DeMets' functions, as group-sequential software tabulates them.
        ("obrien_fleming", [4.877, 3.357, 2.680, 2.290, 2.031]),
        ("pocock", [2.438, 2.427, 2.410, 2.397, 2.386]),
    ],
)
def test_the_boundaries_are_the_published_ones(spending, published):
    np.testing.assert_allclose(boundaries(FIFTHS, 0.05, spending), published, atol=0.01)


def test_one_look_is_the_usual_quantile():
    assert boundaries([1.0])[0] == pytest.approx(1.95996, abs=1e-3)


@pytest.mark.parametrize("spend", [pocock, obrien_fleming])
def test_all_of_the_error_is_spent_at_the_end_and_never_more(spend):
    spent = [spend(share, 0.05) for share in np.linspace(0, 1, 50)]
    assert spent[0] == pytest.approx(0)
    assert spent[-1] == pytest.approx(0.05)
    assert (np.diff(spent) >= 0).all()


@pytest.mark.parametrize("spending", ["pocock", "obrien_fleming"])
def test_intervals_hold_at_all_looks_together(spending):
    """Student's intervals after 4, 6, … 12 seeds; without a correction about 13 % miss the truth at some look."""
    counts = looks(4, 2, 12)
    rng = np.random.default_rng(0)
    values = rng.normal(0, 1, (20_000, 12))
    missed, naive = (np.zeros(len(values), bool) for _ in range(2))
    for count, level in zip(counts, nominal_levels(counts, 12, spending=spending), strict=True):
        seen = values[:, :count]
        t = np.abs(seen.mean(1)) / (seen.std(1, ddof=1) / np.sqrt(count))
        missed |= t > stdtrit(count - 1, 0.5 + level / 2)
        naive |= t > stdtrit(count - 1, 0.975)
    assert naive.mean() > 0.1
    assert 0.035 < missed.mean() < 0.065


def test_looks_end_with_all_seeds():
    assert looks(4, 2, 9) == [4, 6, 8, 9]
    assert looks(4, 2, 8) == [4, 6, 8]
    assert looks(4, 3, 4) == [4]
