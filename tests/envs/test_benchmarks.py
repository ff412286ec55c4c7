"""Benchmarks, the registry behind their names, populations, and the benchmark toy."""

from __future__ import annotations

import math
from importlib.metadata import EntryPoint
from typing import ClassVar

import gymnasium
import numpy as np
import pytest
from contract import BenchmarkContract
from gymnasium.vector import AutoresetMode

import lcd.envs.registry
from lcd.envs.benchmarks import Benchmark, get_benchmark, reward_range
from lcd.envs.errors import InputError
from lcd.envs.hardness.discrete import HardnessDiscreteVectorEnv
from lcd.envs.population import SeedStack, make_population
from lcd.envs.protocols import offers
from lcd.envs.registry import Registry
from lcd.envs.rewards import KeepRewards
from lcd.envs.toy import TOY, ToyBenchmark


class Poles:
    """A benchmark as a third party would write it: Gymnasium's own environments, nothing of ours."""

    name = "poles"
    tasks = ("poles/cart",)
    views = ("pixels",)
    r_min: ClassVar = {"poles/cart": 9.5}
    r_max: ClassVar = {"poles/cart": lambda seed: 500.0 + seed}

    def make_vec(self, task, *, view, split, num_envs, seed):
        env = gymnasium.make_vec(
            "CartPole-v1",
            num_envs=num_envs,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        )
        env.reset(seed=seed)
        return env


class TestToy(BenchmarkContract):
    benchmark = TOY


class Toys(ToyBenchmark):
    """The toy without a population of its own."""

    make_population = property()

    def make_vec(self, task, **arguments):
        return TOY.make_vec(task, **arguments)


def population(benchmark="toy", task=TOY.tasks[-1], **arguments):
    return make_population(
        benchmark, task, **{"seeds": [3, 8], "copies": 3, "view": "pixels", "split": "train"} | arguments
    )


def steps(env, count=45):
    observations, infos = env.reset(seed=[5, 6])
    env.action_space.seed(0)
    return [(observations, infos), *(env.step(env.action_space.sample()) for _ in range(count))]


def same(one, other) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other)


def test_toy_spans_both_kinds_of_hardness():
    assert len(TOY.tasks) >= 6
    assert len(set(TOY.tasks)) == len(TOY.tasks)
    words = [task.removeprefix("toy/") for task in TOY.tasks]
    for sight in ("easy", "hard"):
        for reward in ("easy", "hard"):
            assert f"{sight}-sight-{reward}-reward" in words
    assert offers(TOY, Benchmark)
    assert get_benchmark("toy") is TOY


@pytest.mark.parametrize("task", TOY.tasks)
def test_every_toy_runs_and_knows_its_range(task):
    low, high = reward_range("toy", task, 3)
    assert 0 < low < high
    assert (TOY.r_min[task](3), TOY.r_max[task](3)) == (low, high)
    shapes = set()
    for view in TOY.views:
        env = TOY.make_vec(task, view=view, split="eval", num_envs=2, seed=0)
        observations, _ = env.reset()
        env.step(env.action_space.sample())
        shapes.add((observations.shape, observations.dtype))
    assert len(shapes) == 1


def test_ranges_follow_seed_and_knobs():
    task = "toy/easy-sight-easy-reward"
    # One state pays; the best action leads there unless noise, 0.3 by default, leads elsewhere.
    assert reward_range("toy", task, 0, {"horizon": 7})[1] == pytest.approx(7 * 0.7)
    assert reward_range("toy", task, 0, {"horizon": 7, "transition_noise": 0.0})[1] == 7
    knobs = {"transition_noise": 0.3, "terminal_state_density": 0.2, "sequence_length": 2, "action_space_size": 3}
    assert len({reward_range("toy", task, seed, knobs) for seed in range(4)}) > 1


def test_ranges_of_third_parties():
    assert reward_range(Poles(), "poles/cart", 2) == (9.5, 502.0)


def test_a_population_of_toys_is_native_and_equals_the_stack():
    native, stack = population(), population(Toys())
    assert isinstance(native, HardnessDiscreteVectorEnv)
    assert isinstance(stack, SeedStack)
    assert native.num_seeds == stack.num_seeds == 2
    assert same(steps(native), steps(stack))


def test_a_stack_resets_only_the_copies_that_are_asked_for():
    """Environments that never reset by themselves are told which copies to reset."""
    parts = [
        gymnasium.make_vec(
            "CartPole-v1",
            num_envs=2,
            vectorization_mode="sync",
            vector_kwargs={"autoreset_mode": AutoresetMode.DISABLED},
        )
        for _ in range(2)
    ]
    stack = SeedStack(parts)
    stack.reset(seed=[1, 2])
    before = stack.step(np.ones(4, dtype=int))[0]
    after, _ = stack.reset(options={"reset_mask": np.array([False, False, False, True])})
    assert np.array_equal(after[:3], before[:3])
    assert not np.array_equal(after[3], before[3])


def test_a_population_of_third_parties():
    env = population(Poles(), "poles/cart", copies=2)
    assert env.num_envs == 4
    trajectory = steps(env, 120)
    ends = [step for step in trajectory[1:] if (step[2] | step[3]).any()]
    assert ends
    for _, _, terminations, truncations, infos in ends:
        ended = terminations | truncations
        assert np.array_equal(infos["_final_obs"], ended)
        assert all((final is not None) == end for final, end in zip(infos["final_obs"], ended, strict=True))


