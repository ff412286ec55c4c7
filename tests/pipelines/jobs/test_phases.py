"""Runs of PPG: what is said before, what a kill in the middle of a phase leaves, what is left in the end."""

import os
import random
import signal
from importlib.util import find_spec

import pandas as pd
import pytest
import torch
from fork_server import interpret
from small_runs import KILLING, toy_run

from lcd import cli
from lcd.agents import phase_store
from lcd.curves.table import read_curves
from lcd.envs.errors import InputError
from lcd.pipelines.jobs import phases
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.study.configs import Device

DEVICE = Device("cpu")
KILLED = (
    KILLING
    + """
from lcd.agents import phase_store
phase_store.MEMORY_SHARE = 0 if sys.argv[4] == "spilled" else 1

# Moments lie between any two of: collecting, writing a rollout's file, forgetting a phase, saving a checkpoint.
phase_store.Stored.write = killing(phase_store.Stored.write)
phase_store.RolloutStore.clear = killing(phase_store.RolloutStore.clear)
phase_store.RolloutStore._drop = killing(phase_store.RolloutStore._drop)
train_run(config, folder, {"name": "none"}, Device("cpu"))
"""
)


def run_config(**changes):
    sizes = {"copies": 4, "rollout": 25, "minibatches": 2, "phase": 3, "auxiliary_epochs": 1, "auxiliary_rollouts": 2}
    evaluation = {"every": 400, "copies": 2, "episodes": 1}
    return toy_run({"name": "ppg", **sizes}, steps=800, evaluation=evaluation) | changes


def start(folder, moment, place):
    """Train in a process that kills itself at some moment; returns its exit code."""
    return interpret(KILLED, repr(run_config()), str(folder), str(moment), place).wait()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    assert start(folder, 10**6, "memory") == 0
    return folder


@pytest.mark.parametrize("place", ["memory", "spilled"])
def test_a_run_killed_within_a_phase_goes_on_to_the_same_last_bit(uninterrupted, tmp_path, place):
    # An uninterrupted run has more than 30 moments.
    moment = random.randrange(5, 30)
    assert start(tmp_path, moment, place) == -signal.SIGKILL, f"killed at {moment}"
    assert start(tmp_path, 10**6, place) == 0, f"killed at {moment}"
    curves = [read_curves(folder / "curve.csv").drop(columns="wall_s") for folder in (tmp_path, uninterrupted)]
    pd.testing.assert_frame_equal(*curves, check_exact=True, obj=f"the curve killed at {moment}")
    ours, theirs = (
        torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
        for folder in (tmp_path, uninterrupted)
    )
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs), f"killed at {moment}"


def test_no_rollouts_are_left_of_a_run_that_is_over(uninterrupted):
    assert [path.name for path in (uninterrupted / "checkpoints").iterdir()] == ["last.ckpt"]


def test_a_run_that_cannot_fit_is_refused_before_it_begins(tmp_path, monkeypatch):
    monkeypatch.setattr(phase_store, "MEMORY_SHARE", 0)
    monkeypatch.setattr(phase_store.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10})())
    with pytest.raises(InputError, match=r"need .* make room"):
        train_run(run_config(), tmp_path, {"name": "none"}, DEVICE)


def test_the_size_is_told_before_training(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["task=toy/easy-sight-easy-reward", "agent=ppg", "budget=smoke", "seeds=1", "steps=256", "tracker=none"]
    assert cli.main(["train", *words, "out=study"]) == 0
    told = capsys.readouterr().out
    assert "PPG keeps 8 rollouts of 16 copies x 16 steps for its auxiliary phase" in told
    assert told.index("PPG keeps") < told.index("last return")
    assert "IQM" in told


@pytest.mark.skipif(find_spec("procgen") is None and not os.environ.get("CI"), reason="Procgen is not installed")
def test_masks_are_told_from_pixels():
    for view, mask in (("semantic", True), ("figure_ground", True), ("pixels", False)):
        config = run_config(benchmark="procgen", task="procgen/heist", view=view, seeds=[0])
        size = phases.store_size(config)
        assert (size.mask, size.shape, size.itemsize) == (mask, (3, 64, 64), 1)
    assert phases.store_size({**run_config(), "agent": {"name": "ppo"}}) is None
