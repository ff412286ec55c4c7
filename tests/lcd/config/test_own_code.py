"""A user's module:object is found beside the command, wherever the command names it, and nowhere else."""

import sys

import pytest

from lcd import cli
from lcd.config.compose import compose
from lcd.config.own_code import names_code

OWN = "my_code_beside_the_command"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("diagnose", [f"benchmark={OWN}:Mine"]),
        ("diagnose", [f"benchmark.name={OWN}:Mine"]),
        ("diagnose", [f"agent={OWN}:Mine"]),
        ("diagnose", [f"study.agents=['{OWN}:Mine',ppo]"]),
        ("diagnose", [f"study.frontends=['{OWN}:Mine']"]),
        ("diagnose", [f"study.parts=[{{frontends:['{OWN}:Mine']}}]"]),
        ("diagnose", [f"study.frontend_params={{{OWN}:Mine: {{width: 8}}}}"]),
        ("diagnose", [f"study.frontend_params={{flow: {{a: 1}}, '{OWN}:Mine': {{width: 8}}}}"]),
        ("diagnose", [f"study.contrasts=['{OWN}:Mine']"]),
        ("diagnose", [f"study.contrasts=[{{name: a, axis: agent, baseline: ppo, variants: ['{OWN}:Mine']}}]"]),
        ("ablate", ["study=frontend", f"study.agent_params={{{OWN}:Mine: {{width: 8}}}}"]),
        ("sweep", ["experiment=delay", f"study.agents=['{OWN}:Mine']"]),
        ("train", ["task=a", f"frontend={OWN}:Mine"]),
        ("pretrain", [f"benchmark={OWN}:Mine", "frontend=flow"]),
        ("measure", [f"{OWN}:Mine"]),
        ("measure", ["procgen", f"frontend={OWN}:Mine"]),
        ("view", [f"{OWN}:Mine"]),
        ("view", [f"benchmark={OWN}:Mine", "task=a"]),
    ],
)
def test_every_command_and_key_can_name_code(command, words):
    config = compose(command, words)
    assert names_code(config)
    assert OWN not in sys.modules


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("diagnose", []),
        ("diagnose", ["study.contrasts=[{name: delay, axis: knobs.delay, variants: [2]}]"]),
        ("train", ["task=discrete:delay=4"]),
        ("report", ["c:curves.csv", "out=a:b"]),
        ("diagnose", [f"study.source={OWN}:Mine", f"out={OWN}:Mine"]),
    ],
)
def test_what_is_no_part_of_a_run_names_none(command, words):
    assert not names_code(compose(command, words))


def test_params_reach_the_part_that_they_are_for():
    given = "study.frontend_params={flow: {a: 1}, my.module:Encoder: {width: 8}}"
    config = compose("diagnose", [given])
    assert config.study.frontend_params == {"flow": {"a": 1}, "my.module:Encoder": {"width": 8}}


@pytest.mark.parametrize("words", [["measure", f"{OWN}:Mine", "episodes=4"], ["view", f"{OWN}:Mine"]])
def test_a_benchmark_in_first_place_is_imported(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, OWN, raising=False)
    (tmp_path / f"{OWN}.py").write_text(
        "class Mine:\n    name = 'mine'\n    tasks = ('only',)\n    views = ('pixels',)\n"
    )
    assert cli.main(words) == 2
    assert f"The benchmark '{OWN}:Mine' has no r_min, r_max, make_vec" in capsys.readouterr().err


def test_a_contrast_whose_fixed_values_are_no_keys_is_refused(capsys):
    contrast = "study.contrasts=[{name: delay, axis: knobs.delay, variants: [2], at: [1]}]"
    assert cli.main(["diagnose", "benchmark=toy", contrast]) == 2
    assert "at=[1] must be a set of keys" in capsys.readouterr().err
