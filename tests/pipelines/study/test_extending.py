"""More of a study that is there: what it has stays as it is."""

import json
from pathlib import Path

import fake_training
import pytest

from lcd import cli
from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.study import store
from lcd.pipelines.study.extending import extended

SMALL = ["study.views=[pixels,semantic]", "study.reward_p=[1]", "tracker=none", "launcher.workers=1"]
TASK = "toy/easy-sight-easy-reward"


@pytest.fixture(autouse=True)
def made_up(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    fake_training.instead(monkeypatch)


def diagnose(out, tasks=(TASK,), seeds=2, steps=400):
    asked = [f"study.tasks=[{','.join(tasks)}]", f"study.seeds={seeds}", f"study.steps={steps}"]
    return cli.main(["diagnose", *SMALL, *asked, f"out={out}"])


def content(study):
    """What finished runs hold."""
    found = {}
    for run in study.runs():
        found |= {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file() and path.name != ".lock"}
    return found


def test_more_seeds_tasks_and_steps(tmp_path, capsys):
    assert diagnose(tmp_path / "study") == 0
    study = store.Study(tmp_path / "study")
    before = content(study)
    assert diagnose(study.path, tasks=(TASK, "toy/hard-sight-hard-reward"), seeds=5) == 0
    assert {path: content(study)[path] for path in before} == before
    seeds = sorted((run.config["task"], run.config["view"], tuple(run.config["seeds"])) for run in study.trainings())
    assert [each for each in seeds if each[0] == TASK] == [
        *((TASK, "pixels", (0, 1)), (TASK, "pixels", (2, 3, 4))),
        *((TASK, "semantic", (0, 1)), (TASK, "semantic", (2, 3, 4))),
    ]
    assert {each[2] for each in seeds if each[0] != TASK} == {(0, 1, 2, 3, 4)}
    assert len(seeds) == 6
    # The same again is the same runs, whichever way they came to be.
    after = content(study)
    assert diagnose(study.path, tasks=(TASK, "toy/hard-sight-hard-reward"), seeds=5) == 0
    assert content(study) == after
    capsys.readouterr()
    assert diagnose(study.path, tasks=(TASK, "toy/hard-sight-hard-reward"), seeds=5, steps=800) == 0
    # Of 16 x 16 steps an iteration, 400 end at 512.
    assert "6 runs begin at step 0, because those of 400 steps end with an evaluation" in capsys.readouterr().out
    assert {path: content(study)[path] for path in after} == after
    assert len(study.runs()) == 12
    # Told is of the longer ones alone.
    told = json.loads((study.diagnosis_dir / "diagnosis.json").read_text())
    assert {task["steps"] for task in told["tasks"]} == {800}
    assert told["cost"]["runs"] == 6
    assert cli.main(["status", str(study.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["runs"] == 6
    assert diagnose(study.path, seeds=2, steps=600) == 2
    assert "steps=800 there, 600 asked for" in capsys.readouterr().err


def test_until_all_are_longer_the_shorter_ones_are_told_of(tmp_path, monkeypatch, capsys):
    assert diagnose(tmp_path / "study") == 0
    told = tmp_path / "study" / "diagnosis" / "diagnosis.json"
    before = json.loads(told.read_text())["tasks"]
    monkeypatch.setenv(fake_training.FAIL_ON, "semantic")
    assert diagnose(tmp_path / "study", steps=800) == 1
    assert "2 runs are asked for with more steps, too" in capsys.readouterr().out
    assert json.loads(told.read_text())["tasks"] == before
    assert cli.main(["status", str(tmp_path / "study")]) == 1
    monkeypatch.delenv(fake_training.FAIL_ON)
    assert diagnose(tmp_path / "study", steps=800) == 0
    assert {task["steps"] for task in json.loads(told.read_text())["tasks"]} == {800}


def test_seeds_are_parted_by_what_is_there(tmp_path):
    config = {"kind": "train", "benchmark": "toy", "task": TASK, "knobs": {}, "view": "pixels", "reward_p": 1.0}
    config |= {"frontend": {"name": "identity"}, "shaping": "none", "agent": {"name": "ppo"}, "steps": 100}
    config |= {"evaluation": {"every": 50}}

    def job(*seeds, **changes):
        return Job({**config, "seeds": list(seeds), **changes})

    def seeds(*jobs):
        return [each.config["seeds"] for each in extended(tmp_path / "study", jobs)]

    assert seeds(job(0, 1, 2)) == [[0, 1, 2]]
    study = store.Study(tmp_path / "study", create=True)
    with study.at_work():
        study.ask({}, [job(0, 1), job(4, 3)])
    assert seeds(job(0, 1, 2)) == [[0, 1], [2]]
    assert seeds(job(0, 1, 2, 3, 4)) in ([[0, 1], [4, 3], [2]], [[4, 3], [0, 1], [2]])
    assert seeds(job(4, 3)) == [[4, 3]]
    # In part only, or of another protocol: the study refuses these itself.
    assert seeds(job(1, 2)) == [[1, 2]]
    assert seeds(job(0, 1, 2, steps=50)) == [[0, 1, 2]]
    # Of more steps, those that may go on from what is there.
    assert seeds(job(0, 1, 2, 3, steps=200)) == [[0, 1], [2, 3]]
    assert seeds(job(0, 1, 2), job(0, 1)) == [[0, 1], [2]]
