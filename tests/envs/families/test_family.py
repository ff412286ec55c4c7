import numpy as np
import pytest

from lcd.envs.errors import InputError
from lcd.envs.families.family import Family, grid_family, parse_point, point_name


def test_a_grid_has_every_combination_once_and_the_last_feature_changes_fastest():
    family = grid_family({"mass": (1, 2), "length": (0.5, 1, 3)}, {"mass": 1, "length": 0.5})
    assert len(family.points) == 6
    np.testing.assert_array_equal(family.table[:, 1], [0.5, 1, 3] * 2)
    np.testing.assert_allclose(family.distribution, 1 / 6)
    assert [family.context_of(point) for point in family.points[:2]] == ["", "length=1,mass=1"]


@pytest.mark.parametrize("value", [0.1, 1e-12, -9.81, 3, 1e30, 0.12345678901])
def test_a_point_is_read_from_its_name(value):
    point = {"gravity": value, "length": 0.25}
    assert parse_point(point_name(point)) == point
    assert parse_point("length=1,length=2") is None


@pytest.mark.parametrize("name", ["", "far", "a=", "=1", "a=b", "a=1,far"])
def test_a_context_that_is_no_point_is_none(name):
    assert parse_point(name) is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"points": ({"mass": 1.0}, {"length": 1.0})}, "same ones"),
        ({"points": ({"mass": 1.0}, {"mass": 1.0})}, "none twice"),
        ({"points": ()}, "at least one point"),
        ({"weights": (1.0,)}, "as many weights"),
        ({"weights": (1.0, -1.0)}, "none negative"),
        ({"weights": (1.0, float("nan"))}, "none negative"),
        ({"weights": (0.0, 0.0)}, "at least one point must count"),
    ],
)
def test_what_is_no_family_is_refused(change, told):
    with pytest.raises(InputError, match=told):
        Family(**{"points": ({"mass": 1.0}, {"mass": 2.0}), "default": {"mass": 1.0}} | change)
