"""The command line: exit codes, sentences instead of stack traces, help, and a fast start."""

import re
import subprocess
import sys

import pytest

import lcd
from lcd import cli

TASK = "task=toy/easy-sight-easy-reward"


def test_help_and_version(capsys):
    for words in ([], ["--help"], ["-h"], ["help"]):
        assert cli.main(words) == 0
        told = capsys.readouterr().out
        assert all(f"lcd {name}" in told for name in cli.COMMANDS)
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"lcd {lcd.__version__}\n"


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help(command, capsys):
    assert cli.main([command, "--help"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith(f"lcd {command}")
    assert not told.err


def test_the_help_lists_groups_choices_and_keys(capsys):
    cli.main(["diagnose", "--help"])
    told = capsys.readouterr().out
    assert re.search(r"benchmark +atari, bsuite, calibration, .*crafter, .*toy, .*another registered name", told)
    assert re.search(r"study\.seeds=\d+ +a number of seeds", told)


def test_the_help_has_the_keys_of_what_is_chosen(capsys):
    assert cli.main(["train", "agent=tabular/sarsa", "frontend=clip", "tracker=none", "seeds=2", "--help"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"agent\.epsilon=0\.1 +probability of a random action", told)
    assert re.search(r"frontend\.quick_gelu=true +the activation", told)
    assert re.search(r"launcher\.workers=auto", told)
    assert "agent.epochs" not in told
    assert "tracker.mode" not in told


def test_the_help_of_what_there_is_not_is_one_sentence(capsys):
    assert cli.main(["train", "agent=pppo", "--help"]) == 2
    assert capsys.readouterr().err == "lcd: agent=pppo is unknown: did you mean 'ppo'?\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["diagnos"], "lcd: 'diagnos' is not a command of lcd: did you mean 'diagnose'?"),
        (["diagnose", "agent=pppo"], "lcd: agent=pppo is unknown: did you mean 'ppo'?"),
        (["diagnose", "benchmark=os:path"], "lcd: The benchmark 'os:path' has no"),
        (["diagnose", "benchmark=not.there:x"], "lcd: The benchmark 'not.there:x' cannot be imported"),
        (["diagnose", "agent=not.there:x"], "lcd: The agent 'not.there:x' cannot be imported"),
        (["report"], "lcd: path is missing"),
        (["report", "nowhere.csv"], "lcd: There is nothing at 'nowhere.csv'"),
        (["view", TASK, "view=pixel"], "did you mean 'pixels'"),
        (["view", TASK, "out=x.jpg"], "must end in .png"),
        (["view", "task=toy/easy"], "lcd: task: 'toy/easy' is not in the benchmark 'toy'"),
        (["list", "agent s"], "cannot be listed: did you mean 'agents'?"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(words, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(words) == 2
    told = capsys.readouterr()
    assert sentence in told.err
    assert told.err.count("\n") == 1
    assert not told.out
    assert not list(tmp_path.iterdir())


def test_a_users_module_is_found_where_the_command_is_given(tmp_path):
    (tmp_path / "my_bench.py").write_text(
        "class Mine:\n    name = 'mine'\n    tasks = ('only',)\n    views = ('pixels', 'semantic')\n"
        "    r_min = {'only': 0.0}\n    r_max = {'only': 1.0}\n    make_vec = None\n"
    )
    words = ["view", "benchmark=my_bench:Mine", "task=onyl"]
    done = subprocess.run(
        [sys.executable, "-m", "lcd.cli", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "did you mean 'only'?" in done.stderr


def test_ctrl_c_says_how_to_go_on(monkeypatch, capsys):
    def stopped(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("lcd.process.children.resolve", lambda _: stopped)
    assert cli.main(["diagnose", "out=my study"]) == 130
    assert "The same command continues: lcd diagnose 'out=my study'" in capsys.readouterr().err


def test_a_commands_exit_code_is_passed_on(monkeypatch):
    for code in (0, 1, None):
        monkeypatch.setattr("lcd.process.children.resolve", lambda _, code=code: lambda cfg: code)
        assert cli.main(["doctor"]) == (code or 0)


def test_help_imports_nothing_heavy():
    heavy = ("torch", "lightning", "hydra", "pandas", "scipy", "wandb")
    code = f"import sys; from lcd import cli; cli.main(['--help']); print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_composing_imports_no_torch():
    code = "import sys; from lcd import cli; cli.main(['diagnose', 'agent=pppo']); cli.main(['list', 'tasks']);"
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_a_reader_that_goes_away_is_no_error():
    done = subprocess.run(
        f"{sys.executable} -m lcd.cli list | true", shell=True, capture_output=True, text=True, check=False
    )
    assert not done.stderr


def test_targets_exist():
    import importlib

    for command in cli.COMMANDS.values():
        module, _, function = command.target.partition(":")
        assert callable(getattr(importlib.import_module(module), function)), command
