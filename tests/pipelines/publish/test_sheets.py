"""Sheets of benchmarks with masks: what they draw of stacked pictures, of many labels, under actions of any kind."""

import numpy as np
from gymnasium import spaces

from lcd.pipelines.publish.sheets import _actions, _colours, _tile


def test_the_newest_of_stacked_pictures_is_shown():
    colour = np.arange(2 * 2 * 9, dtype=np.uint8).reshape(2, 2, 9)
    assert np.array_equal(_tile(colour, (), np.zeros((0, 3))), colour[..., 6:])
    grey = np.arange(2 * 2 * 4, dtype=np.uint8).reshape(2, 2, 4)
    assert np.array_equal(_tile(grey, (), np.zeros((0, 3))), np.repeat(grey[..., 3:], 3, -1))


def test_every_label_has_a_colour_and_those_of_one_grey_that_of_the_first():
    colours = _colours([str(number) for number in range(40)])
    assert len({tuple(colour) for colour in colours}) == 40
    few = _colours(["background", "background", "figure", "figure"])
    shown = _tile(np.array([[[0], [255]]], np.uint8), (0, 0, 255, 255), few)
    assert np.array_equal(shown[0], few[[0, 2]])


def test_actions_of_any_kind_are_chosen_for_each_level():
    discrete = _actions(spaces.Discrete(3), np.random.default_rng(0), 5)
    assert discrete.shape == (5,)
    box = spaces.Box(-1, 1, (2,), np.float32)
    moves = _actions(box, np.random.default_rng(0), 5)
    assert moves.shape == (5, 2)
    assert len(np.unique(moves, axis=0)) == 5
    assert np.array_equal(moves, _actions(box, np.random.default_rng(0), 5))
