"""Dotted keys of nested dictionaries."""

from lcd.config.nested import flatten, with_changes


def test_a_dot_names_a_knob_within_a_section():
    knobs = {"shape": {"d": 1, "p": 0}, "other": 2}
    assert with_changes(knobs, {"shape.d": 3, "new.a": 1, "plain": 5}) == {
        "shape": {"d": 3, "p": 0}, "other": 2, "new": {"a": 1}, "plain": 5,
    }  # fmt: skip
    assert knobs == {"shape": {"d": 1, "p": 0}, "other": 2}


def test_flat_and_nested_are_the_same():
    nested = {"a": {"b": {"c": 1}, "d": {}}, "e": [1]}
    assert flatten(nested) == {"a.b.c": 1, "a.d": {}, "e": [1]}
    assert with_changes({}, flatten(nested)) == nested
