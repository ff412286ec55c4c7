"""The study command end to end with made-up training: what it runs, survives, refuses and leaves behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fake_training
import pandas as pd
import pytest

from lcd import cli
from lcd.config.compose import compose
from lcd.envs.errors import InputError
from lcd.pipelines.kinds.kind import trainings
from lcd.pipelines.kinds.train import rounded_up
from lcd.pipelines.publish.wandb_client import offline_folders
from lcd.pipelines.study import diagnose, runs, store
from lcd.pipelines.study.configs import run_id

HERE = str(Path(__file__).parents[1])
SMALL = ["study.tasks=[toy/easy-sight-easy-reward,toy/hard-sight-hard-reward]", "study.seeds=2", "study.steps=400"]
RUNS = 12
# A shell's background job hands down an ignored SIGINT; a terminal's does not.
CLI = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv[1])
from lcd import cli
import fake_training
fake_training.instead()
sys.exit(cli.main(sys.argv[2:]))
"""


@pytest.fixture(autouse=True)
def made_up(monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    fake_training.instead(monkeypatch)


def arguments(out, *more, tracker="none"):
    return ["diagnose", *SMALL, f"out={out}", f"tracker={tracker}", "launcher.workers=2", *more]


def scores(out):
    return pd.read_csv(out / "diagnosis" / "challenge.csv")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    out = tmp_path_factory.mktemp("studies") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(HERE)
        fake_training.instead(patch)
        assert cli.main(arguments(out, tracker="wandb")) == 0
    return out


def start(out, *more, pause="0.05"):
    environment = os.environ | {fake_training.PAUSE_S: pause}
    return subprocess.Popen(
        [sys.executable, "-c", CLI, HERE, *arguments(out, *more)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def steps_trained(out):
    return sum(store.read_status(path.parent)["step"] for path in out.glob("runs/*/status.json"))


def wait_until_trained(out, process, steps):
    end = time.monotonic() + 300
    while steps_trained(out) < steps:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_study_has_the_conditions_that_the_scores_need():
    configs = trainings(runs.expand(compose("diagnose", SMALL)))
    conditions = [(c["view"], c["reward_p"]) for c in configs if c["task"] == "toy/easy-sight-easy-reward"]
    assert conditions == [
        ("pixels", 1.0),
        ("figure_ground", 1.0),
        ("semantic", 1.0),
        ("semantic", 0.75),
        ("semantic", 0.5),
        ("semantic", 0.25),
    ]
    assert len(configs) == len({run_id(config) for config in configs}) == RUNS
    assert all(config["seeds"] == [0, 1] and config["steps"] == 400 for config in configs)
    assert configs[0]["agent"]["name"] == "ppo"
    assert "learning_rate" in configs[0]["agent"]


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["study.tasks=[toy/easy-sigt-easy-reward]"], "did you mean 'toy/easy-sight-easy-reward'"),
        (["study.tasks=[]"], "is empty"),
        (["study.views=[pixels,semantics]"], "did you mean 'semantic'"),
        (["study.views=[pixels]"], "needs the semantic view"),
        (["study.views=[pixels,pixels]", "study.reward_p=[1]"], "twice"),
        (["study.reward_p=[0.5]"], "must contain 1"),
        (["agent.learning_rat=3"], "did you mean 'learning_rate'"),
        (["frontend.depth=3"], "no knob of 'identity'"),
        (["benchmark=nothing.here:at_all"], "nothing.here"),
    ],
)
def test_what_cannot_be_expanded_is_one_sentence(overrides, sentence):
    with pytest.raises(InputError, match=sentence) as mistake:
        runs.expand(compose("diagnose", overrides))
    assert "\n" not in str(mistake.value)


def test_the_default_folder_is_the_same_for_the_same_request_only():
    def folder(*overrides):
        return str(diagnose.default_out(compose("diagnose", overrides)))

    assert folder() == folder("launcher.workers=1", "tracker=none") == "studies/toy-lcd"
    assert folder("budget=smoke") == "studies/toy-lcd-smoke"
    assert folder("budget=cpu") == "studies/toy-lcd"
    assert folder("benchmark=procgen") == "studies/procgen-lcd"
    assert folder("benchmark=procgen", "budget=cpu") == "studies/procgen-lcd-cpu"
    others = {folder("study.seeds=3"), folder("agent.gamma=0.9"), folder("budget=smoke", "study.steps=10")}
    assert len(others) == 3
    assert all(len(name) == len("studies/toy-lcd-123456") + len("-smoke") * ("smoke" in name) for name in others)
    assert folder("out=~/x") == str(Path.home() / "x")


def test_a_study_ends_with_scores_a_report_and_a_mirror(uninterrupted):
    table = scores(uninterrupted)
    assert table["task"].tolist() == ["toy/easy-sight-easy-reward", "toy/hard-sight-hard-reward"]
    assert (uninterrupted / "diagnosis" / "report.html").stat().st_size > 1000
    made = store.Study(uninterrupted).runs()
    assert len(made) == RUNS
    assert all(run.done and len(offline_folders(run.path)) == 1 for run in made)
    assert len(offline_folders(uninterrupted / "diagnosis")) == 1


