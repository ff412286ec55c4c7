"""A study as a graph of jobs: of which kinds, in which order, what they take of each other, and what a kill leaves."""

import os
import signal
import time
from pathlib import Path

import counting
import pandas as pd
import pytest
import torch
from fork_server import COMMAND, interpret
from rich.console import Console

from lcd import cli
from lcd.config.compose import compose
from lcd.envs.errors import InputError
from lcd.frontends.flow.file import read
from lcd.pipelines.kinds.kind import Job, is_job_config
from lcd.pipelines.kinds.pretrain import WEIGHTS_FILE, before_pretraining
from lcd.pipelines.study import probe, runs, store
from lcd.pipelines.study.configs import inputs_of, run_id
from lcd.pipelines.study.training import train_missing
from lcd.pipelines.study.verify import check_run

HERE = str(Path(__file__).parents[1])
TASK = "toy/hard-sight-easy-reward"
ASKED = [
    "benchmark=toy", "study=frontend", "budget=smoke", f"study.tasks=[{TASK}]", "study.seeds=2", "study.steps=128",
    "study.evaluation.every=64", "study.evaluation.copies=2", "agent.copies=2", "agent.rollout=16", "agent.epochs=1",
    "agent.minibatches=1", "tracker=none",
]  # fmt: skip


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(HERE)


def chain():
    """Three jobs, each after the one before it, and one that waits for nobody."""
    first = counting.config(1)
    second = counting.config(2, run_id(first))
    third = counting.config(3, run_id(second))
    return [Job(each) for each in (third, second, counting.config(4), first)]


def done(study, jobs):
    """Have the jobs done; whether all are, and what was said."""
    cfg = compose("diagnose", ["tracker=none", "launcher.workers=2"])
    console = Console(record=True, width=200, file=open(os.devnull, "w"))  # noqa: SIM115
    with study.at_work():
        whole = train_missing(cfg, study, study.ask({"ask": "count"}, jobs), console)
    return whole, console.export_text()


def test_a_kind_from_outside_is_done_in_the_order_of_the_graph(tmp_path):
    study, jobs = store.Study(tmp_path / "study", create=True), chain()
    assert done(study, jobs)[0]
    by_steps = {run.config["steps"]: run for run in study.runs() if run.config["kind"] == "counting:COUNT"}
    assert {steps: (run.path / "count.txt").read_text() for steps, run in by_steps.items()} == {
        1: "1", 2: "3", 3: "6", 4: "4"
    }  # fmt: skip
    assert by_steps[3].status["inputs"] == {
        f"{by_steps[2].path.name}/count.txt": by_steps[2].status["seal"]["count.txt"]
    }
    (study.path / "runs" / "told").write_text("")
    assert done(study, jobs)[0]
    assert (study.path / "runs" / "told").read_text() == "", "what is done is not done again"
    assert not any(list(check_run(run)) for run in by_steps.values())
    (by_steps[1].path / "count.txt").write_text("7")
    assert [said for _, said in check_run(by_steps[1])] == ["its count.txt has been changed since the run was done"]


def test_a_failed_job_fails_those_that_wait_for_it_until_it_is_mended(tmp_path):
    study, jobs = store.Study(tmp_path / "study", create=True), chain()
    study.path.mkdir()
    (study.path / "runs").mkdir()
    with study.at_work():
        study.ask({"ask": "count"}, jobs)
    (study.path / "fail-2").touch()
    whole, told = done(study, jobs)
    states = {run.config["steps"]: run.status for run in study.runs()}
    assert not whole
    assert {steps: status["state"] for steps, status in states.items()} == {
        1: "done", 2: "failed", 3: "failed", 4: "done"
    }  # fmt: skip
    second = jobs[1].id
    assert states[3]["error"] == f"it waits for {second} (count by 2), which failed: it was told to fail."
    assert f"count by 3: {states[3]['error']}" in told
    (study.path / "fail-2").unlink()
    assert done(study, jobs)[0]


def test_a_job_after_one_that_is_not_tried_again_says_so(tmp_path):
    study, jobs = store.Study(tmp_path / "study", create=True), chain()
    with study.at_work():
        made = {run.config["steps"]: run for run in study.ask({"ask": "count"}, jobs)}
        made[1].update(state=store.DIVERGED, error="a weight is not finite")
    assert not done(study, jobs)[0]
    for steps in (2, 3):
        assert (
            made[steps].status["error"].startswith(f"it waits for {made[1].path.name} (count by 1), which failed: a w")
        )
    assert made[4].done


