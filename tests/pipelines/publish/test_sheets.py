"""Sheets of benchmarks with masks: what they draw of stacked pictures, of many labels, under actions of any kind."""

import numpy as np
from gymnasium import spaces

from lcd.config.compose import compose
from lcd.pipelines.publish.sheets import FOR_YOU, _actions, _colours, _figure, _tile
from lcd.pipelines.publish.view import sheet


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


def test_columns_rows_and_colours_of_a_sheet_are_explained():
    class Named:
        def label_names(self, task, view):
            return ("ground", "coin") if view == "semantic" else ()

    cfg = compose("view", ["toy/easy-sight-easy-reward"])
    views, picture = ["pixels", "semantic"], np.zeros((4, 4, 3), np.uint8)
    colours = {"pixels": _colours([]), "semantic": _colours(["ground", "coin"])}
    figure = _figure(Named(), cfg, views, [[picture] * 2] * 2, colours, {"pixels": (), "semantic": (0, 255)})
    assert [axis.get_title() for axis in figure.axes] == [*views, "", ""]
    assert [axis.get_ylabel() for axis in figure.axes] == ["level 1", "", "level 2", ""]
    (legend,) = figure.legends
    told = [text.get_text() for text in legend.get_texts()]
    assert told == [
        FOR_YOU,
        "semantic (grey)",
        "0 ground (0)",
        "1 coin (255)",
    ]


def test_what_a_benchmark_says_of_its_masks_stands_below_them():
    rows = {"semantic": [(np.zeros((4, 4, 3), np.uint8), 0.0)] * 3}
    assert sheet(rows, "t").get_supxlabel() == ""
    told = sheet(rows, "t", "red says what a thing is " * 9).get_supxlabel()
    assert told.replace("\n", " ") == ("red says what a thing is " * 9).strip()
    assert max(map(len, told.split("\n"))) < 70
