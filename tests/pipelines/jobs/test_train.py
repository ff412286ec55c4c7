"""Training one run: its curve, its checkpoint, and what a kill at any moment leaves of them."""

import os
import random
import shutil
import signal

import numpy as np
import pandas as pd
import pytest
import torch
from fork_server import interpret
from small_runs import KILLING, toy_run, train_in_a_folder

from lcd.curves.table import COLUMNS, read_curves
from lcd.envs.errors import InputError
from lcd.pipelines.jobs.checkpoint import STEP
from lcd.pipelines.jobs.record import CurveFile
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.kinds.kind import MACHINE
from lcd.pipelines.study.configs import Device
from lcd.pipelines.study.store import read_status

DEVICE = Device("cpu")
KILLED = (
    KILLING
    + """
# Moments lie between any two of: collecting, appending rows, saving a checkpoint.
from lcd.pipelines.jobs import scalar_file
record.CurveFile.append = killing(record.CurveFile.append)
scalar_file.ScalarFile.append = killing(scalar_file.ScalarFile.append)
train_run(config, folder, {"name": "none"}, Device("cpu"))
"""
)


def run_config(**changes):
    agent = {"name": "ppo", "copies": 4, "rollout": 25, "epochs": 2, "minibatches": 2}
    evaluation = {"every": 300, "copies": 2, "episodes": 1}
    return toy_run(agent, steps=1000, evaluation=evaluation) | changes


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return train_in_a_folder(tmp_path_factory, run_config())


def test_a_run_leaves_a_whole_curve(uninterrupted):
    curve = pd.read_csv(uninterrupted / "curve.csv")
    held_out, training = curve[curve.split == "eval"], curve[curve.split == "train"]
    for seed in (3, 8):
        assert held_out[held_out.seed == seed].step.tolist() == [0, 300, 600, 900, 1000]
        # An episode has 20 steps: each of the 4 copies finishes 12 in its 250, and each is counted once.
        assert training[training.seed == seed].episodes.sum() == 48
    assert (held_out.episodes == 2).all()
    assert (held_out.length_mean == 20).all()
    assert curve.return_mean.between(0, curve.r_max.max()).all()
    status = read_status(uninterrupted)
    assert (status["state"], status["device"], status["precision"]) == ("done", "cpu", "32-true")
    assert read_status(uninterrupted)["step"] == 1000


def test_every_update_tells_of_itself_once(uninterrupted):
    told = pd.read_csv(uninterrupted / "train.csv")
    status = read_status(uninterrupted)
    for seed in (3, 8):
        own = told[told.seed == seed]
        assert own.step.is_monotonic_increasing
        assert own.step.is_unique
        assert own.step.iloc[-1] == status["step"]
        # Each training episode is counted once, here as in the curve.
        assert own.episodes.sum() == 48
    curve = pd.read_csv(uninterrupted / "curve.csv")
    training = curve[curve.split == "train"]
    earned = (training.return_mean * training.episodes).groupby(training.seed).sum()
    told_of = (told.return_mean.fillna(0) * told.episodes).groupby(told.seed).sum()
    np.testing.assert_allclose(told_of, earned, rtol=1e-6)
    assert (told.entropy >= 0).all()
    assert (told.kl >= -1e-6).all()
    assert told.clip_fraction.between(0, 1).all()
    assert (told.explained_variance <= 1).all()
    assert told.learning_rate.nunique() == 1


def test_training_rewards_are_recorded_as_they_were_before_thinning(uninterrupted):
    """Thinned rewards would be multiples of 2 at p = 1/2; returns of one episode must not all be even."""
    curve = pd.read_csv(uninterrupted / "curve.csv")
    training = curve[curve.split == "train"]
    totals = (training.return_mean * training.episodes).round(6)
    assert (totals % 1 == 0).all()
    assert (totals % 2 == 1).any()


def test_the_checkpoint_is_data_only(uninterrupted):
    assert checkpoint(uninterrupted)[STEP] == 1000


def test_a_done_run_stays_as_it_is(uninterrupted):
    before = (uninterrupted / "curve.csv").read_bytes()
    train_run(run_config(), uninterrupted, {"name": "none"}, DEVICE)
    assert (uninterrupted / "curve.csv").read_bytes() == before


@pytest.fixture(scope="module")
def uninterrupted_elsewhere(tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    assert start(folder, moment=10**6) == 0
    return folder


@pytest.mark.parametrize("attempt", range(2))
def test_a_killed_run_goes_on_to_the_same_last_bit(uninterrupted_elsewhere, tmp_path, attempt):
    # An uninterrupted run has more than 25 moments; the second kill comes soon enough to hit what is left.
    moments = [random.randrange(1, 20), random.randrange(1, 5)]
    for moment in moments:
        assert start(tmp_path, moment) == -signal.SIGKILL, f"killed at {moments}"
    assert start(tmp_path, moment=10**6) == 0, f"killed at {moments}"
    expected = read_curves(uninterrupted_elsewhere / "curve.csv").drop(columns="wall_s")
    found = read_curves(tmp_path / "curve.csv").drop(columns="wall_s")
    pd.testing.assert_frame_equal(found, expected, check_exact=True, obj=f"the curve killed at {moments}")
    told = [
        pd.read_csv(folder / "train.csv").drop(columns=list(MACHINE)) for folder in (tmp_path, uninterrupted_elsewhere)
    ]
    pd.testing.assert_frame_equal(*told, check_exact=True, obj=f"the scalars killed at {moments}")
    ours, theirs = (checkpoint(folder)["state_dict"] for folder in (tmp_path, uninterrupted_elsewhere))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs), f"killed at {moments}"


