"""Points of a family trained as one population: every member gets what it would get alone."""

from __future__ import annotations

import random
import signal
import subprocess
import sys

import pandas as pd
import pytest
from small_runs import KILLING, toy_run, train_in_a_folder

from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.kinds.train import promise
from lcd.pipelines.study.configs import Device
from lcd.pipelines.study.promise import broken_promise

POINTS = {"": {"delay": 0}, "delay=2": {"delay": 2}, "delay=4": {"delay": 4}}
AGENTS = {
    "ppo": {"name": "ppo", "copies": 4, "rollout": 25, "epochs": 2, "minibatches": 2},
    "recurrent_ppo": {"name": "recurrent_ppo", "copies": 4, "rollout": 25, "epochs": 2, "minibatches": 2, "memory": 8},
    "tabular/q_learning": {"name": "tabular/q_learning", "copies": 2},
    "ars": {"name": "ars", "copies": 3, "directions": 2, "top": 1},
    "dqn": {"name": "dqn", "copies": 2, "buffer": 200, "start": 100, "train_every": 50, "updates": 2, "batch": 8},
    "sb3/a2c": {"name": "sb3/a2c", "copies": 2, "params": {}},
}
SMALL = {"benchmark": "hardness", "task": "hardness/discrete", "view": "state"}
NUMBERS = ["seed", "split", "step", "episodes", "return_mean", "return_std", "length_mean", "r_min", "r_max"]
KILLED = (
    KILLING
    + """
record.CurveFile.append = killing(record.CurveFile.append)
train_run(config, folder, {"name": "none"}, Device("cpu"))
"""
)


def run_config(agent="ppo", **changes):
    evaluation = {"every": 300, "copies": 2, "episodes": 1}
    return toy_run(AGENTS[agent], steps=600, evaluation=evaluation, points=POINTS) | changes


def curve_of(folder):
    return pd.read_csv(folder / "curve.csv", keep_default_na=False).drop(columns="wall_s")


def trained(folder, config) -> pd.DataFrame:
    folder.mkdir(exist_ok=True)
    train_run(config, folder, {"name": "none"}, Device("cpu"))
    assert broken_promise(folder / "curve.csv", promise, config) == ""
    return curve_of(folder)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return train_in_a_folder(tmp_path_factory, run_config())


@pytest.mark.parametrize(
    ("agent", "where"),
    [("ppo", {}), *((agent, SMALL) for agent in AGENTS)],
    ids=["images", *AGENTS],
)
def test_each_member_gets_what_it_would_get_alone(tmp_path, agent, where):
    config = run_config(agent, **where)
    together = trained(tmp_path / "together", config)
    for number, (name, features) in enumerate(POINTS.items()):
        single = {key: value for key, value in config.items() if key != "points"} | {"knobs": features}
        alone = trained(tmp_path / str(number), single)
        found, expected = (
            table.sort_values(["seed", "split", "step"])[NUMBERS].reset_index(drop=True)
            for table in (together[together.context == name], alone)
        )
        pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_rows_say_which_point_was_trained(uninterrupted):
    curve = curve_of(uninterrupted)
    task = run_config()["task"]
    named = curve[["trained_on", "task", "context"]].drop_duplicates().values.tolist()
    assert named == [[task, task, ""], [f"{task}@delay=2", task, "delay=2"], [f"{task}@delay=4", task, "delay=4"]]
    assert (curve.groupby(["seed", "split"]).context.nunique() == 3).all()
    # A reward that comes later comes less often within an episode: each point has a range of its own.
    assert curve.groupby("seed").r_max.nunique().tolist() == [3, 3]


def test_a_killed_population_of_points_goes_on_to_the_same_last_bit(uninterrupted, tmp_path):
    # An uninterrupted run has 15 moments; what is left is done in this process.
    moment = random.randrange(1, 14)
    assert start(tmp_path, moment) == -signal.SIGKILL, f"killed at {moment}"
    train_run(run_config(), tmp_path, {"name": "none"}, Device("cpu"))
    found, expected = curve_of(tmp_path), curve_of(uninterrupted)
    pd.testing.assert_frame_equal(found, expected, check_exact=True, obj=f"the curve killed at {moment}")


def start(folder, moment):
    command = [sys.executable, "-c", KILLED, repr(run_config()), str(folder), str(moment)]
    return subprocess.run(command, check=False, capture_output=True).returncode


def test_members_one_by_one_continue_with_those_that_are_left(tmp_path):
    config = run_config("sb3/a2c", **SMALL, steps=60, evaluation={"every": 30, "copies": 1, "episodes": 1})
    whole = trained(tmp_path / "whole", config)
    folder = tmp_path / "whole"
    left = folder / "checkpoints" / "seed-8-point-1.ckpt"
    left.unlink()
    checkpoints = sorted(path.name for path in left.parent.iterdir())
    assert len(checkpoints) == 5
    again = trained(folder, config)
    order = ["trained_on", "seed", "split", "step"]
    pd.testing.assert_frame_equal(
        *(table.sort_values(order).reset_index(drop=True) for table in (again, whole)), check_exact=True
    )


def test_each_member_is_evaluated_in_contexts_and_on_other_tasks(tmp_path, uninterrupted):
    other, task = "toy/easy-sight-hard-reward", run_config()["task"]
    evaluation = {"every": 300, "copies": 2, "episodes": 1, "contexts": {"noisy": {"transition_noise": 0.6}}}
    curve = trained(tmp_path, run_config(evaluation=evaluation | {"tasks": [other]}))
    own = curve[curve.trained_on == [f"{t}@{c}" if c else t for t, c in zip(curve.task, curve.context, strict=True)]]
    pd.testing.assert_frame_equal(own.reset_index(drop=True), curve_of(uninterrupted), check_exact=True)
    for elsewhere in (curve[curve.context == "noisy"], curve[curve.task == other]):
        assert sorted(set(elsewhere.trained_on)) == [task, f"{task}@delay=2", f"{task}@delay=4"]
        assert (elsewhere.groupby(["trained_on", "seed"]).size() == 3).all()
    noisy, hard = curve[curve.context == "noisy"], curve[curve.task == other]
    assert noisy.groupby("seed").r_max.nunique().tolist() == [3, 3]  # the context leaves the delay as it is
    assert hard.groupby("seed").r_max.nunique().tolist() == [1, 1]


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda curve: curve[curve.context != "delay=2"], "lacks the evaluation of seed 3 at step 0"),
        (lambda curve: curve[(curve.context != "delay=2") | (curve.seed != 8)], "lacks the evaluation of seed 8"),
        (lambda curve: curve.assign(trained_on=curve.task), "on which what was trained on toy/easy-sight"),
        (lambda curve: curve.replace({"context": {"delay=2": "delay=3"}}), "has context=delay=3"),
    ],
)
def test_a_curve_without_a_point_is_not_what_was_promised(uninterrupted, tmp_path, damage, told):
    curve = pd.read_csv(uninterrupted / "curve.csv", keep_default_na=False)
    damage(curve).to_csv(tmp_path / "curve.csv", index=False)
    assert told in broken_promise(tmp_path / "curve.csv", promise, run_config())
