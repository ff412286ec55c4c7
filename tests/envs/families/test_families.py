"""The benchmark `families`: points as knobs, points side by side, ranges, refusals."""

import numpy as np
import pytest

from lcd.envs.benchmarks import get_benchmark
from lcd.envs.errors import InputError
from lcd.envs.families.benchmark import FAMILIES
from lcd.envs.families.tasks import TASKS
from lcd.envs.protocols import ChecksKnobs, Families, PointPopulations, Populations, RangesByKnobs, offers

from ..contract import BenchmarkContract, equal, play, random_actions

SIZES = {
    "families/cartpole": 576,
    "families/cartpole-carl": 576,
    "families/pendulum": 180,
    "families/pendulum-five": 5,
    "families/mountain-car": 36,
    "families/quad": 5,
    "families/half-cheetah": 120,
    "families/swimmer": 5,
}


class TestFamilies(BenchmarkContract):
    benchmark = FAMILIES

    def test_all_views_are_one_task(self):
        """There is but one view."""


def test_what_it_offers():
    benchmark = get_benchmark("families")
    for protocol in (ChecksKnobs, Families, PointPopulations, Populations, RangesByKnobs):
        assert offers(benchmark, protocol)


@pytest.mark.parametrize("task", TASKS)
def test_families_have_the_papers_points(task):
    family = FAMILIES.family(task)
    assert len(family.points) == SIZES[task]
    for point in (*family.points, family.default):
        FAMILIES.check_knobs(task, point)


@pytest.mark.parametrize("task", TASKS)
def test_points_together_are_the_points_alone(task):
    family = FAMILIES.family(task)
    points = [family.points[0], family.points[len(family.points) // 2], family.points[-1]]
    together = FAMILIES.make_points(task, points=points, seeds=[4, 1], copies=2, view="state", split="train")
    assert together.num_seeds == 6
    actions = random_actions(together, 80)
    first, _ = together.reset()
    trajectory = play(together, actions)
    for number, point in enumerate(points):
        for place, seed in enumerate((4, 1)):
            rows = slice(4 * number + 2 * place, 4 * number + 2 * place + 2)
            alone = FAMILIES.make_vec(task, view="state", split="train", num_envs=2, seed=seed, **point)
            assert np.array_equal(alone.reset()[0], first[rows])
            assert equal({k: v[:, rows] for k, v in trajectory.items()}, play(alone, actions[:, rows]))


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        ({"gravty": 9.8}, "did you mean 'gravity'"),
        ({"gravity": float("nan")}, "gravity is nan, but it must be a number from 0 to 1000"),
        ({"masspole": 0}, "masspole is 0, but it must be a number from 0.001"),
        ({"length": -1}, "length is -1"),
        ({"length": "long"}, "length is 'long'"),
        ({"gravity": True}, "gravity is True"),
    ],
)
def test_bad_contexts_are_refused_in_a_sentence(knobs, said):
    with pytest.raises(InputError, match=said):
        FAMILIES.check_knobs("families/cartpole", knobs)
    with pytest.raises(InputError, match=said):
        FAMILIES.make_vec("families/cartpole", view="state", split="train", num_envs=1, seed=0, **knobs)
