"""The streams are uniform, unrelated to one another, and a copy's own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lcd.envs.errors import InputError
from lcd.envs.streams import KEYS, Streams, group_seeds, seed_sequence


def make(copies: int, seed: int = 0) -> Streams:
    return Streams.spawn([seed_sequence(seed, "train", c) for c in range(copies)])[0]


def test_keys_are_distinct():
    assert len(set(KEYS.values())) == len(KEYS)
    assert seed_sequence(3, "mdp", 2).spawn_key == (KEYS["mdp"], 2)


def test_uniform_along_and_across_copies():
    draws = make(400).uniform(count=500)
    assert draws.min() >= 0
    assert draws.max() < 1
    assert stats.kstest(draws.ravel(), "uniform").pvalue > 1e-3
    along = [stats.kstest(row, "uniform").pvalue for row in draws]
    across = [stats.kstest(column, "uniform").pvalue for column in draws.T]
    assert stats.kstest(along, "uniform").pvalue > 1e-3
    assert stats.kstest(across, "uniform").pvalue > 1e-3


def test_pairs_are_uniform_in_time_and_between_neighbours():
    draws = (make(300).uniform(count=600) * 16).astype(int)
    for first, second in ((draws[:, :-1], draws[:, 1:]), (draws[:-1], draws[1:])):
        counts = np.bincount((16 * first + second).ravel(), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-3


def test_neighbouring_copies_are_uncorrelated():
    draws = make(200).uniform(count=1000)
    correlations = np.corrcoef(draws)[np.triu_indices(200, 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(1000)
    assert abs(correlations.std() * np.sqrt(1000) - 1) < 0.05


def test_every_bit_is_fair():
    words = make(100).bits(count=1000).ravel()
    ones = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).sum(axis=0)
    assert stats.binomtest(int(ones.max()), words.size, 0.5).pvalue > 1e-5
    assert stats.binomtest(int(ones.min()), words.size, 0.5).pvalue > 1e-5


@pytest.mark.parametrize("high", [1, 2, 7, 1000])
def test_integers_are_uniform(high):
    draws = make(100).integers(high, count=500)
    assert draws.dtype == np.int64
    assert draws.min() >= 0
    assert draws.max() < high
    if high > 1:
        assert stats.chisquare(np.bincount(draws.ravel(), minlength=high)).pvalue > 1e-3


def test_it_is_splitmix64_when_the_increment_is_the_golden_ratio():
    """Published numbers of SplitMix64 for the seed 1234567."""
    streams = Streams(np.array([1234567]), np.array([0x9E3779B97F4A7C15], dtype=np.uint64))
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert streams.bits(count=5)[0, 1:].tolist() == expected


def test_integers_with_a_bound_for_every_copy():
    highs = np.array([1, 5, 100])
    draws = make(3).integers(highs[:, None], count=400)
    assert (draws < highs[:, None]).all()
    assert draws[2].max() > 90


def test_normal():
    draws = make(100).normal(count=500)
    assert stats.kstest(draws.ravel(), "norm").pvalue > 1e-3
    assert make(100).normal().shape == (100,)


def test_a_copy_draws_the_same_alone_and_in_company():
    rng = np.random.default_rng(0)
    together, alone = make(20), [make(20) for _ in range(20)]
    for copy, streams in enumerate(alone):
        streams.set_state({name: array[copy : copy + 1] for name, array in streams.get_state().items()})
    for _ in range(60):
        mask = rng.random(20) < 0.4
        index = mask if rng.random() < 0.5 else np.flatnonzero(mask)
        kind, count = rng.choice(["uniform", "integers", "normal"]), rng.choice([None, 1, 3])
        more = (9,) if kind == "integers" else ()
        drawn = getattr(together, kind)(*more, index=index, count=count)
        own = [getattr(alone[copy], kind)(*more, count=count)[0] for copy in np.flatnonzero(mask)]
        assert np.array_equal(drawn, np.array(own).reshape(drawn.shape))


def test_kinds_and_seeds_are_unrelated():
    one, two = Streams.spawn([seed_sequence(0, "train", c) for c in range(50)], 2)
    other = make(50, seed=1)
    draws = [s.uniform(count=400).ravel() for s in (one, two, other)]
    assert all(abs(np.corrcoef(draws[i], draws[j])[0, 1]) < 0.03 for i, j in ((0, 1), (0, 2), (1, 2)))


def test_state_goes_on():
    streams, other = make(5), make(5, seed=2)
    streams.uniform(np.array([1, 3]), count=7)
    state = streams.get_state()
    expected = streams.uniform(count=4)
    other.set_state(state)
    assert np.array_equal(other.uniform(count=4), expected)
    streams.set_state(state)
    assert np.array_equal(streams.uniform(count=4), expected)


def test_group_seeds():
    assert group_seeds(4, 1) == [4]
    assert group_seeds([4, 5], 2) == [4, 5]
    assert len(set(group_seeds(4, 3))) == 3
    with pytest.raises(InputError, match="2 seeds"):
        group_seeds([4, 5], 3)
