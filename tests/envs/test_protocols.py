"""What benchmarks and environments offer, asked through the declared protocols."""

import pytest

from lcd.envs.benchmarks import BENCHMARKS, get_benchmark
from lcd.envs.protocols import (
    Benchmark,
    Graphs,
    KnownHardness,
    MovingTasks,
    Pairs,
    Populations,
    Shapings,
    ViewsByTask,
    has_shaping,
    missing,
    moving_tasks_of,
    offers,
    shapings_of,
    views_of,
)

OFFERED = {
    "toy": {Populations},
    "calibration": {Populations, KnownHardness},
    "procgen": {Pairs, Shapings, MovingTasks},
    "ctgraph": {Populations, Graphs},
    "hardness": {Populations, ViewsByTask},
}


@pytest.mark.parametrize("name", OFFERED)
def test_benchmarks_offer_what_they_say(name):
    every = {Populations, KnownHardness, Pairs, Shapings, MovingTasks, Graphs, ViewsByTask}
    assert {protocol for protocol in every if offers(get_benchmark(name), protocol)} == OFFERED[name]


@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_every_benchmark_is_one(name):
    assert missing(get_benchmark(name), Benchmark) == []


def test_a_part_of_an_offer_is_none():
    class Half:
        def make_pairs(self):
            """Without the names of labels."""

    assert missing(Half(), Pairs) == ["label_names", "intensities"]
    assert not offers(Half(), Pairs)


def test_what_holds_without_an_offer():
    toy = get_benchmark("toy")
    task = toy.tasks[0]
    assert shapings_of(toy) == ("none",)
    assert has_shaping(toy, task, "none")
    assert list(moving_tasks_of(toy)) == list(toy.tasks)
    assert list(views_of(toy, task)) == list(toy.views)


def test_a_shaping_that_only_some_tasks_have():
    procgen = get_benchmark("procgen")
    having = [task for task in procgen.tasks if has_shaping(procgen, task, "subgoals")]
    assert having == [task for task in procgen.tasks if task in procgen.shaped_tasks["subgoals"]]
    assert all(has_shaping(procgen, task, "none") for task in procgen.tasks)
