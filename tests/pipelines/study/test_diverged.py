"""Runs that come to numbers that are not finite, that fail, or whose curves were tampered with: told, and left out."""

import json
from pathlib import Path

import fake_training
import numpy as np
import pandas as pd
import pytest
from small_runs import toy_run

from lcd import cli
from lcd.envs.errors import Diverged
from lcd.pipelines.jobs.train import train_run
from lcd.pipelines.jobs.worker import do_under_lease
from lcd.pipelines.kinds.train import promised_steps
from lcd.pipelines.study import store
from lcd.pipelines.study.configs import Device
from lcd.pipelines.study.hands import where
from lcd.pipelines.study.sources import with_source

HERE = str(Path(__file__).parents[1])
DEVICE, NO_TRACKER = Device("cpu"), {"name": "none"}
PPO = {"name": "ppo", "copies": 2, "rollout": 25, "epochs": 1, "minibatches": 1, "width": 8}
DIVERGENT = {"learning_rate": 1e30, "epochs": 4}
SHORT = ["study.seeds=2", "study.steps=400", "tracker=none", "launcher.workers=2"]
TASKS = "study.tasks=[toy/easy-sight-easy-reward,toy/hard-sight-hard-reward]"


def run_config(task="fine", agent=PPO, **changes):
    evaluation = {"every": 50, "copies": 1, "episodes": 5}
    made = toy_run(agent, benchmark="broken_worlds:BROKEN", task=task, reward_p=1.0, steps=200, evaluation=evaluation)
    return with_source(made | changes)


@pytest.mark.parametrize(
    ("task", "agent", "sentence", "last"),
    [
        ("reward", PPO, "a reward of seed 8 is not finite at step 62", 50),
        ("observation", PPO, "an observation of seed 8 is not finite at step 62", 50),
        ("held-out-reward", PPO, "the mean return \\(eval\\) of seed 8 is not finite at step 0", None),
        ("held-out-observation", PPO, "a held-out observation of seed 8 is not finite at step 0", None),
        ("fine", PPO | DIVERGENT, "a weight of seeds 3 and 8 is not finite at step 50", 0),
        (
            "fine",
            PPO | DIVERGENT | {"name": "ppg", "value_epochs": 4},
            "a weight of seeds 3 and 8 is not finite at step 50",
            0,
        ),
    ],
)
def test_what_is_not_finite_ends_the_run_with_the_seed_and_the_step(tmp_path, task, agent, sentence, last):
    with pytest.raises(Diverged, match=sentence):
        do_under_lease("lcd.pipelines.jobs.train:train_run", run_config(task, agent), str(tmp_path), NO_TRACKER, DEVICE)
    status = store.read_status(tmp_path)
    assert status["state"] == "diverged"
    assert "is not finite at step" in status["error"]
    rows = pd.read_csv(where(tmp_path) / "curve.csv")
    assert np.isfinite(rows["return_mean"].astype(float)).all()
    assert (rows["step"].max() == last) if last is not None else rows.empty


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [
        ({"name": "sb3/dqn", "copies": 1, "params": {"learning_rate": 1e30, "learning_starts": 10}}, "of seed 3 is"),
        ({"name": "sb3/a2c", "copies": 1, "params": {"learning_rate": 1e30}}, "of seed 3 is"),
    ],
)
def test_a_library_that_diverges_is_no_failure(tmp_path, agent, sentence):
    with pytest.raises(Diverged, match=sentence):
        train_run(run_config(agent=agent), tmp_path, NO_TRACKER, DEVICE)


def test_a_librarys_reward_is_looked_at(tmp_path):
    agent = {"name": "sb3/dqn", "copies": 1, "params": {}}
    with pytest.raises(Diverged, match="a reward of seed 8 is not finite at step 31"):
        train_run(run_config("reward", agent), tmp_path, NO_TRACKER, DEVICE)
    assert set(pd.read_csv(tmp_path / "curve.csv").query("step == 200").seed) == {3}


def finished(folder, **changes):
    config = run_config(**changes)
    train_run(config, folder, NO_TRACKER, DEVICE)
    return store.Run(config, folder)