def start(folder, moment):
    """Train in a process that kills itself at some moment; returns its exit code."""
    return interpret(KILLED, repr(run_config()), str(folder), str(moment)).wait()


def checkpoint(folder):
    return torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)


def test_an_unreadable_checkpoint_is_trained_anew(uninterrupted, tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "last.ckpt").write_bytes(b"not a checkpoint")
    with pytest.warns(UserWarning, match="unreadable"):
        train_run(run_config(), tmp_path, {"name": "none"}, DEVICE)
    assert len(read_curves(tmp_path / "curve.csv")) == len(read_curves(uninterrupted / "curve.csv"))


def test_a_curve_is_cut_back_to_its_checkpoint(tmp_path, uninterrupted):
    lines = (uninterrupted / "curve.csv").read_text().splitlines(keepends=True)
    path = tmp_path / "curve.csv"
    path.write_text("".join(lines) + lines[-1][:20])
    rows = CurveFile(path).cut(600)
    assert {int(row["step"]) for row in rows} == {0, 300, 600}
    step = COLUMNS.index("step")
    assert path.read_text() == "".join(line for line in lines if line.split(",")[step] in ("step", "0", "300", "600"))


def pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


@pytest.mark.parametrize(
    "damage",
    [
        pipe,
        lambda path: path.write_bytes(b"\xff" + path.read_bytes()),
        lambda path: path.write_text(path.read_text().replace(",300,", ",soon,")),
        lambda path: path.write_text(path.read_text().replace("step", "steps", 1)),
        lambda path: path.write_text(path.read_text().replace("\n", ",more\n")),
    ],
    ids=["a pipe", "not UTF-8", "no number", "another column", "a cell too many"],
)
def test_a_curve_that_cannot_be_read_is_refused_in_a_sentence(tmp_path, uninterrupted, damage):
    path = tmp_path / "curve.csv"
    shutil.copy(uninterrupted / "curve.csv", path)
    damage(path)
    with pytest.raises(InputError, match="is not what the run wrote before it was stopped"):
        CurveFile(path).cut(600)


def test_pipes_in_a_strangers_run_are_not_waited_for(uninterrupted, tmp_path):
    (tmp_path / "checkpoints").mkdir()
    pipe(tmp_path / "checkpoints" / "last.ckpt")
    pipe(tmp_path / "curve.csv")
    with pytest.warns(UserWarning, match="unreadable"):
        train_run(run_config(), tmp_path, {"name": "none"}, DEVICE)
    assert len(read_curves(tmp_path / "curve.csv")) == len(read_curves(uninterrupted / "curve.csv"))


def test_an_agent_needs_discrete_actions_or_a_box(tmp_path):
    with pytest.raises(InputError, match="discrete"):
        train_run(run_config(benchmark=f"{__name__}:Buttons", task="c"), tmp_path, {"name": "none"}, DEVICE)


class _Buttons:
    name, tasks, views, r_min, r_max = "buttons", ("c",), ("semantic",), {"c": 0.0}, {"c": 1.0}

    def make_vec(self, task, *, view, split, num_envs, seed, **knobs):
        import gymnasium

        env = gymnasium.make_vec("CartPole-v1", num_envs=num_envs)
        env.single_action_space = gymnasium.spaces.MultiBinary(3)
        return env


Buttons = _Buttons()


def test_a_checkpoint_that_lacks_parts_is_trained_anew(uninterrupted, tmp_path):
    (tmp_path / "checkpoints").mkdir()
    torch.save({STEP: 300}, tmp_path / "checkpoints" / "last.ckpt")
    with pytest.warns(UserWarning, match="unreadable"):
        train_run(run_config(), tmp_path, {"name": "none"}, DEVICE)
    assert len(read_curves(tmp_path / "curve.csv")) == len(read_curves(uninterrupted / "curve.csv"))


def test_a_memory_solves_what_looks_the_same_everywhere(tmp_path):
    """CT-SU-B1, goal <1, 2>: an agent that sees no difference between its two decisions earns at most 1/4."""
    agent = {"name": "recurrent_ppo", "copies": 16, "rollout": 32, "learning_rate": 0.002}
    task = {
        "benchmark": "ctgraph",
        "task": "ctgraph/ct-su-b1",
        "knobs": {"goal": [1, 2]},
        "view": "state",
    }
    evaluation = {"every": 16384, "copies": 32, "episodes": 2}
    config = run_config(**task, reward_p=1.0, agent=agent, seeds=[0, 1, 2, 3], steps=16384, evaluation=evaluation)
    train_run(config, tmp_path, {"name": "none"}, DEVICE)
    last = read_curves(tmp_path / "curve.csv").query("split == 'eval' and step == 16384").return_mean
    assert last.median() > 0.7
