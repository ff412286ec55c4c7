"""`lcd/intersection-v0` and the benchmark `traffic`: the contracts, and what returns mean."""

from __future__ import annotations

import builtins
import importlib.util
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from contract import EnvironmentContract, equal, play, random_actions

from lcd.envs.benchmarks import reward_range
from lcd.envs.errors import InputError
from lcd.envs.population import make_population
from lcd.envs.protocols import ChecksKnobs, Families, PointPopulations, Populations, RangesByKnobs, offers
from lcd.envs.traffic import network, reference, simulation
from lcd.envs.traffic.benchmark import TASK, TRAFFIC
from lcd.envs.traffic.controllers import fixed_time, untuned_plan
from lcd.envs.traffic.sensing import WIDTH, Seen, read, rows
from lcd.envs.traffic.signal_vector import IntersectionVectorEnv
from lcd.envs.traffic.simulation import MEASURES

QUIET = {"lanes": 2, "length": 100.0, "inflow": 100.0, "left_lanes": 0}


class TestIntersection(EnvironmentContract):
    env_id = "lcd/intersection-v0"
    arguments = {"horizon": 75, "inflow": 600.0, "length": 60.0}
    longest_episode = 15


def test_the_benchmark_offers_what_families_need():
    for protocol in (Families, PointPopulations, Populations, RangesByKnobs, ChecksKnobs):
        assert offers(TRAFFIC, protocol)
    assert TRAFFIC.family(TASK).default["inflow"] == 300


def test_rows_can_be_read_again():
    generator = np.random.default_rng(0)
    queues, moving = generator.integers(0, 40, (2, 5, 4, 3)).astype(float)
    seen = Seen(
        queues,
        moving,
        generator.integers(0, 9, (5, 4)).astype(float),
        np.array([0, 1, 2, 3, 0]),
        np.arange(5) * 85.0,
        np.array([[True, False, True, False]] * 5),
    )
    shown = rows(seen)
    assert shown.shape == (5, WIDTH)
    for name in vars(seen):
        assert np.array_equal(getattr(read(shown), name), getattr(seen, name)), name


def test_a_return_is_minus_the_mean_delay():
    env = IntersectionVectorEnv(3, seed=2, horizon=200)
    observations, _ = env.reset()
    returns = np.zeros(3)
    for _ in range(40):
        seen = read(observations)
        observations, rewards, _, truncated, infos = env.step(fixed_time(seen, untuned_plan(seen.served)))
        returns += rewards
    assert truncated.all()
    assert returns == pytest.approx(-infos["delay"])
    assert set(MEASURES) <= set(infos)
    assert (infos["arrived"] + infos["not_entered"] <= infos["vehicles"]).all()
    assert (infos["vehicles"] > 0).all()
    env.close()


def test_a_point_among_others_gets_what_it_would_get_as_the_task():
    points = [{}, QUIET]
    how = {"view": "state", "split": "eval", "horizon": 100}
    together = TRAFFIC.make_points(TASK, points=points, seeds=[5, 8], copies=2, **how)
    assert together.num_envs == 8
    actions = random_actions(together, 25)
    first, _ = together.reset()
    trajectory = play(together, actions)
    for number, point in enumerate(points):
        alone = make_population(TRAFFIC, TASK, seeds=[5, 8], copies=2, **how, **point)
        rows_of = slice(4 * number, 4 * number + 4)
        assert np.array_equal(alone.reset()[0], first[rows_of])
        assert equal({k: v[:, rows_of] for k, v in trajectory.items()}, play(alone, actions[:, rows_of]))
        alone.close()
    together.close()


def test_the_range_is_the_delay_under_the_untuned_controller(monkeypatch):
    monkeypatch.setattr(reference, "_known", {})
    low, high = reward_range(TRAFFIC, TASK, 0, {"horizon": 300, **QUIET})
    assert high == 0
    assert -60 < low < -5
    whole = dict(TRAFFIC.family(TASK).default) | QUIET
    monkeypatch.setattr(reference, "_known", {})
    reference.prepare([dict(TRAFFIC.family(TASK).default), whole], 300)
    assert reference.fixed_time_delay(whole, 300) == -low