def test_a_curve_without_a_promised_evaluation_is_not_whole_and_comes_again(tmp_path):
    run = finished(tmp_path)
    path, before = tmp_path / "curve.csv", pd.read_csv(tmp_path / "curve.csv").drop(columns="wall_s")
    assert promised_steps(run.config) == [0, 50, 100, 150, 200]
    assert run.done
    lines = path.read_text().splitlines(keepends=True)
    for number in [n for n, line in enumerate(lines) if ",eval," in line]:
        path.write_text("".join(lines[:number] + lines[number + 1 :]))
        assert "lacks the evaluation of seed" in run.broken_promise()
        assert not run.done
    with pytest.warns(UserWarning, match="lacks the evaluation of seed 8 at step 200"):
        train_run(run.config, tmp_path, NO_TRACKER, DEVICE)
    assert run.done
    assert pd.read_csv(path).drop(columns="wall_s").equals(before)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (",eval,50,", ",eval,5x,", "words in place of numbers"),
        (",10.0,", ",nan,", "has return_mean=nan of seed 3 at step 0"),
        (",semantic,", ",pixels,", "has view=pixels of seed 3 at step 0, where the run's is semantic"),
        (",8,eval,", ",9,eval,", "has rows of seed 9 at step 0, which is none of the run's"),
        ("return_mean", "mean", "lacks a column"),
    ],
)
def test_what_a_run_cannot_have_written_is_not_believed(tmp_path, old, new, sentence):
    run = finished(tmp_path)
    text = (tmp_path / "curve.csv").read_text()
    assert old in text
    (tmp_path / "curve.csv").write_text(text.replace(old, new))
    assert sentence in run.broken_promise()


# Studies, with made-up training


