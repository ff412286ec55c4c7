"""The benchmark `families`: points as knobs, points side by side, ranges, refusals."""

import csv
from importlib import resources

import gymnasium
import numpy as np
import pytest

from lcd.envs.benchmarks import get_benchmark, reward_range
from lcd.envs.errors import InputError
from lcd.envs.families import random_returns as ranges
from lcd.envs.families.benchmark import FAMILIES
from lcd.envs.families.family_tasks import TASKS
from lcd.envs.families.features import checked_point
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


def test_toys_are_families_over_delay_and_noise():
    toy = get_benchmark("toy")
    for task in toy.tasks:
        family = toy.family(task)
        assert len(family.points) == 16
        assert reward_range(toy, task, 3, family.default) == reward_range(toy, task, 3)
    # Noise costs the best agent, and tells a random one nothing.
    family = toy.family(toy.tasks[0])
    best = {point["transition_noise"]: reward_range(toy, toy.tasks[0], 3, point)[1] for point in family.points[:4]}
    assert sorted(best.values(), reverse=True) == list(best.values())


def test_random_agents_returns_are_those_of_the_table():
    """Measured again, alone: bit for bit on one machine; elsewhere within what a thousand episodes can tell."""
    for task, number in (("families/cartpole", 17), ("families/pendulum-five", 4), ("families/quad", 1)):
        point = FAMILIES.family(task).points[number]
        found = ranges.returns(TASKS[task], [checked_point(TASKS[task].environment.features, point)])
        error = found.std() / np.sqrt(found.size)
        assert FAMILIES.reward_range(task, 0, **point)[0] == pytest.approx(found.mean(), abs=error + 1e-9)


def test_the_table_has_every_point():
    with resources.files("lcd.envs.families").joinpath(ranges.FILE).open(encoding="utf-8") as file:
        known = [(row["task"], row["point"]) for row in csv.DictReader(file)]
    wanted = [(task, name) for task in TASKS for name in ranges.names(task)]
    assert known == wanted


def test_ranges_elsewhere_are_measured_or_unknown():
    low, high = FAMILIES.reward_range("families/quad", 0, upper=0, lower=0)
    # Without obstacles random agents get farther than with any.
    assert 0.5 < low < high == 1
    assert np.isnan(FAMILIES.reward_range("families/half-cheetah", 0, gravity=-7)).all()
    assert FAMILIES.reward_range("families/cartpole", 0) == FAMILIES.reward_range("families/cartpole", 5, length=0.5)


@pytest.mark.parametrize("number", [0, 200, 575])
def test_an_untouched_random_agent_of_gymnasiums_gets_as_much(number):
    """An independent measurement: Gymnasium's own environment, its own starts and random numbers."""
    point = FAMILIES.family("families/cartpole").points[number]
    env = gymnasium.make("CartPole-v1").unwrapped
    for name, value in point.items():
        setattr(env, name, float(value))
    env.total_mass, env.polemass_length = env.masspole + env.masscart, env.masspole * env.length
    rng, lengths = np.random.default_rng(0), []
    env.reset(seed=1)
    for _ in range(60):
        env.reset()
        steps = 1
        while not env.step(int(rng.integers(2)))[2] and steps < 500:
            steps += 1
        lengths.append(steps)
    error = np.std(lengths, ddof=1) / np.sqrt(len(lengths))
    assert FAMILIES.reward_range("families/cartpole", 0, **point)[0] == pytest.approx(np.mean(lengths), abs=5 * error)
