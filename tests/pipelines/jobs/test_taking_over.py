"""A run of more steps that begins with what the shorter one left is the one that was asked for from the start."""

import pandas as pd
import pytest
import torch
from small_runs import toy_run

from lcd.curves.table import read_curves
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.jobs.worker import do_under_lease
from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.kinds.train import TRAINING
from lcd.pipelines.study import store
from lcd.pipelines.study.configs import Device

SIZES = {"copies": 4, "rollout": 25, "minibatches": 2}
AGENTS = {
    "ppo": {"name": "ppo", **SIZES},
    "ppg": {"name": "ppg", **SIZES, "phase": 2, "auxiliary_epochs": 1, "auxiliary_rollouts": 2},
}
DEVICE, NONE = Device("cpu"), {"name": "none"}


def job(agent, steps):
    return Job(toy_run(AGENTS[agent], steps=steps, evaluation={"every": 200, "copies": 2, "episodes": 1}))


def trained(study, agent, steps):
    with study.at_work():
        (run,) = study.ask({}, [job(agent, steps)])
    do_under_lease(TRAINING.work, run.config, str(run.path), NONE, DEVICE)
    return run


def assert_same(run, folder):
    curves = [read_curves(each / "curve.csv").drop(columns="wall_s") for each in (run.path, folder)]
    pd.testing.assert_frame_equal(*curves, check_exact=True)
    ours, theirs = (
        torch.load(each / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"] for each in (run.path, folder)
    )
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_longer_run_is_the_same_to_the_last_bit(agent, tmp_path, monkeypatch, recwarn):
    from lcd.agents.rollout import Rollouts

    collected, collect = [], Rollouts.collect

    def counting(self):
        collected.append(self.step)
        return collect(self)

    train_run(job(agent, 600).config, tmp_path / "whole", NONE, DEVICE)
    study = store.Study(tmp_path / "study", create=True)
    short = trained(study, agent, 400)
    before = {path: path.read_bytes() for path in short.path.rglob("*") if path.is_file()}
    monkeypatch.setattr(Rollouts, "collect", counting)
    run = trained(study, agent, 600)
    assert collected == [400, 500]
    assert run.whole
    assert run.status["continues"] == 400
    assert_same(run, tmp_path / "whole")
    assert {path: path.read_bytes() for path in before} == before
    # Seconds go on, too.
    assert run.status["wall_s"] > short.status["wall_s"]
    if agent == "ppo":
        return
    # What was changed since is not gone on from, and the next one ends as it should all the same.
    (run.path / "checkpoints" / "last.ckpt").write_bytes(b"nonsense")
    collected.clear()
    longest = trained(study, agent, 800)
    assert any("cannot be gone on from (it is not as it was" in str(each.message) for each in recwarn)
    assert collected[0] == 0
    assert longest.done
