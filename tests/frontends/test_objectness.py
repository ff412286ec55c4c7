"""Scores of maps against independent references, and the choice of maps by brute force."""

import itertools

import numpy as np
import pytest

from lcd.frontends.objectness import (
    Candidate,
    Frames,
    best_candidates,
    colour_clusters,
    frame_differences,
    iou,
    rand_index,
)


def masks(number, seed, side=7, share=0.4):
    return np.random.default_rng(seed).random((number, side, side)) < share


@pytest.mark.parametrize("share", [0.05, 0.4, 0.95])
def test_rand_index_is_scikit_learns(share):
    metrics = pytest.importorskip("sklearn.metrics")
    found, true = masks(20, 0, share=share), masks(20, 1, share=share)
    true[:5] = found[:5] | true[:5]
    expected = [metrics.adjusted_rand_score(t.ravel(), f.ravel()) for f, t in zip(found, true, strict=True)]
    np.testing.assert_allclose(rand_index(found, true), expected, atol=1e-12)


def test_rand_index_counts_pairs_of_pixels():
    found, true = masks(6, 2, side=4), masks(6, 3, side=4)
    for f, t, index in zip(found, true, rand_index(found, true), strict=True):
        pairs = list(itertools.combinations(range(16), 2))
        a, b = f.ravel(), t.ravel()
        both = sum((a[i] == a[j]) and (b[i] == b[j]) for i, j in pairs)
        one, other = (sum(x[i] == x[j] for i, j in pairs) for x in (a, b))
        expected = one * other / len(pairs)
        assert index == pytest.approx((both - expected) / ((one + other) / 2 - expected))


def test_perfect_opposite_and_empty():
    true = masks(3, 4)
    assert np.array_equal(iou(true, true), np.ones(3))
    assert np.array_equal(iou(~true, true), np.zeros(3))
    assert np.array_equal(rand_index(~true, true), np.ones(3))  # the same division of the pixels
    none = np.zeros_like(true)
    assert np.isnan(iou(none, none)).all()
    assert np.array_equal(rand_index(none, none), np.ones(3))


def test_the_choice_is_the_best_of_all_candidates():
    rng = np.random.default_rng(5)
    true = {"a": masks(8, 6, share=0.2), "b": masks(8, 7, share=0.1), "never": np.zeros((8, 7, 7), bool)}
    true["b"][:3] = False
    maps = rng.random((8, 3, 7, 7)).astype(np.float32)
    maps[:, 1] -= 0.6 * true["a"]
    chosen = best_candidates(maps, true)
    assert set(chosen) == {"a", "b"}
    for name, (value, candidate) in chosen.items():
        shown = true[name].any((1, 2))
        assert value == pytest.approx(iou(candidate.finds(maps)[shown], true[name][shown]).mean(), abs=1e-6)
        thresholds = np.quantile(maps, [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98], axis=(0, 2, 3))
        for index, sign in itertools.product(range(3), (1, -1)):
            for threshold in thresholds[:, index]:
                found = Candidate(index, float(threshold), sign).finds(maps)[shown]
                assert iou(found, true[name][shown]).mean() < value + 0.03
    assert chosen["a"][1].map == 1
    assert chosen["a"][1].sign == -1


def frames(now, before=None, after=None):
    before, after = (now if other is None else other for other in (before, after))
    return Frames(before, now, after, np.zeros(now.shape[:3], np.uint8), np.arange(len(now)))


def test_baselines_find_what_they_should():
    rng = np.random.default_rng(8)
    square = np.zeros((6, 12, 12), bool)
    for number, (y, x) in enumerate(rng.integers(0, 8, (6, 2))):
        square[number, y : y + 4, x : x + 4] = True
    coloured = np.where(square[..., None], (200, 30, 30), (20, 90, 20)).astype(np.uint8)
    maps = colour_clusters(frames(coloured))(frames(coloured))
    value, _ = best_candidates(maps, {"square": square})["square"]
    assert value == 1
    assert (maps.sum(1) == 1).all()
    noise = np.broadcast_to(rng.integers(0, 256, (1, 12, 12, 3)), coloured.shape)
    blinking = np.where(square[..., None], 255 - noise, noise).astype(np.uint8)
    differences = frame_differences(frames(blinking, noise.astype(np.uint8), noise.astype(np.uint8)))
    assert best_candidates(differences, {"square": square})["square"][0] > 0.9
    assert not frame_differences(frames(blinking)).any()