def test_a_finished_study_is_only_diagnosed_again(uninterrupted, capsys):
    before = {path: path.stat().st_mtime_ns for path in uninterrupted.glob("runs/*/*.*")}
    (uninterrupted / "diagnosis" / "challenge.csv").unlink()
    assert cli.main(arguments(uninterrupted)) == 0
    assert before == {path: path.stat().st_mtime_ns for path in uninterrupted.glob("runs/*/*.*")}
    told = capsys.readouterr().out
    assert "All 12 runs" in told
    for name in ("report.html", "challenge.csv", "diagnosis.json"):
        assert str(uninterrupted / "diagnosis" / name) in told
    assert "lcd sync" in told
    assert len(scores(uninterrupted)) == 2


def test_a_run_with_a_lost_curve_or_status_is_trained_again(uninterrupted, tmp_path):
    assert cli.main(arguments(tmp_path / "s")) == 0
    first, second, *_ = store.Study(tmp_path / "s").runs()
    (first.path / "curve.csv").unlink()
    (second.path / "status.json").write_text('{"state": "do')
    assert cli.main(arguments(tmp_path / "s")) == 0
    assert first.done
    assert second.done
    pd.testing.assert_frame_equal(scores(tmp_path / "s"), scores(uninterrupted))


def test_a_killed_study_goes_on_to_the_same_numbers(tmp_path, uninterrupted, capsys):
    out = tmp_path / "killed"
    process = start(out)
    wait_until_trained(out, process, 1500)
    process.kill()
    process.communicate()
    assert cli.main(arguments(out)) == 0
    assert "Continuing the study" in capsys.readouterr().out
    pd.testing.assert_frame_equal(scores(out), scores(uninterrupted))


def test_ctrl_c_stops_soon_and_says_how_to_go_on(tmp_path, uninterrupted):
    out = tmp_path / "stopped"
    process = start(out, pause="0.2")
    wait_until_trained(out, process, 300)
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in complaints
    assert "The same command continues: lcd diagnose" in complaints
    states = {store.read_status(path.parent)["state"] for path in out.glob("runs/*/status.json")}
    assert states <= {"queued", "done"}
    assert cli.main(arguments(out)) == 0
    pd.testing.assert_frame_equal(scores(out), scores(uninterrupted))


def test_a_failing_run_does_not_stop_the_others_and_is_tried_again(tmp_path, monkeypatch, capsys, uninterrupted):
    out = tmp_path / "failing"
    monkeypatch.setenv(fake_training.FAIL_ON, "figure_ground")
    assert cli.main(arguments(out)) == 1
    told = capsys.readouterr().out
    assert "2 of 12 runs failed" in told
    assert "the knob is wrong: turn it." in told
    assert "Traceback" not in told
    states = [run.status["state"] for run in store.Study(out).runs()]
    assert sorted(states) == ["done"] * 10 + ["failed"] * 2
    assert cli.main(["report", str(out)]) == 0
    assert "2 of 12 runs left out: 2 failed" in capsys.readouterr().out
    assert scores(out)["auc_figure_ground"].isna().all()
    monkeypatch.delenv(fake_training.FAIL_ON)
    assert cli.main(arguments(out)) == 0
    pd.testing.assert_frame_equal(scores(out), scores(uninterrupted))


def test_the_page_of_an_unfinished_study_and_of_one_for_trying_out_says_so_first(tmp_path, capsys):
    out = tmp_path / "study"
    assert cli.main(arguments(out, "budget=smoke")) == 0
    for run in store.Study(out).runs():
        if run.config["view"] == "figure_ground":
            store.update_status(run.path, state="queued")
    capsys.readouterr()
    assert cli.main(["report", str(out)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    page = (out / "diagnosis" / "report.html").read_text()
    first = page[page.index("Read this first") :][:1500]
    for said in ("2 of 12 runs are not trained yet", "budget=smoke, which is for trying out commands"):
        assert said in told
        assert said in first


@pytest.mark.parametrize(
    ("steps", "told"),
    [(256, "256 steps become 4,096, because an update of ppo takes 64 copies x 64 steps"), (4000, ""), (40_960, "")],
)
def test_steps_that_are_far_fewer_than_an_update_takes_are_told_of(steps, told):
    asked = ["benchmark=atari", "budget=smoke", "study.tasks=[atari/Pong]", f"study.steps={steps}"]
    said = rounded_up(trainings(runs.expand(compose("diagnose", asked)))[0])
    assert said.startswith(told)
    assert bool(said) == bool(told)


def test_a_dying_worker_is_a_failed_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(fake_training.DIE_ON, "pixels")
    assert cli.main(arguments(tmp_path / "s")) == 1
    failed = [run.status for run in store.Study(tmp_path / "s").runs() if run.config["view"] == "pixels"]
    assert all(status["state"] == "failed" and "SIGABRT" in status["error"] for status in failed)
    assert "2 of 12 runs failed" in capsys.readouterr().out


def test_another_protocol_in_the_same_study_is_refused(uninterrupted, capsys):
    before = (uninterrupted / "study.yaml").read_text()
    assert cli.main(arguments(uninterrupted, "study.steps=300")) == 2
    assert "seeds that it does not have, or another folder" in capsys.readouterr().err
    assert (uninterrupted / "study.yaml").read_text() == before
    assert len(store.Study(uninterrupted).runs()) == RUNS
