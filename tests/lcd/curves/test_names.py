"""What curves call tasks with changed knobs, and back."""

import pytest

from lcd.curves.names import knobs_of_task, unvaried_task, varied_task


@pytest.mark.parametrize(
    ("task", "knobs", "name"),
    [
        ("toy/a", {}, "toy/a"),
        ("toy/a", {"left": 4, "a": "x"}, "toy/a[a=x,left=4]"),
        ("ctgraph/depth-1", {"graph_shape": {"d": 3, "b": 2}}, "ctgraph/depth-1[graph_shape.b=2,graph_shape.d=3]"),
        ("hardness/discrete:init=[1, 0]", {"horizon": 20}, "hardness/discrete:init=[1, 0][horizon=20]"),
        ("hardness/discrete:init=[[1, 0], [2]]", {}, "hardness/discrete:init=[[1, 0], [2]]"),
        ("hardness/discrete:delay=0", {"init": [1, 0]}, "hardness/discrete:delay=0[init=[1, 0]]"),
    ],
)
def test_a_name_holds_the_changed_knobs(task, knobs, name):
    assert varied_task(task, knobs) == name
    assert unvaried_task(name) == task
    assert varied_task(unvaried_task(name), {}) + (f"[{knobs_of_task(name)}]" if knobs else "") == name