def test_what_another_job_left_must_be_what_it_sealed(tmp_path):
    study, jobs = store.Study(tmp_path / "study", create=True), chain()
    assert done(study, jobs[3:])[0]
    (first,) = study.runs()
    (first.path / "count.txt").write_text("5")
    assert not done(study, jobs)[0]
    assert (
        "count.txt has been changed since its run was done"
        in {r.config["steps"]: r for r in study.runs()}[2].status["error"]
    )


def test_a_config_of_no_kind_or_of_code_that_nobody_named_is_no_run():
    config = counting.config(1)
    assert is_job_config(config)
    assert not is_job_config(config | {"kind": "solve"})
    assert not is_job_config({key: value for key, value in config.items() if key != "kind"})
    assert inputs_of({"a": [{"job": "x", "file": "y"}, {"job": "x", "file": "y"}], "b": {"job": 1}}) == [
        {"job": "x", "file": "y"}
    ]


def test_a_study_pretrains_its_front_end_once_before_all_that_use_it(tmp_path):
    jobs = runs.expand(compose("diagnose", [*ASKED, "study.reward_p=[1]", "study.agents=[ppo,recurrent_ppo]"]))
    (pretraining,) = [job for job in jobs if job.config["kind"] == "pretrain"]
    waiting = [job for job in jobs if job.after]
    assert len(waiting) == 2
    assert all(job.after == (pretraining.id,) and job.config["frontend"]["name"] == "flow" for job in waiting)
    assert all(job.config["frontend"]["label"] == "flow/untrained" for job in map(_stand_in, waiting))
    # Its sizes are the user's, and another pretraining makes other runs.
    wide = runs.expand(compose("diagnose", [*ASKED, "study.frontend_params={flow:{width:3}}"]))
    assert wide[0].config["frontend"]["width"] == 3
    assert not {job.id for job in wide if job.after} & {job.id for job in waiting}
    weights = ["study.frontend_params={flow:{weights:untrained}}"]
    assert not any(job.after for job in runs.expand(compose("diagnose", [*ASKED, *weights])))


def _stand_in(job):
    return Job(before_pretraining(job.config))


def test_lcd_train_alone_wants_weights(capsys):
    assert cli.main(["train", f"task={TASK}", "frontend=flow", "tracker=none"]) == 2
    assert "'lcd pretrain frontend=flow' writes one" in capsys.readouterr().err


def test_a_kill_while_it_pretrains_changes_nothing(tmp_path, capsys):
    assert cli.main(["diagnose", *ASKED, f"out={tmp_path / 'whole'}"]) == 0
    killed = tmp_path / "killed"
    process = interpret(COMMAND, "diagnose", *ASKED, f"out={killed}")
    try:
        while not list(killed.glob("runs/*/pictures")):
            assert process.poll() is None
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not list(killed.glob(f"runs/*/{WEIGHTS_FILE}"))
    assert cli.main(["diagnose", *ASKED, f"out={killed}"]) == 0
    whole, again = (store.Study(tmp_path / name) for name in ("whole", "killed"))
    assert [run.path.name for run in whole.runs()] == [run.path.name for run in again.runs()]
    for one, other in zip(whole.runs(), again.runs(), strict=True):
        curves = [pd.read_csv(run.path / "curve.csv").drop(columns="wall_s") for run in (one, other)]
        pd.testing.assert_frame_equal(*curves)
    first, second = (read(study.pretrainings()[0].path / WEIGHTS_FILE).model for study in (whole, again))
    assert all(torch.equal(first[name], second[name]) for name in first)
    capsys.readouterr()
    assert cli.main(["verify", str(killed)]) == 0
    assert cli.main(["report", str(killed)]) == 0
    assert "Use it: frontend=flow" in capsys.readouterr().out
    _weights_of_another_pretraining_are_found(again, capsys)


def _weights_of_another_pretraining_are_found(study, capsys):
    (user,) = [run for run in study.trainings() if run.config["frontend"]["name"] == "flow"]
    name, digest = next(iter(user.status["inputs"].items()))
    store.update_status(user.path, inputs={name: digest[::-1]})
    assert cli.main(["verify", str(study.path)]) == 1
    assert "it was trained with another flow.pt than the one that the run" in capsys.readouterr().out


def test_a_dry_run_counts_the_pretraining(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "PROBE_S", 2.0)
    assert cli.main(["diagnose", *ASKED, f"out={tmp_path / 'study'}", "--dry-run"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "runs 3" in told
    assert "flow pretrained on toy" in told
    assert not (tmp_path / "study").exists()


def test_clips_weights_that_are_not_there_are_told_before_anything_is_trained(tmp_path):
    asked = [*ASKED, "study.frontends=[flow,clip]", "study.frontend_params={clip:{weights:'/nowhere/clip.pt'}}"]
    with pytest.raises(InputError, match=r"/nowhere/clip\.pt"):
        runs.expand(compose("diagnose", asked))
