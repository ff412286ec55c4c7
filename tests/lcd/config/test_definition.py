"""Which definition of φ and ψ the headline follows: the usual one, a study's file's, or the user's."""

import inspect

import pytest

from lcd.config.compose import compose
from lcd.config.schemas import CheckConfig, DiagnoseConfig
from lcd.envs.errors import InputError
from lcd.scores.contrasts import DEFINITIONS, USUAL_DEFINITION
from lcd.scores.diagnosis import diagnose_curves
from lcd.statistics.power import tell_apart


def test_the_usual_definition_is_the_one_that_the_comparison_chose():
    assert USUAL_DEFINITION == "calibrated"
    assert USUAL_DEFINITION in DEFINITIONS
    for function in (diagnose_curves, tell_apart):
        assert inspect.signature(function).parameters["definition"].default == USUAL_DEFINITION


@pytest.mark.parametrize("command", ["diagnose", "check", "ablate", "sweep"])
def test_commands_that_diagnose_take_the_usual_definition(command):
    assert compose(command).definition == USUAL_DEFINITION
    assert DiagnoseConfig().definition == CheckConfig().definition == USUAL_DEFINITION


@pytest.mark.parametrize("command", ["report", "power"])
def test_commands_that_read_a_study_leave_it_to_the_study(command):
    assert compose(command, ["x.csv"]).definition is None
    assert compose(command, ["x.csv", "definition=paper"]).definition == "paper"
    with pytest.raises(InputError, match="did you mean 'paper'"):
        compose(command, ["x.csv", "definition=papre"])


def test_the_papers_study_takes_the_papers_definition_unless_the_user_says_another():
    assert compose("diagnose", ["study=paper"]).definition == "paper"
    assert compose("diagnose", ["study=paper", "benchmark=procgen", "budget=cpu"]).definition == "paper"
    for words in (["study=paper", "definition=calibrated"], ["definition=calibrated", "study=paper"]):
        assert compose("diagnose", words).definition == "calibrated"
    assert compose("diagnose", ["definition=paper"]).definition == "paper"


def test_a_users_study_file_may_say_its_definition(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("seeds: 3\ndefinition: paper\n")
    assert compose("diagnose", [f"study={file}"]).definition == "paper"
    assert compose("diagnose", [f"study={file}", "definition=calibrated"]).definition == "calibrated"
    file.write_text("definition: papre\n")
    with pytest.raises(InputError, match="did you mean 'paper'"):
        compose("diagnose", [f"study={file}"])