@pytest.fixture
def made_up(monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    fake_training.instead(monkeypatch)


def study(out, *more):
    return cli.main(["diagnose", TASKS, *SHORT, f"out={out}", *more])


def told(out):
    return json.loads((out / "diagnosis" / "diagnosis.json").read_text())


def states(out):
    return sorted(run.status["state"] for run in store.Study(out).runs())


def test_a_diverged_run_is_left_out_and_named_and_trained_anew_on_request_only(tmp_path, made_up, monkeypatch, capsys):
    out = tmp_path / "s"
    monkeypatch.setenv(fake_training.DIVERGE_ON, "toy/hard-sight-hard-reward/figure_ground")
    assert study(out) == 1
    said = capsys.readouterr().out
    reason = "a weight of seed 1 is not finite at step 100"
    assert "1 of 12 runs diverged" in said
    assert reason in said
    assert "retry=true" in said
    (lost,) = [run for run in store.Study(out).runs() if run.status["state"] == "diverged"]
    assert states(out) == ["diverged"] + ["done"] * 11
    (left_out,) = told(out)["left_out"]
    assert (left_out["run"], left_out["state"], left_out["reason"]) == (lost.path.name, "diverged", reason)
    assert any(reason in note and lost.path.name in note for note in told(out)["notes"])
    easy, hard = told(out)["tasks"]
    assert (easy["status"], hard["status"], hard["phi_status"]) == ("single_task", "diverged", "diverged")
    assert hard["auc_semantic"] is not None
    page = (out / "diagnosis" / "report.html").read_text()
    assert f"diverged: {reason}" in page
    assert lost.path.name in page

    monkeypatch.delenv(fake_training.DIVERGE_ON)
    before = (lost.left / "status.json").stat().st_mtime_ns
    assert study(out) == 1
    assert (lost.left / "status.json").stat().st_mtime_ns == before
    assert "retry=true" in capsys.readouterr().out
    assert study(out, "retry=true") == 0
    assert states(out) == ["done"] * 12
    assert told(out)["left_out"] == []


def test_a_task_of_which_nothing_is_left_is_listed(tmp_path, made_up, monkeypatch, capsys):
    monkeypatch.setenv(fake_training.DIVERGE_ON, "toy/hard-sight-hard-reward")
    assert study(tmp_path / "s") == 1
    rows = {row["task"]: row for row in told(tmp_path / "s")["tasks"]}
    lost = rows["toy/hard-sight-hard-reward"]
    assert (lost["status"], lost["phi_status"], lost["psi_status"]) == ("diverged",) * 3
    assert lost["phi"] is None
    assert lost["benchmark"] == rows["toy/easy-sight-easy-reward"]["benchmark"]
    assert "6 of 12 runs left out: 6 diverged" in capsys.readouterr().out


def test_a_study_with_no_finished_run_is_no_report(tmp_path, made_up, monkeypatch, capsys):
    out = tmp_path / "s"
    monkeypatch.setenv(fake_training.DIVERGE_ON, "toy")
    assert study(out) == 1
    for command in ("report", "power"):
        capsys.readouterr()
        assert cli.main([command, str(out)]) == 1
        complaint = capsys.readouterr().err
        assert "is finished (12 diverged)" in complaint
        assert "a weight of seed 1 is not finite" in complaint
        assert complaint.count("\n") == 1
    assert not (out / "diagnosis").exists()


@pytest.mark.parametrize(("old", "new"), [(",eval,100,", ",train,100,"), ("eval,400,8,", "eval,400,8,nan")])
def test_a_report_leaves_a_tampered_curve_out_and_the_study_trains_it_again(tmp_path, made_up, capsys, old, new):
    out = tmp_path / "s"
    assert study(out, "study.evaluation.every=100", "agent.copies=1", "agent.rollout=100") == 0
    run = next(run for run in store.Study(out).runs() if run.config["view"] == "pixels")
    path = run.path / "curve.csv"
    path.write_text(path.read_text().replace(old, new))
    capsys.readouterr()
    assert cli.main(["report", str(out)]) == 0
    said = capsys.readouterr().out
    assert "1 of 12 runs left out: 1 invalid" in said
    assert f"{run.config['task']}, pixels, p=1, ppo (run {run.path.name}), is left out" in said.replace("\n", " ")
    assert [each["run"] for each in told(out)["left_out"]] == [run.path.name]


def test_a_strangers_reason_has_no_power_over_the_terminal(tmp_path, made_up, capsys):
    out = tmp_path / "s"
    assert study(out) == 0
    run = store.Study(out).runs()[0]
    store.update_status(run.path, state="failed", error="\x1b[2J[bold]<script>alert(1)</script>")
    assert cli.main(["report", str(out)]) == 0
    assert "\x1b[2J" not in capsys.readouterr().out
    assert "<script>alert(1)" not in (out / "diagnosis" / "report.html").read_text()


def test_a_sweep_goes_on_without_a_run(tmp_path, made_up, monkeypatch, capsys):
    monkeypatch.setenv(fake_training.DIVERGE_ON, "hardness/discrete:delay=4")
    line = ["sweep", "experiment=delay", "study.grid.knobs.delay=[0,4]", "study.seeds=2", "study.steps=400"]
    line += ["study.agents=[tabular/sarsa]", "study.evaluation.every=400", "launcher.workers=1"]
    assert cli.main([*line, f"out={tmp_path / 's'}"]) == 1
    assert "is left out" in capsys.readouterr().out
    assert set(pd.read_csv(tmp_path / "s" / "diagnosis" / "tables" / "grid-areas.csv")["delay"]) == {0}


def test_lcd_train_tells_that_it_diverged(tmp_path, made_up, monkeypatch, capsys):
    monkeypatch.setenv(fake_training.DIVERGE_ON, "toy/easy-sight-easy-reward")
    line = ["train", "task=toy/easy-sight-easy-reward", "steps=400", "seeds=2", "tracker=none", f"out={tmp_path / 's'}"]
    for _ in range(2):
        assert cli.main(line) == 1
        said = capsys.readouterr().out
        assert "a weight of seed 1 is not finite at step 100" in said
        assert "retry=true trains them anew" in said
    monkeypatch.delenv(fake_training.DIVERGE_ON)
    assert cli.main([*line, "retry=true"]) == 0


def test_a_config_without_sense_promises_nothing_that_takes_for_ever():
    odd = run_config(steps=10**18, evaluation={"every": 1})
    with pytest.raises(ValueError, match="so many evaluations"):
        promised_steps(odd)
