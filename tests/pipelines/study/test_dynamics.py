"""What is looked at before training: whether the views of a task are one task, and whether it has them."""

import json
from io import StringIO

import fake_training
import pytest
from rich.console import Console

from lcd import cli
from lcd.config.compose import compose
from lcd.config.schema_parts import DeadlinesConfig
from lcd.envs.errors import InputError
from lcd.pipelines.kinds.kind import Job
from lcd.pipelines.study import determinism, dynamics, runs, store

WORLDS = "benchmark=flawed_worlds:Clocks"


def asked_for(folder, seeds, worlds=WORLDS):
    made = store.Study(folder, create=True)
    configs = runs.expand(compose("diagnose", [worlds, f"study.seeds={seeds}", "study.steps=400"]))
    made.ask({"benchmark": "clocks"}, configs)
    return made


@pytest.fixture
def study(tmp_path):
    return asked_for(tmp_path / "study", seeds=2)


def compared(study):
    stream = StringIO()
    dynamics.compare(study, study.runs(), Console(file=stream, width=200))
    return stream.getvalue()


def test_views_that_are_another_task_are_told_before_training_and_withhold_a_class(study, capsys):
    assert "Warning: clocks/a: under the view 'semantic'" in (told := compared(study))
    assert "clocks/b" not in told
    for run in study.runs():
        fake_training.train(run.config, run.path, {"name": "none"}, {})
    capsys.readouterr()
    assert cli.main(["report", str(study.path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(
        "Class withheld: clocks/a: under the view 'semantic' the same seed and actions give other term"
    )
    findings = json.loads((study.path / "diagnosis" / "diagnosis.json").read_text())["findings"]
    assert ("dynamics_differ", ["clocks/a"]) in [(found["key"], found["tasks"]) for found in findings]


def test_a_simulator_that_takes_its_process_with_it_takes_no_command(tmp_path):
    deadly = asked_for(tmp_path / "study", seeds=2, worlds="benchmark=flawed_worlds:DeadlyClocks")
    assert "Warning: clocks/a: under the view 'semantic'" in compared(deadly)
    assert set(dynamics.recorded_differences(deadly)) == {"clocks/a"}


def test_a_benchmark_that_blocks_is_given_up_at_the_commands_deadline():
    config = {"kind": "train", "benchmark": "flawed_worlds:BlockingClocks", "task": "clocks/a", "knobs": {}}
    job = Job(config | {"view": "pixels", "shaping": "none", "seeds": [3], "steps": 9})
    with pytest.raises(InputError, match=r"cannot be played \(deadlines.heartbeat=2 has passed without"):
        determinism.refuse_chance([job], None, DeadlinesConfig(heartbeat=2))


def test_what_was_compared_is_not_compared_again(study):
    compared(study)
    before = (study.path / "study.yaml").read_bytes()
    assert compared(store.Study(study.path)) == ""
    assert (study.path / "study.yaml").read_bytes() == before
    study.note(dynamics=["nonsense"])
    assert dynamics.recorded_differences(study) == {}


@pytest.mark.parametrize(
    "command",
    [
        ["diagnose", "benchmark=hardness", "study.tasks=[hardness/atari/Breakout]"],
        ["train", "benchmark=hardness", "task=hardness/atari/Breakout", "view=semantic"],
    ],
)
def test_a_view_that_a_task_has_not_is_refused_before_anything_is_made(command, tmp_path, capsys):
    out = tmp_path / "study"
    assert cli.main([*command, f"out={out}"]) == 2
    assert "'hardness/atari/Breakout' has no such view; choose from: pixels." in capsys.readouterr().err
    assert not out.exists()


def test_an_adaptive_study_does_not_build_on_what_cannot_be_trusted(tmp_path):
    study = asked_for(tmp_path / "study", seeds=1)
    compared(study)
    for run in study.runs():
        fake_training.train(run.config, run.path, {"name": "none"}, {})
    asked = ["study=adaptive", f"study.source={study.path}", WORLDS]
    with pytest.raises(InputError, match=r"recommends nothing\. All 2 tasks: one seed cannot tell"):
        runs.expand(compose("diagnose", asked))
