"""Opponents: one move a position, by the seed and the position alone."""

import math

import numpy as np
import pytest

from lcd.envs.ehc.games.opponents import UNIT, Opponent, exponential, random_words
from lcd.envs.errors import InputError


def drawn(opponent, values, legal=None, number=200_000):
    values = np.tile(np.array(values) * UNIT, (number, 1)).astype(np.int64)
    legal = np.ones_like(values, dtype=bool) if legal is None else np.tile(legal, (number, 1))
    return opponent.choose(np.arange(number), values, legal)


def test_the_exponential_is_that_of_the_library():
    exponents = np.concatenate([np.linspace(-40, 0, 5001), [-41.0, -1e9]])
    expected = np.array([math.exp(x) if x >= -40 else 0.0 for x in exponents])
    assert np.allclose(exponential(exponents), expected, rtol=1e-12, atol=0)
    assert exponential(np.zeros(1))[0] == 1


@pytest.mark.parametrize("temperature", [0.25, 1.0, 3.0])
def test_moves_are_drawn_as_boltzmann_says(temperature):
    values, legal = [1.0, -1.0, 0.5, 0.9, 0.0], [True, True, True, False, True]
    chosen = drawn(Opponent(temperature, seed=5), values, legal)
    weights = np.array([math.exp(v / temperature) if may else 0 for v, may in zip(values, legal, strict=True)])
    shares = np.bincount(chosen, minlength=5) / len(chosen)
    assert np.abs(shares - weights / weights.sum()).max() < 5e-3
    assert shares[3] == 0


def test_a_cold_opponent_takes_any_of_the_best():
    shares = np.bincount(drawn(Opponent(1e-3), [0.5, 1.0, 1.0]), minlength=3) / 200_000
    assert shares[0] == 0
    assert abs(shares[1] - 0.5) < 5e-3


def test_a_draw_depends_on_seed_and_position_alone():
    opponent, rng = Opponent(0.5, seed=3), np.random.default_rng(0)
    codes = rng.integers(0, 2**60, size=1000)
    values, legal = rng.integers(-UNIT, UNIT, size=(1000, 6)), rng.random((1000, 6)) < 0.7
    legal[:, 2] = True
    whole = opponent.choose(codes, values, legal)
    order = rng.permutation(1000)
    assert np.array_equal(opponent.choose(codes[order], values[order], legal[order]), whole[order])
    one_by_one = [opponent.choose(codes[i : i + 1], values[i : i + 1], legal[i : i + 1])[0] for i in range(50)]
    assert one_by_one == whole[:50].tolist()
    wider = np.pad(values, ((0, 0), (0, 3))), np.pad(legal, ((0, 0), (0, 3)))
    assert np.array_equal(opponent.choose(codes, *wider), whole)
    assert (Opponent(0.5, seed=4).choose(codes, values, legal) != whole).mean() > 0.3
    assert legal[np.arange(1000), whole].all()


def test_words_are_those_they_have_always_been():
    words = [0x3460861405505C, 0x1FC322FF6CA8C6B3, 0xCF765081E7B1F318]
    assert random_words(np.array([0, 1, 2**40]), 7).tolist() == words


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"temperature": 0.0}, "temperature is 0.0, but must be a number above 0"),
        ({"temperature": 1.0, "noise": 65}, "noise is 65, but must be a number of 64ths"),
    ],
)
def test_settings_that_mean_nothing_are_refused(fields, says):
    with pytest.raises(InputError, match=says):
        Opponent(**fields)