def test_nobody_drives_where_nobody_comes():
    env = IntersectionVectorEnv(2, horizon=50, inflow=1.0, lanes=1)
    env.reset(seed=1)
    rewards = [env.step(np.array([0, 2]))[1] for _ in range(10)]
    assert np.array_equal(rewards, np.zeros((10, 2)))
    env.close()


WRONG = [
    ({"length": 0}, "length is 0, but it must be a number from 50 to 1000."),
    ({"length": math.nan}, "length is nan, but it must be a number from 50 to 1000."),
    ({"speed": "fast"}, "speed is 'fast', but"),
    ({"inflow": math.inf}, "inflow is inf, but"),
    ({"lanes": -2}, "lanes is -2, but"),
    ({"lane": 2}, "There is no knob 'lane' (given as 2); did you mean 'lanes'?"),
    ({"horizon": 7}, "horizon is 7, but it must be a multiple of 5 seconds."),
    ({"horizon": 0}, "horizon is 0, but it must be a whole number of at least 5."),
]


@pytest.mark.parametrize(("knobs", "sentence"), WRONG)
def test_what_cannot_be_an_intersection_is_one_sentence(knobs, sentence):
    for ask in (
        lambda: TRAFFIC.check_knobs(TASK, knobs),
        lambda: TRAFFIC.reward_range(TASK, 0, **knobs),
        lambda: TRAFFIC.make_vec(TASK, view="state", split="train", num_envs=1, seed=0, **knobs),
    ):
        with pytest.raises(InputError) as refused:
            ask()
        assert sentence in str(refused.value)


def test_a_road_of_no_length_ends_the_command_with_status_2(tmp_path):
    words = ["train", f"task={TASK}", "view=state", "task.knobs={length:0}", "tracker=none"]
    command = [sys.executable, "-m", "lcd.cli", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "length is 0, but it must be a number from 50 to 1000." in done.stderr
    assert not list(tmp_path.iterdir())


def test_without_sumo_one_sentence_names_the_extra(monkeypatch, tmp_path):
    found, imported = importlib.util.find_spec, builtins.__import__

    def without(name, *rest, **more):
        if name in ("libsumo", "sumo"):
            raise ImportError(name)
        return imported(name, *rest, **more)

    monkeypatch.setattr("lcd.envs.traffic.benchmark.find_spec", lambda name: None if name == "libsumo" else found(name))
    monkeypatch.setattr(builtins, "__import__", without)
    sentence = r"SUMO is not installed.*pip install 'learning-challenge-diagnosticator\[traffic\]'"
    with pytest.raises(InputError, match=sentence):
        TRAFFIC.make_vec(TASK, view="state", split="train", num_envs=1, seed=0)
    with pytest.raises(InputError, match=sentence):
        network.write_network([], tmp_path)
    with pytest.raises(InputError, match=sentence):
        simulation.Simulation([], 5)
    # What is there without SUMO: the names, the family, and that no range is known.
    assert len(TRAFFIC.family(TASK).points) == 250
    assert np.isnan(reward_range(TRAFFIC, TASK, 0)).all()


def test_the_process_of_a_simulation_ends_with_its_environment():
    env = IntersectionVectorEnv(1, horizon=50)
    env.reset()
    process = env._simulation._process
    assert process.poll() is None
    env.close()
    assert process.returncode == 0


def test_a_simulation_that_dies_is_told_of():
    env = IntersectionVectorEnv(1, horizon=50)
    env.reset()
    os.kill(env._simulation._process.pid, signal.SIGKILL)
    time.sleep(0.1)
    with pytest.raises(RuntimeError, match="ended by itself"):
        env.step(np.zeros(1, dtype=np.int64))


def test_pictures_show_who_has_green():
    env = IntersectionVectorEnv(1, horizon=100, render_mode="rgb_array")
    env.reset()
    pictures = []
    for phase in (0, 2):
        env.step(np.array([phase]))
        pictures.append(env.render()[0])
    assert pictures[0].shape == (128, 128, 3)
    lamps = [(picture == (40, 230, 60)).all(axis=2) for picture in pictures]
    # Both roads are alike: what the crossing one's lights show is what the main one's did, turned.
    assert lamps[0].any()
    assert not np.array_equal(*lamps)
    assert np.array_equal(np.rot90(lamps[0]), lamps[1])
    env.close()