def test_reward_p_is_for_training_only():
    assert isinstance(population(reward_p=0.5), KeepRewards)
    assert isinstance(population(reward_p=0.5, split="eval"), HardnessDiscreteVectorEnv)
    assert isinstance(population(reward_p=1.0), HardnessDiscreteVectorEnv)
    assert population(reward_p=0.5).num_seeds == 2
    assert population(Toys(), reward_p=0.5).num_seeds == 2


def test_state_of_a_stack():
    one, other = population(Toys(), reward_p=0.5), population(Toys(), reward_p=0.5)
    steps(one)
    other.set_state(one.get_state())
    for _ in range(30):
        actions = one.action_space.sample()
        assert same(one.step(actions), other.step(actions))


def test_state_is_offered_only_where_it_is_kept():
    for reward_p in (1.0, 0.5):
        assert hasattr(population(Toys(), reward_p=reward_p), "get_state")
        assert not hasattr(population(Poles(), "poles/cart", reward_p=reward_p), "get_state")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"benchmark": "toi"}, ["toi", "'toy'"]),
        ({"benchmark": "toy:nothing"}, ["toy:nothing"]),
        ({"benchmark": "lcd.envs.toy:TOYS"}, ["TOYS", "'TOY'"]),
        ({"benchmark": "lcd.envs.toy:COMMON"}, ["make_vec"]),
        ({"task": "toy/easy-sight"}, ["toy/easy-sight", "-reward'"]),
        ({"view": "semantics"}, ["view", "'semantic'"]),
        ({"split": "evaluation"}, ["split", "'eval'"]),
        ({"seeds": [1, 1]}, ["seeds", "twice"]),
        ({"seeds": []}, ["seeds"]),
        ({"seeds": [-1]}, ["seeds", "-1"]),
        ({"copies": 0}, ["copies", "0"]),
        ({"reward_p": 0.0}, ["reward_p", "0.0"]),
        ({"dellay": 0}, ["dellay", "'delay'"]),
    ],
)
def test_mistakes_are_told_in_a_sentence(arguments, words):
    with pytest.raises(InputError) as mistake:
        population(**arguments)
    assert all(word in str(mistake.value) for word in words)


def test_names_resolve_in_order(monkeypatch):
    points = [EntryPoint("other", "lcd.envs.toy:TOY", "lcd.things"), EntryPoint("own", "x:y", "lcd.things")]

    def entry_points(group, name=None):
        return [p for p in points if p.group == group and name in (None, p.name)]

    monkeypatch.setattr(lcd.envs.registry, "entry_points", entry_points)
    registry = Registry("thing", "lcd.things")
    registry.add("own", "lcd.envs.toy:ToyBenchmark")
    registry.add("direct", 5)
    assert registry.names() == ["own", "direct", "other"]
    assert registry.resolve("own") is ToyBenchmark
    assert registry.resolve("direct") == 5
    assert registry.resolve("other") is TOY
    assert registry.resolve("lcd.envs.toy:TOY.tasks") == TOY.tasks
    with pytest.raises(InputError, match="no thing 'onw'; did you mean 'own'"):
        registry.resolve("onw")


def test_a_class_is_a_benchmark_too():
    assert get_benchmark("lcd.envs.toy:ToyBenchmark").name == "toy"


class Odd:
    """A benchmark of somebody's, whose `make_vec` gives what it was made with."""

    name, tasks, views, r_min, r_max = "odd", ("odd/a",), ("pixels",), {"odd/a": 0.0}, {"odd/a": 1.0}

    def __init__(self, make=None, **others):
        self.__dict__.update(make=make, **others)

    def make_vec(self, task, **how):
        return self.make()


@pytest.mark.parametrize("bound", [{}, None, {"odd/a": None}, {"odd/a": lambda seed: None}])
def test_a_range_may_be_unknown(bound):
    low, high = reward_range(Odd(r_max=bound), "odd/a", 0)
    assert low == 0
    assert math.isnan(high)


@pytest.mark.parametrize(("bound", "sentence"), [({"odd/a": "x"}, "a number is needed"), (3.0, "a mapping from tasks")])
def test_a_range_that_is_no_number_is_told(bound, sentence):
    with pytest.raises(InputError, match=sentence):
        reward_range(Odd(r_max=bound), "odd/a", 0)


def test_what_is_no_vector_environment_is_told():
    how = {"seeds": [0], "copies": 2, "view": "pixels", "split": "train"}
    with pytest.raises(InputError, match=r"gives a CartPoleEnv for 'odd/a', not a gymnasium\.vector\.VectorEnv"):
        make_population(Odd(lambda: gymnasium.make("CartPole-v1").unwrapped), "odd/a", **how)


def test_observations_that_are_no_array_are_told():
    space = gymnasium.spaces.Dict({"x": gymnasium.spaces.Box(0, 1)})

    def make():
        return gymnasium.vector.SyncVectorEnv(
            [lambda: gymnasium.wrappers.TransformObservation(gymnasium.make("CartPole-v1"), lambda x: {"x": x}, space)]
        )

    how = {"seeds": [0], "copies": 1, "view": "pixels", "split": "train"}
    with pytest.raises(InputError, match="shows a Dict: an agent needs an array"):
        make_population(Odd(make), "odd/a", **how)
