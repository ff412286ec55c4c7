"""Videos whose truth is known."""

import numpy as np

from lcd.envs.shape_videos import moving_shapes, texture


def test_a_shape_moves_by_its_velocity_and_all_else_stands_still():
    videos = moving_shapes(6, 5, np.random.default_rng(0))
    assert videos.frames.shape == (6, 5, 48, 48, 3)
    assert videos.frames.dtype == np.uint8
    for frames, masks, velocities in zip(*videos, strict=True):
        for t, (dx, dy) in enumerate(velocities):
            assert (dx, dy) != (0, 0)
            np.testing.assert_array_equal(np.roll(masks[t], (dy, dx), (0, 1)), masks[t + 1])
            np.testing.assert_array_equal(
                np.roll(frames[t], (dy, dx), (0, 1))[masks[t + 1]], frames[t + 1][masks[t + 1]]
            )
            still = ~masks[t] & ~masks[t + 1]
            np.testing.assert_array_equal(frames[t][still], frames[t + 1][still])


def test_colours_do_not_tell_the_shape():
    videos = moving_shapes(300, 1, np.random.default_rng(1))
    inside, outside = [], []
    for frames, masks in zip(videos.frames[:, 0], videos.masks[:, 0], strict=True):
        palette = frames.reshape(-1, 3).astype(float)
        low, high = palette.min(0), palette.max(0)
        scaled = ((frames - low) / np.maximum(high - low, 1)).mean(-1)
        inside.append([scaled[masks].mean(), scaled[masks].std()])
        outside.append([scaled[~masks].mean(), scaled[~masks].std()])
    difference = np.array(inside) - np.array(outside)
    error = difference.std(0) / np.sqrt(len(difference))
    assert (abs(difference.mean(0)) < [4 * error[0], 0.02]).all(), "mean and spread agree"


def test_a_texture_is_uniform_and_runs_along_its_diagonal():
    rng = np.random.default_rng(2)
    values = texture(rng, 64, (3.0, 0.8), slant=1)
    np.testing.assert_allclose(np.sort(values, axis=None), np.linspace(0, 1, 64 * 64))
    along, aside = ((values - np.roll(values, (1, step), (0, 1))).std() for step in (1, -1))
    assert along < 0.6 * aside
    other = texture(rng, 64, (3.0, 0.8), slant=-1)
    along, aside = ((other - np.roll(other, (1, step), (0, 1))).std() for step in (1, -1))
    assert aside < 0.6 * along
